"""Measurements of this machine that calibrate the simulation.

`zookeeper` measures latencies, watches and session expiry of a live ZooKeeper. `disk` measures
a disk, with `loopback` for the network and `machine` for the kernel's settings.
"""
