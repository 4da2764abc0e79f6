"""One process as a value, and everything it can do next.

`compile` turns a coroutine into a graph of nodes (`frame_snapshot` recognises its loops).
`actor_state` is the value of a process; `actor` answers the effects that no other process
can observe; `znode_store` executes the requests of all; `transitions` lists the steps of one
process; `actors` puts several of them around one tree.
"""
