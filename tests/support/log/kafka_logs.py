"""Logs of brokers for tests: what a producer sent, as files, and the rows that are due."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

from model.log import message_08, message_set
from model.log.codecs import Codec
from model.log.message import Message
from model.log.message_08 import KeyedMessage


class Row(NamedTuple):
    """A message, as it is to come out."""

    offset: int
    next_offset: int
    key: bytes | None
    payload: bytes | None
    codec: str


class Sent(NamedTuple):
    """What is appended in one go."""

    messages: tuple[KeyedMessage, ...]
    codec: Codec = Codec.NONE
    magic: int = 1
    rolls: bool = False
    """Whether a segment begins with it."""


class Entry(NamedTuple):
    """An entry: its segment, where it begins and ends in it, and what is due of it."""

    segment: int
    begin: int
    end: int
    rows: list[Row]


@dataclass
class BuiltLog:
    """A log: what its segments hold, and the rows that are due."""

    format: str
    start: int = 0
    segments: dict[int, bytes] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The offset of whatever is appended next."""
        return self.rows[-1].next_offset if self.rows else self.start

    def write(self, folder: Path) -> Path:
        """Write it into a folder; where that is."""
        folder.mkdir(parents=True, exist_ok=True)
        suffix = ".kafka" if self.format == "0.7" else ".log"
        for start, data in self.segments.items():
            (folder / f"{start:020d}{suffix}").write_bytes(data)
        return folder

    def messages(self, low: int, high: int) -> list[Row]:
        """The rows with offsets from the one up to the other."""
        return [row for row in self.rows if low <= row.offset < high]


def built(sent: Sequence[Sent], form: str = "0.7", start: int = 0) -> BuiltLog:
    """A log with what was sent."""
    log = BuiltLog(form, start)
    segment = offset = start
    data = b""
    for one in sent:
        if one.rolls and data:
            log.segments[segment] = data
            segment, data = offset, b""
        for entry, rows in _entries(one, form, offset):
            log.entries.append(Entry(segment, len(data), len(data) + len(entry), rows))
            data += entry
            log.rows += rows
            offset = rows[-1].next_offset
    log.segments[segment] = data
    return log


def _entries(sent: Sent, form: str, offset: int) -> Iterator[tuple[bytes, list[Row]]]:
    """Each entry, and the rows that are due of it."""
    codec = sent.codec.name.lower()
    groups = [[one] for one in sent.messages]
    if sent.codec is not Codec.NONE:
        groups = [list(sent.messages)] if sent.messages else []
    for group in groups:
        if form == "0.8":
            entry = message_08.wrap(group, sent.codec, offset)
            numbered = enumerate(group, offset)
            rows = [Row(at, at + 1, one.key, one.value, codec) for at, one in numbered]
        else:
            entry = message_set.wrap(
                [Message.of(one.value or b"", magic=sent.magic) for one in group], sent.codec
            )
            end = offset + len(entry)
            rows = [Row(offset, offset, None, one.value or b"", codec) for one in group]
            rows[-1] = rows[-1]._replace(next_offset=end)
        yield entry, rows
        offset = rows[-1].next_offset


def plain(*payloads: bytes, rolls: bool = False) -> Sent:
    """Messages without keys, not compressed."""
    return Sent(tuple(KeyedMessage(None, one) for one in payloads), rolls=rolls)


# --- any log ---------------------------------------------------------------------------

LOOK_ALIKES = (
    message_set.encode([Message.of(b"inner")] * 3),
    message_set.encode([Message.of(b"inner", magic=0)] * 2),
    message_08.encode([KeyedMessage(None, b"inner"), KeyedMessage(b"k", b"v")], 3),
    b"\0" * 40,
    b"\0\0\0\x06\x01\0" * 5,
)
"""Payloads in which something looks like entries."""

payloads = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(LOOK_ALIKES),
    st.integers(0, 300).map(lambda size: b"x" * size),
)
keyed = st.builds(
    KeyedMessage, st.one_of(st.none(), st.binary(max_size=5)), st.one_of(st.none(), payloads)
)


@st.composite
def sents(draw: st.DrawFn, form: str) -> Sent:
    """Some messages, sent together."""
    codec = draw(st.sampled_from(list(Codec)))
    magic = draw(st.sampled_from([1, 1, 1, 0])) if codec is Codec.NONE else 1
    messages = draw(st.lists(keyed, min_size=1, max_size=8))
    if form == "0.7":
        messages = [KeyedMessage(None, one.value or b"") for one in messages]
    return Sent(tuple(messages), codec, magic, draw(st.booleans()))


def logs(form: str, max_size: int = 10) -> st.SearchStrategy[BuiltLog]:
    """Any log."""
    return st.builds(
        built,
        st.lists(sents(form), max_size=max_size),
        st.just(form),
        st.sampled_from([0, 1, 1000, 2**33]),
    )


# --- logs of brokers -------------------------------------------------------------------


def in_turn(form: str, count: int, codec: Codec = Codec.NONE, rolls_every: int = 4) -> BuiltLog:
    """A log with so many batches of three messages, in several segments."""
    sent = [
        Sent(
            tuple(
                KeyedMessage(_key(form, at), b"message %d of %d" % (one, at)) for one in range(3)
            ),
            codec,
            rolls=at % rolls_every == 0,
        )
        for at in range(count)
    ]
    return built(sent, form)


def _key(form: str, at: int) -> bytes | None:
    return b"key %d" % at if form == "0.8" and at % 2 else None


def brokers(form: str = "0.7") -> dict[str, BuiltLog]:
    """Folder -> the log in it, of two brokers."""
    return {
        "1/clicks-0": in_turn(form, 10),
        "1/clicks-1": in_turn(form, 7, Codec.GZIP),
        "2/page views-0": in_turn(form, 9, Codec.SNAPPY, rolls_every=3),
    }


def written(home: Path, logs: dict[str, BuiltLog]) -> Path:
    """Write logs into their folders below a folder."""
    for name, log in logs.items():
        log.write(home / name)
    return home
