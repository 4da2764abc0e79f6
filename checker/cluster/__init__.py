"""A scenario's plan as a system to search.

`cluster` is the system: its actors, its safety properties and its footprints. `initial`
brings it to the state in which the search starts; `terminal` judges the states in which
nothing is left to happen.
"""
