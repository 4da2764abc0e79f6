"""What a read makes of the notes that were there before it."""

from __future__ import annotations

from collections import deque
from typing import Any

from model.answers import Fired, Happening, Note
from model.errors import Failure
from model.operations import AddWatch, Exists, GetChildren, GetData, Pipelined

CHILD_NOTES = (Happening.CHILDREN,)
DATA_NOTES = (Happening.CREATED, Happening.CHANGED, Happening.DELETED)


def without_older_notes(inbox: deque[Note], ask: Any, answer: Any, known: int) -> deque[Note]:
    """The inbox after a read was answered that has left a watch again.

    Older notes of that watch say nothing new. A note that came while a batch was under way
    may be newer than the read inside it; of these only the first ones, `known` when the
    batch was sent, are surely older.
    """
    if not inbox or type(answer) is Failure:
        return inbox
    if type(ask) is not Pipelined:
        return deque(note for note in inbox if not says_nothing_new(note, ask))
    read = [
        part for part, one in zip(ask.operations, answer, strict=True) if type(one) is not Failure
    ]
    return deque(
        note
        for at, note in enumerate(inbox)
        if at >= known or not any(says_nothing_new(note, part) for part in read)
    )


def says_nothing_new(note: Note, ask: Any) -> bool:
    """Whether a note is of the watch that this read leaves again."""
    if not isinstance(note, Fired) or note.path != ask.path or isinstance(ask, AddWatch):
        return False
    if not getattr(ask, "watch", False):
        return False
    assert isinstance(ask, Exists | GetData | GetChildren), "only reads leave watches"
    return note.what in (CHILD_NOTES if isinstance(ask, GetChildren) else DATA_NOTES)
