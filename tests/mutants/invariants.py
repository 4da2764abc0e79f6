"""The invariants of a log, by name, and the check of a log that was found after a crash."""

from __future__ import annotations

from typing import Literal

from watchkeeper.model.log.format.contents import Contents, size_of, slice_contents
from watchkeeper.model.log.format.entries import intact_size

Invariant = Literal[
    "flushed is kept",
    "read as appended",
    "entries are whole",
    "readable is there",
    "files stay",
    "closed is kept",
    "age is that of messages",
]

INVARIANTS: dict[Invariant, str] = {
    "flushed is kept": "flushed messages survive any crash, at the same offsets, byte for byte",
    "read as appended": "a read at an offset returns the bytes that were appended there, and "
    "nothing else",
    "entries are whole": "the log never serves a part of a message in place of one",
    "readable is there": "every readable offset is in a file, without a hole",
    "files stay": "the segments of a log, and no others, are its files; it can be appended to",
    "closed is kept": "messages that were appended before the logs were closed survive any crash",
    "age is that of messages": "a segment is rolled for its age only if a message is so old",
}


def broken_after_crash(
    appended: Contents, flushed_end: int, start: int, found: Contents
) -> tuple[Invariant, ...]:
    """Return the invariants that the readable contents of a log violate, from its `start` on.

    `appended` is everything ever appended, from offset 0, with the append at the crash.
    """
    end = start + size_of(found)
    broken: list[Invariant] = []
    kept = slice_contents(found, 0, max(flushed_end - start, 0))
    if kept != slice_contents(appended, start, flushed_end):
        broken.append("flushed is kept")
    if found != slice_contents(appended, start, end):
        broken.append("read as appended")
    if intact_size(found) != end - start:
        broken.append("entries are whole")
    return tuple(broken)
