"""The trace of a run in virtual time: what clients request, with the names of their processes.

A process with one client is one node of the trace. A second client of the same process, while
the session of the first one lives, is a node of its own: `worker#2`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from watchkeeper.model.ensemble.connection import Connection
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.entry import Entry
from watchkeeper.model.ensemble.history import History
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import LINE, NOTHING, Row
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import Request

Received = Callable[[Connection, Request], object]
Lines = dict[tuple[int, int], str]
"""Session and number of a request -> the line of the user's code that it comes from."""


def without_line(row: Row) -> Row:
    """A row without the line of code: what happened, wherever it is written."""
    detail = row[-1]
    if LINE not in detail:
        return row
    return (*row[:-1], {key: value for key, value in detail.items() if key != LINE})


class Record(History):
    """A recorder of one run."""

    def __init__(self, received: Received | None = None, lines: Lines | None = None) -> None:
        super().__init__()
        self._received = received
        self._lines = {} if lines is None else lines
        self._processes: dict[str, str] = {}
        """Address -> the name of the process that has it."""
        self._opened: dict[int, Entry] = {}
        """Sessions that are open and whose client has no answer yet."""
        self._last_session: dict[str, int] = {}
        """Node -> the session that it had last."""

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

    def requested(self, connection: Connection, request: Request) -> None:
        """A request has been received: write it, and let the strikes that wait for it come."""
        super().requested(connection, request)
        if self._received is not None:
            self._received(connection, request)

    def _described(self, connection: Connection, request: Request) -> Mapping[str, Any]:
        detail = super()._described(connection, request)
        # Taken out: a client counts its requests from 1 again after 2,147,483,647.
        lines = self._lines
        line = lines.pop((connection.session, request.xid), "") if lines else ""
        return {**detail, LINE: line} if line else detail

    def committed(self, entry: Entry) -> None:
        """A write has taken effect; a session begins once its client is known."""
        if entry.opcode == Opcode.CREATE_SESSION:
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
