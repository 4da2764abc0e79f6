"""Reads the registry of a live cluster, and writes nothing.

The tree is walked level by level, every request of a level in flight at once: what a znode
holds and, if it has any, its children. Every answer tells which change the server had
applied last; if the first and the last answer name the same one, all stood together.
Otherwise every znode is looked at once more. One whose data or list of children is no
longer what was read makes the walk begin again, a few times; what still changes then is
put down in the snapshot.

All of it takes one session. Before the first read the server catches up with its leader
(`sync`), so nothing is older than the moment at which the reading began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic, sleep
from typing import Any

from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError

from model import registry
from model.answers import Stat
from model.snapshot import Snapshot, Znode, is_steady, same
from real.access import Access, client_of, connect

IN_FLIGHT = 500
"""How many requests are asked at once."""
ATTEMPTS = 4
PAUSE_S = 0.25
CUT_OFF = (ConnectionLoss, ConnectionClosedError, SessionExpiredError, KazooTimeoutError)


class CutOff(Exception):
    """The connection went while the registry was read, so that too little of it is known."""


class Reader:
    """A connection for reading; use it with `with`."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.client = client_of(access)

    def __enter__(self) -> Reader:
        connect(self.client, self.access)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        self.client.stop()
        self.client.close()

    # --- reading -----------------------------------------------------------------------

    def read(self, group: str | None = None) -> Snapshot:
        """Read the brokers, the topics and the groups, or one group alone."""
        began = monotonic()
        try:
            self._ask(self.client.sync_async, ["/"])
            for attempt in range(1, ATTEMPTS + 1):
                walk = _Walk(self._ask, self.client, group)
                self._ask(self.client.exists_async, ["/"])
                before = int(self.client.last_zxid)
                walk.read()
                zxid = int(self.client.last_zxid)
                changed = walk.look_again() if zxid != before else []
                if not changed:
                    break
                sleep(PAUSE_S * attempt if attempt < ATTEMPTS else 0)
        except CUT_OFF as error:
            raise CutOff(
                f"the connection to {self.access.hosts} was lost while the registry was read "
                f"({type(error).__name__})"
            ) from None
        took_ms = round((monotonic() - began) * 1000)
        return Snapshot(walk.nodes, zxid, took_ms, attempt, walk.unread, tuple(changed))

    def _ask(
        self, request: Callable[[str], Any], paths: Iterable[str]
    ) -> dict[str, Any | KazooException]:
        """Ask the same of many znodes; for each the answer or the error."""
        todo = list(paths)
        answers: dict[str, Any] = {}
        for at in range(0, len(todo), IN_FLIGHT):
            asked = [(path, request(path)) for path in todo[at : at + IN_FLIGHT]]
            for path, result in asked:
                try:
                    answers[path] = result.get(timeout=self.access.timeout_s)
                except CUT_OFF:
                    raise
                except KazooException as error:
                    answers[path] = error
        return answers


class _Walk:
    """One reading of the registry."""

    def __init__(
        self, ask: Callable[..., dict[str, Any]], client: Any, group: str | None
    ) -> None:
        self.ask = ask
        self.client = client
        home = registry.GROUPS if group is None else registry.group_home(group)
        self.roots = (registry.BROKER_IDS, registry.TOPICS, home)
        self.nodes: dict[str, Znode] = {}
        self.unread: dict[str, str] = {}
        self.missing: list[str] = []

    def read(self) -> None:
        """Read level by level."""
        level = list(self.roots)
        while level:
            answers = self.ask(self.client.get_async, level)
            parents = [path for path in level if self._take(path, answers[path])]
            level = []
            for path, names in self.ask(self.client.get_children_async, parents).items():
                if isinstance(names, KazooException):
                    self._fail(path, names)
                else:
                    level += [f"{path}/{name}" for name in sorted(names)]

    def _take(self, path: str, answer: Any) -> bool:
        """Put down what a znode holds; whether it has children that are to be read."""
        if isinstance(answer, KazooException):
            self._fail(path, answer)
            return False
        data, stat = answer
        self.nodes[path] = Znode(data, Stat(*stat))
        return bool(stat.numChildren)

    def _fail(self, path: str, error: KazooException) -> None:
        if isinstance(error, NoNodeError):
            self.missing.append(path)
        elif isinstance(error, NoAuthError):
            self.unread[path] = "may not be read by this client; give its credentials by --auth"
        else:
            self.unread[path] = f"could not be read ({type(error).__name__})"

    def look_again(self) -> list[str]:
        """What is not any more as it was read, offsets aside."""
        paths = [path for path in [*self.nodes, *self.missing] if is_steady(path)]
        answers = self.ask(self.client.exists_async, paths)
        return [path for path in paths if not self._is_as_read(path, answers[path])]

    def _is_as_read(self, path: str, answer: Any) -> bool:
        if isinstance(answer, KazooException):
            return False
        now = None if answer is None else Stat(*answer)
        if path not in self.nodes:
            return now is None and path in self.roots
        return same(self.nodes[path].stat, now)
