"""One scenario with many seeds, variants and values: the command `sweep`.

`command` is the command line. `grid` makes the runs of a sweep from its arguments, `sweep` has
them done by a runner of `watchkeeper.pipeline.sweeps`, after a self-test. `shrink` looks for the
smallest scenario of each failure, and `report` prints and writes the results.
"""
