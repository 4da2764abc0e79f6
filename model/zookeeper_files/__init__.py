"""The files of Apache's ZooKeeper servers, as bytes: no I/O is done here.

Read in this order:

  transactions   what a server logs for each write, and the bytes of it
  txn_log        a log file: a header and records, of which the last may be torn
  replay         what a logged transaction changes in the tree, also if it was applied before
  snapshot       a whole tree in one file
  disk_fields    what both kinds of files have in common: strings, and the owner of a znode

The formats are those of ZooKeeper 3.9. `real.zookeeper_data` keeps such files in a folder.
"""
