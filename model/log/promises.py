"""What a log promises, by name, and what of it a log breaks that was found after a crash."""

from __future__ import annotations

from typing import Literal

from model.log.contents import Contents, part_of, size_of
from model.log.entries import whole_entries

Promise = Literal[
    "flushed is kept",
    "read as appended",
    "entries are whole",
    "readable is there",
    "files stay",
    "closed is kept",
    "age is that of messages",
]

PROMISES: dict[Promise, str] = {
    "flushed is kept": "what was flushed survives any crash, at the same offsets, byte for byte",
    "read as appended": "what is read at an offset is what was appended there, and nothing else",
    "entries are whole": "no part of a message is ever served in place of one",
    "readable is there": "what may be read by its offset is in a file, without a hole",
    "files stay": "the segments of a log, and no others, are its files; it can be appended to",
    "closed is kept": "what was appended before the logs were closed survives any crash",
    "age is that of messages": "a segment is rolled for its age only if a message is so old",
}


def broken_after_crash(
    appended: Contents, flushed_end: int, start: int, found: Contents
) -> tuple[Promise, ...]:
    """What is broken by what was found of a log: all of it that can be read, from its start.

    `appended` is all that ever was, from offset 0, with what was under way at the crash.
    """
    end = start + size_of(found)
    broken: list[Promise] = []
    kept = part_of(found, 0, max(flushed_end - start, 0))
    if kept != part_of(appended, start, flushed_end):
        broken.append("flushed is kept")
    if found != part_of(appended, start, end):
        broken.append("read as appended")
    if whole_entries(found) != end - start:
        broken.append("entries are whole")
    return tuple(broken)
