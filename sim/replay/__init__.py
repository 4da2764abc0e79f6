"""Replay of a counterexample in the simulation.

`replayer` performs one replay step after the other. `stepped_process` and `stepped_client`
are the simulated process and ZooKeeper client with every event held back until its step.
"""
