"""What a timeline does to a simulated run.

`world` lists what a fault may touch here, beside what `watchkeeper.model.nemesis.world` has
for every world. `faults` holds the faults that only a simulation brings about in this way,
and `HANDLERS`, the table of all verbs. `fork` lets a run depart from another one at an
event, with fresh random streams.
"""
