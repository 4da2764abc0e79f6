"""The simulated world: a whole run in one thread, on a virtual clock, from one seed.

`world` puts a run together from a plan, and `simulate` runs it; the same plan and seed give
the same trace, event for event. `teardown` frees a world that has run.

Read in this order: `engine` (clock, calendar, random streams), `zookeeper` (an ensemble and
its clients), `process` (what runs a program), `brokers` (who serves and sends messages),
`faults` (what a timeline does to all of these). `disk` and `storage` simulate what is under
the log of a broker. `replay` follows a counterexample step by step; `calibration` fits
latencies and disks to measurements.
"""
