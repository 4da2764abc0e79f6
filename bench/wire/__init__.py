"""ZooKeeper's protocol from the client's end, for benches that compare and strain servers.

Reading order: `jute` (requests as bytes, answers as values), `raw_line` (one connection), `steps`
(random requests, moves and ends of sessions), `player` (plays steps and notes what comes back),
`mutated_frames` (what a hostile client sends, and what it is owed), `in_memory_connection` (a
connection without a socket).
"""
