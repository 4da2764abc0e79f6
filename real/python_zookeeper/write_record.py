"""A recorder of what an ensemble has committed, as the trace of a run needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.ensemble.recorder import Silent
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.text import WORDS, deleted, described_changes
from watchkeeper.model.wire.opcodes import Opcode

if TYPE_CHECKING:
    from watchkeeper.model.ensemble.entry import Entry

WriteRow = list[Any]
"""zxid, session, milliseconds since 1970, kind of the event and its detail, with full paths."""


class WriteRecord(Silent):
    """Keeps a row for each committed write, and for each begin and end of a session."""

    def __init__(self) -> None:
        self.rows: list[WriteRow] = []

    def committed(self, entry: Entry) -> None:
        """Keep a row; no tree, since each would hold on to a version of all znodes."""
        kind, detail = _event_of(entry)
        self.rows.append([entry.zxid, entry.session, entry.wall_ms, kind, detail])


def _event_of(entry: Entry) -> tuple[str, dict[str, Any]]:
    written = entry.written
    if entry.opcode == Opcode.CREATE_SESSION:
        return EventKind.SESSION_OPENED, {}
    if entry.opcode == Opcode.CLOSE_SESSION:
        kind = EventKind.SESSION_CLOSED if entry.xid else EventKind.SESSION_EXPIRED
        return kind, {"did": [deleted(entry.before, path) for path in written.answer]}
    if isinstance(entry.operation, Failure):  # refused before it was an operation
        return EventKind.REFUSED, {"op": "undecodable"}
    word = WORDS[type(entry.operation)]
    if isinstance(written.answer, Failure):
        return EventKind.REFUSED, {"op": word}
    return EventKind.APPLIED, {"op": word, "did": described_changes(entry.before, written)}
