"""The trace of a run in virtual time: what clients request, with the names of their processes.

A process with one client is one node of the trace. A second client of the same process, while
the session of the first one lives, is a node of its own: `worker#2`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast, overload

from watchkeeper.model.ensemble.connection import Connection
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.entry import Entry
from watchkeeper.model.ensemble.history import History, answer_of, detail_of, word_of
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import LINE, NOTHING, Row
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import Ping, Request
from watchkeeper.virtual.threads.scheduler import Scheduler

NS_A_MS = 1_000_000
Received = Callable[[Connection, Request], object]
Lines = dict[tuple[int, int], str]
"""Session and number of a request -> the line of the user's code that it comes from."""


def without_line(row: Row) -> Row:
    """A row without the line of code: what happened, wherever it is written."""
    detail = row[-1]
    if LINE not in detail:
        return row
    return (*row[:-1], {key: value for key, value in detail.items() if key != LINE})


Detail = Mapping[str, Any] | tuple[Any, Any]
"""The detail of a row; or, of a request, its body and its line, of a response, the kind of its
request and its error: that is put into words when the row is read."""
Noted = tuple[int, str, str, int, int, Detail]
"""Moment in ns, node, kind, session, zxid and detail of a row."""


# The attributes of an enum are found slowly, and each request reads some.
_REQUEST, _RESPONSE = EventKind.REQUEST, EventKind.RESPONSE
_CREATE_SESSION = Opcode.CREATE_SESSION


class Rows(Sequence[Row]):
    """The rows of a run, which are made when the first of them is read.

    Most runs violate nothing, and their rows have no reader.
    """

    def __init__(self, noted: Sequence[Noted], begun_ms: float) -> None:
        self._noted = noted
        self._begun_ms = begun_ms

    @cached_property
    def _rows(self) -> list[Row]:
        return [self._row_of(*noted) for noted in self._noted]

    def _row_of(
        self, at_ns: int, node: str, kind: str, session: int, zxid: int, detail: Detail
    ) -> Row:
        if type(detail) is tuple:
            detail = _asked(*detail) if kind == _REQUEST else _answered(*detail)
        t_us = int((at_ns / NS_A_MS - self._begun_ms) * 1000)
        return (t_us, node, kind, session, "", "", "", zxid, cast(Mapping[str, Any], detail))

    def __len__(self) -> int:
        return len(self._noted)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self._rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._rows == list(other)

    __hash__ = None  # type: ignore[assignment]


def _asked(body: Any, line: str) -> Mapping[str, Any]:
    detail = detail_of(body)
    return {**detail, LINE: line} if line else detail


def _answered(kind: type[Any], error: int) -> Mapping[str, Any]:
    return answer_of(word_of(kind), error)


class Record(History):
    """A recorder of one run."""

    def __init__(
        self,
        scheduler: Scheduler,
        received: Received | None = None,
        lines: Lines | None = None,
    ) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._noted: list[Noted] = []
        self._received = received
        self._lines = {} if lines is None else lines
        self._processes: dict[str, str] = {}
        """Address -> the name of the process that has it."""
        self._opened: dict[int, Entry] = {}
        """Sessions that are open and whose client has no answer yet."""
        self._last_session: dict[str, int] = {}
        """Node -> the session that it had last."""

    @property
    def rows(self) -> Sequence[Row]:
        """The rows of the trace."""
        return Rows(tuple(self._noted), self._begun_ms)

    def begin(self, ensemble: Ensemble) -> None:
        """Begin the trace of an ensemble."""
        super().begin(ensemble)

    def name(self, address: str, process: str) -> None:
        """Name the process that has an address."""
        self._processes[address] = process

    def write(
        self, node: str, kind: str, session: int = 0, detail: Mapping[str, Any] = NOTHING
    ) -> None:
        """Write an event of a node."""
        self._write(node, kind, session, detail)

    def _write(
        self,
        node: str,
        kind: str,
        session: int = 0,
        detail: Detail = NOTHING,
        *,
        zxid: int = 0,
    ) -> None:
        if self._ensemble is not None:
            self._noted.append((self._scheduler.now_ns, node, kind, session, zxid, detail))

    def requested(self, connection: Connection, request: Request) -> None:
        """A request has been received: note it, and let the strikes that wait for it come."""
        session, body = connection.session, request.body
        if session and type(body) is not Ping:
            # Taken out: a client counts its requests from 1 again after 2,147,483,647.
            line = self._lines.pop((session, request.xid), "")
            self._write(self.name_of(session), _REQUEST, session, (body, line))
        if self._received is not None:
            self._received(connection, request)

    def answered(self, connection: Connection, request: Request, error: int, zxid: int) -> None:
        """A response is sent."""
        session, kind = connection.session, type(request.body)
        if session and kind is not Ping:
            name = self.name_of(session)
            self._write(name, _RESPONSE, session, (kind, error), zxid=max(zxid, 0))

    def committed(self, entry: Entry) -> None:
        """A write has taken effect; a session begins once its client is known."""
        if entry.opcode == _CREATE_SESSION:
            self._opened[entry.session] = entry
        else:
            super().committed(entry)

    def connected(self, connection: Connection, *, is_new: bool) -> None:
        """A connection has a session."""
        session = connection.session
        if session not in self._names:
            self._names[session] = self._node_of(connection.host, session)
        opened = self._opened.pop(session, None)
        if opened is not None:
            super().committed(opened)
        super().connected(connection, is_new=is_new)

    def _node_of(self, address: str, session: int) -> str:
        name = self._processes.get(address, address)
        assert self._ensemble is not None, "the trace has begun"
        number, node = 1, name
        while self._last_session.get(node) in self._ensemble.head.sessions:
            if self._address_of(self._last_session[node]) != address:
                break  # an earlier process of this name
            number += 1
            node = f"{name}#{number}"
        if node not in self._last_session and number > 1:
            self._write(node, EventKind.STARTED, session)
        self._last_session[node] = session
        return node

    def _address_of(self, session: int) -> str | None:
        assert self._ensemble is not None, "the trace has begun"
        connection = self._ensemble.owners.get(session)
        return None if connection is None else connection.host
