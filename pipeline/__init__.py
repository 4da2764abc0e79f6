"""Work that is too much for one process: sweeps of simulated runs, in Parquet.

`session` is the one place that starts Spark; `workers` and `shipping` give its workers this
project. What a sweep is stands in `sweeps`.
"""
