"""A ZooKeeper for tests, with faults on request.

    from watchkeeper.testing import ZooKeeper

    with ZooKeeper() as zookeeper:
        client = zookeeper.client()
        lost = zookeeper.drop_next_reply("/orders")
        ...
        assert lost.effects

It needs no Java and no installation; only `client()` needs kazoo, and any client of ZooKeeper
may use `hosts`. In pytest the fixture `zookeeper` is a `Handle` below a chroot of its own.

`zookeeper` starts the servers, `handle` has what a test does with them, `fault` what a fault has
struck, `history` the trace of all requests, and `shared` what the fixture of pytest needs. Read
`handle` first.
"""

from __future__ import annotations

from watchkeeper.model.ensemble.control import ControlError
from watchkeeper.testing.fault import Fault
from watchkeeper.testing.handle import Handle
from watchkeeper.testing.history import History
from watchkeeper.testing.zookeeper import ZooKeeper

__all__ = ["ControlError", "Fault", "Handle", "History", "ZooKeeper"]
