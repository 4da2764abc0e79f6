"""Profile files: measured latencies that a simulation runs with.

`profile` is the whole file, `disk` its section about disks, `codecs` that
about codecs, `quantiles` the form of a
distribution.
"""
