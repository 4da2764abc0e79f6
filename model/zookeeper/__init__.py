"""ZooKeeper's sequential specification as a persistent value.

Reading order: `znodes` (what a znode is), `paths` (which paths are allowed), `tree`
(reads and writes), `watches` (who is told), `machine` (the three put together).
"""
