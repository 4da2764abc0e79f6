"""The sequential ZooKeeper without delays, for tests that are written as scripts.

`Script` has the current state of the service and the events of each session. Answers are returned
unchanged; `error_of` reduces a failure to a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Fired, Stat
from watchkeeper.model.actor.operations import (
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
from watchkeeper.model.zookeeper import standalone
from watchkeeper.model.zookeeper.standalone import Server
from watchkeeper.model.zookeeper.watches import Wanted, set_watches

ME, OTHER, THIRD = 1, 2, 3
"""The sessions of most tests."""

OK = "ok"


def error_of(answer: Any) -> str:
    """The error of an answer in a word; for a multi, also the operation that failed."""
    if not isinstance(answer, Failure):
        return OK
    if answer.cause is not None:
        return f"{answer.index}: {answer.cause.kind.__name__}"
    return answer.kind.__name__


def text_of(event: Fired) -> str:
    """An event in a few words."""
    return f"{event.what.value} {event.path}"


class Script:
    """A service with some open sessions."""

    def __init__(self, sessions: Iterable[int] = (ME, OTHER, THIRD)) -> None:
        self.server = Server()
        self.clock_ms = 1_000
        self._heard: dict[int, list[str]] = {}
        for session in sessions:
            self.open(session)

    # --- asking ------------------------------------------------------------------------

    def ask(self, operation: Operation[Any], by: int = ME) -> Any:
        """Perform an operation; each takes a millisecond."""
        self.clock_ms += 1
        done = standalone.apply(self.server, by, operation, now_ms=self.clock_ms)
        self._take(done)
        return done.answer

    def must(self, operation: Operation[Any], by: int = ME) -> Any:
        """Perform an operation that has to succeed."""
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
        """Create a znode; return its path."""
        created: str = self.must(Create(path, data, ephemeral, sequential, acl), by)
        return created

    def delete(self, path: str, *, by: int = ME, version: int = ANY_VERSION) -> None:
        """Delete a znode."""
        self.must(Delete(path, version), by)

    def set(self, path: str, data: bytes | None, *, by: int = ME) -> int:
        """Replace data; return the new version."""
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
        """Whether this znode exists."""
        return self.ask(Exists(path)) is not None

    def paths(self) -> set[str]:
        """Every path except those of a fresh server."""
        return {path for path in self.server.tree.nodes if not path.startswith("/zookeeper")} - {
            "/"
        }

    @property
    def zxid(self) -> int:
        """The zxid of the last write."""
        return self.server.tree.zxid

    # --- watching ----------------------------------------------------------------------

    def watch(self, kind: str, path: str, *, by: int = ME) -> None:
        """Set a watch of a kind: by exists, by get, by children, persistent, recursive."""
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
        """The events of a session since the last call."""
        return self._heard.pop(session, [])

    # --- sessions ----------------------------------------------------------------------

    def open(self, session: int, timeout_ms: int = 6000) -> None:
        """Open a session."""
        self.server = standalone.open_session(self.server, session, timeout_ms)

    def close(self, session: int) -> tuple[str, ...]:
        """End a session; return the paths that it deleted, in order."""
        done = standalone.close_session(self.server, session)
        self._take(done)
        deleted: tuple[str, ...] = done.answer
        return deleted

    def drop_connection(self, session: int) -> None:
        """Break the connection of a session."""
        self.server = standalone.drop_connection(self.server, session)

    def leave_again(self, session: int, wanted: Wanted, *, since: int) -> list[str]:
        """Set watches again, as the Java client does; return what they missed meanwhile."""
        watches, missed = set_watches(
            self.server.watches, self.server.tree, session, wanted, since
        )
        self.server = replace(self.server, watches=watches)
        return [text_of(event) for event in missed]

    def _take(self, done: standalone.Applied) -> None:
        self.server = done.server
        for session, event in done.fired:
            self._heard.setdefault(session, []).append(text_of(event))
