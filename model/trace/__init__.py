"""The trace of a run, and what is derived from it.

`trace` is the table and its file format, `text` the text of operations in it. `history` derives
the state at each moment, `mirror_routes` the cluster of each message. `counts` counts
operations, `diff` finds where two runs diverge, and `assignments` reads which brokers a topic is
assigned to.
"""
