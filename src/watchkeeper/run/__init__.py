"""Runs of a scenario: the commands `run`, `compare`, `report`, `diff` and the listings.

`command` is the command line. `run` runs a scenario in simulation and fills its folder;
`live_run` runs it with processes and a real ZooKeeper. `compare` runs both, and `comparison`
says where they differ. `catalogue` lists scenarios and variants; `difference` shows where two
recorded runs differ.
"""
