"""What several benches share; no module here is a command.

`report` times, takes arguments and prints tables: every bench uses it. `mutant_search` and
`random_faults` serve `mutants.py` and `proved.py`; `group_join`, `contenders` and
`recipe_member` serve `live.py`; `dealt` is a second, slow assignment for `regressions.py`;
`storage_subjects` serves `storage.py`, `spark_cluster` serves `pipeline.py`, and
`simulated_zookeeper` serves `calibration.py`. `zookeepers` starts
Apache's servers and ours for `wire_differential.py` and the `zookeeper_*.py`, `zookeeper_child`
is the process of ours, and `kazoo_cluster` is what kazoo's suite takes for its cluster.
"""
