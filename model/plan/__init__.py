"""The plan of a run: what a world executes.

`plan` holds clusters, groups and processes as frozen values, `faults` the verbs of the timeline
and their effects, `programs` the program of each process, `delivery_guarantee` what a group may
lose or repeat, `bounds` the limits of a search of every interleaving.
"""
