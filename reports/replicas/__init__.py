"""The page of a counterexample of replicas: every step, and every replica after it.

`html` makes it, with the script that draws logs and the one that shows a step.
"""
