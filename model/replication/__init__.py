"""Replication of one partition: what a replica stores, and how it becomes like its leader.

`replica_log` is the log of a replica as a short sequence of records, with the epoch of the
leader that appended each of them. `truncation` holds the rules by which versions of Kafka cut
a follower's log before it follows another leader, as a table.
"""
