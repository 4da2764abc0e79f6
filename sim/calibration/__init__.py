"""Fits the simulation to measurements of a real system.

`fit_latency` finds the latency profile under which a simulated ZooKeeper answers as the
measured one did; `fit_disk` the machine under which the simulated storage does.
"""
