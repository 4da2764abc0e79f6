"""The classes of `bench/regressions.py`: what is drawn, and what has to be true of each run.

Reading order: `outcome` (a class and its outcome), `runs` (helpers), `drawn_group` (a cluster and
a group), then one module for each subject: `applications`, `brokers`, `settings`, `groups`,
`members`, `operators`, `verdicts`.
"""
