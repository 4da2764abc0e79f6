"""A ZooKeeper in Python: the ensemble of the model on TCP, in this process or in one of its own.

`listener` connects the ensemble to asyncio: ports, connections, time. `group_commit` makes
writes durable in a data folder. `thread_ensemble` runs both in a thread of this process.
Read `listener`, `thread_ensemble`, `group_commit`.
"""
