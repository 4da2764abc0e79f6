"""Observes a run's subtree from a session of its own: what was deleted, and when.

One persistent recursive watch on the root (ZooKeeper 3.6) reports every change in order. The
expiry of a session shows in no request; here it shows by its ephemerals.
"""

from __future__ import annotations

import time
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, NamedTuple

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Fired, WatchEventType
from watchkeeper.model.actor.operations import AddWatch, GetChildren, Operation
from watchkeeper.real.access import Access
from watchkeeper.real.client.client import Client, ClientEvent, Reply
from watchkeeper.real.errors import EnvironmentProblem

TIMEOUT_MS = 10_000


class Deletion(NamedTuple):
    """A znode that has disappeared."""

    at_ns: int
    """When the observer saw it (monotonic clock)."""
    path: str
    """Relative to the root."""
    zxid: int = 0
    """The zxid of the write that deleted it; 0 if the server did not report it."""


class Observer:
    """A session that only observes."""

    def __init__(self, access: Access, root: str) -> None:
        self.access = access
        self.deletions: list[Deletion] = []
        """In the order in which they were seen."""
        self._known: set[str] = set()
        self._found: set[str] = set()
        self._pending: dict[int, str] = {}
        """Ticket -> the path whose children were requested; empty for the watch itself."""
        self._refused: Failure | None = None
        self._is_there = Event()
        self._queue: SimpleQueue[ClientEvent | None] = SimpleQueue()
        options = dict(access.options)
        self._client = Client(access.servers, root, TIMEOUT_MS, self._queue.put, options)
        self._thread = Thread(target=self._listen, name="observer", daemon=True)

    def start(self) -> None:
        """Start observing; raises EnvironmentProblem if the server lacks persistent watches."""
        self._thread.start()
        self._client.start()
        if not self._is_there.wait(self.access.timeout_s) or self._refused is not None:
            why = "it did not answer" if self._refused is None else self._refused.name
            self.stop()
            raise EnvironmentProblem(
                f"the ZooKeeper at {self.access.hosts} should tell of every change below the "
                f"run's root, but it does not ({why}); a live run needs ZooKeeper 3.6 or later"
            )

    def stop(self) -> None:
        """End the session, unless that has been done."""
        if self._thread.is_alive():
            self._client.close()
            self._queue.put(None)
            self._thread.join()

    def _listen(self) -> None:
        while (event := self._queue.get()) is not None:
            content = event.content
            if isinstance(content, Fired):
                self._record(content, event)
            elif isinstance(content, Reply):
                self._record_reply(content, event.generation)
            elif content == "connected":
                self._list_all(event.generation)

    def _record(self, fired: Fired, event: ClientEvent) -> None:
        if fired.what is WatchEventType.CREATED:
            self._known.add(fired.path)
            self._found.add(fired.path)
        elif fired.what is WatchEventType.DELETED:
            self._known.discard(fired.path)
            self._found.discard(fired.path)
            self.deletions.append(Deletion(event.at_ns, fired.path, event.zxid))

    # --- a new connection: the watch has to be set again, and changes may have been missed --

    def _list_all(self, generation: int) -> None:
        self._pending.clear()
        self._found.clear()
        self._send(AddWatch("/", recursive=True), "", generation)
        self._send(GetChildren("/"), "/", generation)

    def _send(self, operation: Operation[Any], path: str, generation: int) -> None:
        tickets = self._client.submit((operation,), generation)
        if not isinstance(tickets, Failure):
            self._pending[tickets[0]] = path

    def _record_reply(self, reply: Reply, generation: int) -> None:
        path = self._pending.pop(reply.ticket, None)
        if path == "" and isinstance(reply.answer, Failure):
            self._refused = reply.answer
        elif path and isinstance(reply.answer, tuple):
            for name in reply.answer:
                child = f"{path.rstrip('/')}/{name}"
                self._found.add(child)
                self._send(GetChildren(child), child, generation)
        if path is not None and not self._pending:
            self._listing_done()

    def _listing_done(self) -> None:
        """The subtree is listed completely; what is missing was deleted while disconnected."""
        now = time.monotonic_ns()
        self.deletions.extend(Deletion(now, path) for path in sorted(self._known - self._found))
        self._known = set(self._found)
        self._is_there.set()
