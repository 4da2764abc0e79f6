"""One ZooKeeper that is never late, told as a story: who asked for what, who heard of it.

`Story` keeps the newest value of the service and, for each session, the events it has
heard. Answers come back as they are; `error_of` puts a failed one into a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from model.answers import Fired, Stat
from model.errors import Failure
from model.operations import (
    ANY_VERSION,
    OPEN,
    Acl,
    AddWatch,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Operation,
    SetData,
)
from model.zookeeper import machine
from model.zookeeper.machine import Service
from model.zookeeper.watches import Wanted, set_watches

ME, OTHER, THIRD = 1, 2, 3
"""The sessions of most stories."""

OK = "ok"


def error_of(answer: Any) -> str:
    """The error of an answer in a word; that of a multi tells which operation failed."""
    if not isinstance(answer, Failure):
        return OK
    if answer.cause is not None:
        return f"{answer.index}: {answer.cause.kind.__name__}"
    return answer.kind.__name__


def told(event: Fired) -> str:
    """An event in a few words."""
    return f"{event.what.value} {event.path}"


class Story:
    """A service that grows older, with some sessions open."""

    def __init__(self, sessions: Iterable[int] = (ME, OTHER, THIRD)) -> None:
        self.service = Service()
        self.clock_ms = 1_000
        self._heard: dict[int, list[str]] = {}
        for session in sessions:
            self.open(session)

    # --- asking ------------------------------------------------------------------------

    def ask(self, operation: Operation[Any], by: int = ME) -> Any:
        """Do an operation; a millisecond passes with each."""
        self.clock_ms += 1
        done = machine.apply(self.service, by, operation, now_ms=self.clock_ms)
        self._take(done)
        return done.answer

    def must(self, operation: Operation[Any], by: int = ME) -> Any:
        """Do an operation that is to succeed."""
        answer = self.ask(operation, by)
        assert error_of(answer) == OK, f"{operation}: {answer}"
        return answer

    def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        by: int = ME,
        ephemeral: bool = False,
        sequential: bool = False,
        acl: tuple[Acl, ...] = OPEN,
    ) -> str:
        """Create a znode; its path."""
        created: str = self.must(Create(path, data, ephemeral, sequential, acl), by)
        return created

    def delete(self, path: str, *, by: int = ME, version: int = ANY_VERSION) -> None:
        """Delete a znode."""
        self.must(Delete(path, version), by)

    def set(self, path: str, data: bytes | None, *, by: int = ME) -> int:
        """Replace data; the version now."""
        version: int = self.must(SetData(path, data), by)
        return version

    def children(self, path: str) -> tuple[str, ...]:
        """The names below a znode as a server lists them."""
        names: tuple[str, ...] = self.must(GetChildren(path))
        return names

    def data(self, path: str) -> bytes | None:
        """The data of a znode."""
        data: bytes | None = self.must(GetData(path)).data
        return data

    def stat(self, path: str) -> Stat:
        """The Stat of a znode."""
        stat: Stat = self.must(GetData(path)).stat
        return stat

    def is_there(self, path: str) -> bool:
        """Whether there is such a znode."""
        return self.ask(Exists(path)) is not None

    def paths(self) -> set[str]:
        """Every path but those a fresh server has."""
        return {path for path in self.service.tree.nodes if not path.startswith("/zookeeper")} - {
            "/"
        }

    @property
    def zxid(self) -> int:
        """The zxid of the last write."""
        return self.service.tree.zxid

    # --- watching ----------------------------------------------------------------------

    def watch(self, kind: str, path: str, *, by: int = ME) -> None:
        """Leave a watch of a kind: by exists, by get, by children, persistent, recursive."""
        self.ask(
            {
                "exists": Exists(path, watch=True),
                "get": GetData(path, watch=True),
                "children": GetChildren(path, watch=True),
                "persistent": AddWatch(path),
                "recursive": AddWatch(path, recursive=True),
            }[kind],
            by,
        )

    def heard(self, session: int = ME) -> list[str]:
        """What a session has heard since it was last asked."""
        return self._heard.pop(session, [])

    # --- sessions ----------------------------------------------------------------------

    def open(self, session: int, timeout_ms: int = 6000) -> None:
        """Begin a session."""
        self.service = machine.open_session(self.service, session, timeout_ms)

    def close(self, session: int) -> tuple[str, ...]:
        """End a session; the paths it deleted, in order."""
        done = machine.close_session(self.service, session)
        self._take(done)
        deleted: tuple[str, ...] = done.answer
        return deleted

    def drop_connection(self, session: int) -> None:
        """Break the connection of a session."""
        self.service = machine.drop_connection(self.service, session)

    def leave_again(self, session: int, wanted: Wanted, *, since: int) -> list[str]:
        """Re-send a client's watches, as Java's client does; what it missed meanwhile."""
        watches, missed = set_watches(
            self.service.watches, self.service.tree, session, wanted, since
        )
        self.service = Service(self.service.tree, watches)
        return [told(event) for event in missed]

    def _take(self, done: machine.Applied) -> None:
        self.service = done.service
        for session, event in done.fired:
            self._heard.setdefault(session, []).append(told(event))
