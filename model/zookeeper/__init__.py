"""ZooKeeper's sequential specification as a persistent value.

Every function takes a tree and returns another; nothing here waits, fails or knows a clock.
The simulated ensemble and the checker both serve from it. Read in this order:

  znode            what a znode is
  paths            which paths servers accept
  tree             all znodes and sessions, and what a write returns
  reads, writes    what each operation returns and changes
  watches          which clients are notified of a change
  armed_watches    which watches a client of Java sets again after a reconnection
  lifetimes        which containers and TTLs are over
  acl, addresses   which lists are valid, and what they permit
  standalone       tree and watches together: one server that never fails
  java_hash_order  the order in which servers list children and ephemerals
"""
