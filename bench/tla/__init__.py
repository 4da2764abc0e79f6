"""TLC, the model checker of TLA+, beside the search of a replicated partition.

`checker` runs TLC on a published model and reads what it prints; `states` turns the states that
it prints into partitions.
"""
