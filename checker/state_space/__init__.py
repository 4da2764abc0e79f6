"""States, transitions and edges as arrays of numbers.

`system` defines the protocol that every searched system implements. `intern` gives values
their numbers; `transition_table` caches the moves of one actor; `visited` is the set of
states; `edges` stores the graph that liveness is judged on; `prefetch` runs work ahead.
"""
