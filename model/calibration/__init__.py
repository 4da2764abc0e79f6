"""Measurements of a real ZooKeeper and a real disk.

`probe_program` is run in the simulation and live, `latency` reads durations from its trace,
`disk` holds the measurements of a disk.
"""
