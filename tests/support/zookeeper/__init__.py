"""Support for tests of ZooKeeper.

`script` applies operations to the sequential specification; `oracle` is a second, naive
implementation; `worlds` and `real_client` play one script in every world, and `programs` runs
scripts in the simulation.
"""
