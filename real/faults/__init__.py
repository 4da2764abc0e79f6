"""What a timeline does to a live run.

`world` lists what a fault may touch here, beside what `watchkeeper.model.nemesis.world` has
for every world. `faults` holds the faults that only a live run brings about in this way,
and `HANDLERS`, the table of all verbs.
"""
