"""Replay of a counterexample on a real ZooKeeper.

`replayer` performs the requests of a schedule in sessions of its own, and compares every
answer, every event and the znodes at the end with what the checker expects.
"""
