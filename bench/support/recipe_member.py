"""A member of a group that shares a set by kazoo's own recipe, `SetPartitioner`.

    python bench/support/recipe_member.py

One process is one member, as `python -m watchkeeper.real.member.main` is for ours. Its task comes
as a line of JSON on standard input; the line `leave` makes it leave, and the end of the input
ends it at once. It writes a trace of the same form as ours, with a few rows for each rebalance:
it registers, lets go of what it has, has acquired its share. The last row has what it holds, and
the number of requests that it has sent so far.

It takes part as the recipe's documentation has it, but it waits for a change of the state
where the documentation looks again and again: nothing could react sooner.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from kazoo.client import KazooClient
from kazoo.recipe.partitioner import SetPartitioner
from kazoo.recipe.party import ShallowParty

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.trace.writer import TraceWriter


class Task(NamedTuple):
    """The task of a member: the partitions to share, and where."""

    node: str
    hosts: str
    path: str
    """The partitioner's own folder."""
    partitions: list[str]
    settle_s: float
    """The recipe's `time_boundary`: how long the members must be the same ones."""
    session_timeout_ms: int
    trace_path: str
    begin_ns: int


class CountingClient(KazooClient):
    """A client that counts its requests; pings and connecting do not count."""

    requests = 0

    def _call(self, request: Any, result: Any) -> Any:
        self.requests += 1
        return super()._call(request, result)


class ClockedParty(ShallowParty):
    """The recipe's register of members; the trace has the moment at which a member registers."""

    def __init__(self, client: Any, path: str, *, identifier: str, trace: TraceWriter) -> None:
        super().__init__(client, path, identifier=identifier)
        self.trace = trace

    def join(self) -> Any:
        """Register."""
        self._ensure_parent()
        self.trace.write("registers", {"requests": self.client.requests})
        return super().join()


class Sharer:
    """A member that shares partitions."""

    def __init__(self, task: Task) -> None:
        self.trace = TraceWriter(Path(task.trace_path), task.node, "", task.begin_ns)
        self.is_leaving = False
        logging.getLogger("kazoo").setLevel(logging.ERROR)
        self.client = CountingClient(task.hosts, timeout=task.session_timeout_ms / 1000)
        self.client.start()
        self.client.ShallowParty = partial(ClockedParty, self.client, trace=self.trace)
        self.changed = self.client.handler.event_object()
        self.partitioner = SetPartitioner(
            self.client,
            task.path,
            task.partitions,
            identifier=task.node,
            time_boundary=task.settle_s,
            state_change_event=self.changed,
        )

    def share(self) -> None:
        """Take part until the order to leave."""
        while not self.is_leaving:
            self.changed.clear()  # before the state is looked at: no change can be missed
            if self.partitioner.release:
                self._write("lets go")
                self.partitioner.release_set()
                continue
            if self.partitioner.failed:
                self._write("fails")
                break
            if self.partitioner.acquired:
                self._write("acquired", holds=list(self.partitioner))
            self.changed.wait()
        self.partitioner.finish()
        self.client.stop()
        self._write(EventKind.ENDED)

    def _write(self, kind: str, **detail: Any) -> None:
        session = 0 if self.client.client_id is None else self.client.client_id[0]
        detail["requests"] = self.client.requests
        self.trace.write(kind, detail, session=session)

    def leave(self) -> None:
        """Release everything and end."""
        self.is_leaving = True
        self.changed.set()


def main() -> None:
    """Report that the imports are done, read the task, and perform it."""
    print(json.dumps({"ready": os.getpid()}), flush=True)
    line = sys.stdin.readline()
    if not line:
        return
    sharer = Sharer(Task(**json.loads(line)))

    def obey() -> None:
        for order in sys.stdin:
            assert order.strip() == "leave", "there is no other order"
            sharer.leave()
        os._exit(0)

    Thread(target=obey, daemon=True).start()
    sharer.share()


if __name__ == "__main__":
    main()
