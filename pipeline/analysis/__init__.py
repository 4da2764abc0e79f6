"""The analysis of runs: their traces as one table, and what follows from it alone.

Reading order: `events` (the table, and how traces become it), `terms` (what the plan of a run
says that its trace does not), `spans` (what was true from which event to which), `owning`,
`resting`, `calm`, `progress`, `happenings` and `delivery` (every property a second time),
`agreement` (against the verdicts of the runs), `measures`, `coverage` and `clusters` (what
else there is to know), `conduct` (all of it together), `store` (the folder it is written to).

Everything between is a function from tables to tables, and none of it calls the judges of the
model: what they say and what is said here come from the same trace by different ways.
"""
