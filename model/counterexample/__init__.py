"""Counterexamples as plain values, shared by the checker, both replays and the reports.

`step_kind` names the kinds of steps; `counterexample` holds the steps with the state after
each; `replay_steps` are the single actions that a replay performs. `replicas` holds the
counterexamples of the replicas of one partition.
"""
