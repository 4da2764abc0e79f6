"""Apache ZooKeeper as a child process, and what its transaction logs tell.

`ensemble` is the entry: an ensemble of `server`s, configured by `settings`, run by the `java`
and the `jars` that are found on this machine. `session_times` reads the transaction logs for
the begin and end of sessions; `txn_log` decodes all committed writes.
"""
