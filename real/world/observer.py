"""Watches a run's part of the tree from a session of its own: what was deleted, and when.

One watch on the root that stays and covers all below it (ZooKeeper 3.6) tells of every
change, in order. A session that ends because its client was silent shows in no request;
it shows here, by the ephemerals that go with it.
"""

from __future__ import annotations

import time
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

from model.answers import Fired, Happening
from model.errors import Failure
from model.operations import AddWatch, GetChildren, Operation
from real.access import Access
from real.client import Client, Reply, Said
from real.problems import EnvironmentProblem

TIMEOUT_MS = 10_000


class Observer:
    """One session that only looks."""

    def __init__(self, access: Access, root: str) -> None:
        self.access = access
        self.deletions: list[tuple[int, str]] = []
        """Moment of the monotonic clock, path below the root; in order."""
        self._known: set[str] = set()
        self._found: set[str] = set()
        self._asked: dict[int, str] = {}
        """Ticket -> the path whose children were asked for; empty for the watch itself."""
        self._refused: Failure | None = None
        self._is_there = Event()
        self._queue: SimpleQueue[Said | None] = SimpleQueue()
        options = dict(access.options)
        self._client = Client(access.servers, root, TIMEOUT_MS, self._queue.put, options)
        self._thread = Thread(target=self._listen, name="observer", daemon=True)

    def start(self) -> None:
        """Begin to look; EnvironmentProblem where this ZooKeeper has no watches that stay."""
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
        while (said := self._queue.get()) is not None:
            what = said.what
            if isinstance(what, Fired):
                self._note(what, said.at_ns)
            elif isinstance(what, Reply):
                self._note_reply(what, said.life)
            elif what == "connected":
                self._look_at_all(said.life)

    def _note(self, fired: Fired, at_ns: int) -> None:
        if fired.what is Happening.CREATED:
            self._known.add(fired.path)
            self._found.add(fired.path)
        elif fired.what is Happening.DELETED:
            self._known.discard(fired.path)
            self._found.discard(fired.path)
            self.deletions.append((at_ns, fired.path))

    # --- a new connection: watches have to be left again, and something may have been missed

    def _look_at_all(self, life: int) -> None:
        self._asked.clear()
        self._found.clear()
        self._ask(AddWatch("/", recursive=True), "", life)
        self._ask(GetChildren("/"), "/", life)

    def _ask(self, operation: Operation[Any], path: str, life: int) -> None:
        tickets = self._client.submit((operation,), life)
        if not isinstance(tickets, Failure):
            self._asked[tickets[0]] = path

    def _note_reply(self, reply: Reply, life: int) -> None:
        path = self._asked.pop(reply.ticket, None)
        if path == "" and isinstance(reply.answer, Failure):
            self._refused = reply.answer
        elif path and isinstance(reply.answer, tuple):
            for name in reply.answer:
                child = f"{path.rstrip('/')}/{name}"
                self._found.add(child)
                self._ask(GetChildren(child), child, life)
        if path is not None and not self._asked:
            self._all_seen()

    def _all_seen(self) -> None:
        """Everything has been listed; what is not there any longer went while nobody looked."""
        now = time.monotonic_ns()
        self.deletions.extend((now, path) for path in sorted(self._known - self._found))
        self._known = set(self._found)
        self._is_there.set()
