"""What a ZooKeeper that was started here has committed, for the trace of a run.

Apache's servers have a log on the disk. The one in Python keeps a record in its process, and
sends it on request. Both have the time of the leader's clock and the zxid of every write.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from watchkeeper.real.python_zookeeper.process_ensemble import ProcessEnsemble
from watchkeeper.real.trace.write_events import CommittedEvent
from watchkeeper.real.zookeeper.txn_log import committed_writes
from watchkeeper.real.zookeepers.ensemble import Ensemble


def committed_by(ensemble: Ensemble, root: str, begin_ns: int) -> Iterator[CommittedEvent]:
    """The events below `root` of a run that began at `begin_ns` (monotonic clock), in order."""
    if not isinstance(ensemble, ProcessEnsemble):
        folders = [server.log_folder for server in ensemble.servers]
        yield from committed_writes(folders, root, begin_ns)
        return
    # The record has wall-clock times, the trace has times since the begin of the run.
    wall_us = time.time_ns() // 1000 - (time.monotonic_ns() - begin_ns) // 1000
    for zxid, session, wall_ms, kind, detail in ensemble.committed():
        at_us = wall_ms * 1000 - wall_us
        yield CommittedEvent(zxid, session, at_us, kind, _below(root, detail))


def _below(root: str, detail: dict[str, Any]) -> dict[str, Any]:
    """A detail with the changes below a root alone, and with paths that begin there."""
    if "did" not in detail:
        return detail
    inside = f"{root}/"
    did = [
        [what, path[len(root) :], *more]
        for what, path, *more in detail["did"]
        if path.startswith(inside)
    ]
    return {**detail, "did": did}
