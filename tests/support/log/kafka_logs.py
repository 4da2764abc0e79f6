"""Logs of brokers for tests: the messages of a producer as files, and the expected rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

from watchkeeper.model.log.format import message_08, message_set_07
from watchkeeper.model.log.format.codecs import CODECS_07, CODECS_08, Codec
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_08 import KeyedMessage


class Row(NamedTuple):
    """A message as it is expected to be read."""

    offset: int
    next_offset: int
    key: bytes | None
    payload: bytes | None
    codec: str


class Sent(NamedTuple):
    """The messages of one append."""

    messages: tuple[KeyedMessage, ...]
    codec: Codec = Codec.NONE
    magic: int = 1
    rolls: bool = False
    """Whether a segment begins with it."""


class Entry(NamedTuple):
    """An entry: its segment, its begin and end there, and its expected rows."""

    segment: int
    begin: int
    end: int
    rows: list[Row]


@dataclass
class BuiltLog:
    """A log: the contents of its segments, and the expected rows."""

    format: str
    start: int = 0
    segments: dict[int, bytes] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The offset of the next append."""
        return self.rows[-1].next_offset if self.rows else self.start

    def write(self, folder: Path) -> Path:
        """Write the log into a folder; return the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        suffix = ".kafka" if self.format == "0.7" else ".log"
        for start, data in self.segments.items():
            (folder / f"{start:020d}{suffix}").write_bytes(data)
        return folder

    def messages(self, low: int, high: int) -> list[Row]:
        """Return the rows with offsets from `low` to below `high`."""
        return [row for row in self.rows if low <= row.offset < high]


def built(sent: Sequence[Sent], form: str = "0.7", start: int = 0) -> BuiltLog:
    """Return a log of these appends."""
    log = BuiltLog(form, start)
    segment = offset = start
    data = b""
    for message in sent:
        if message.rolls and data:
            log.segments[segment] = data
            segment, data = offset, b""
        for entry, rows in _entries(message, form, offset):
            log.entries.append(Entry(segment, len(data), len(data) + len(entry), rows))
            data += entry
            log.rows += rows
            offset = rows[-1].next_offset
    log.segments[segment] = data
    return log


def _entries(sent: Sent, form: str, offset: int) -> Iterator[tuple[bytes, list[Row]]]:
    """Yield each entry with its expected rows."""
    codec = sent.codec.name.lower()
    groups = [[message] for message in sent.messages]
    if sent.codec is not Codec.NONE:
        groups = [list(sent.messages)] if sent.messages else []
    for group in groups:
        if form == "0.8":
            entry = message_08.wrap(group, sent.codec, offset)
            numbered = enumerate(group, offset)
            rows = [
                Row(at, at + 1, message.key, message.value, codec) for at, message in numbered
            ]
        else:
            entry = message_set_07.wrap(
                [Message.of(member.value or b"", magic=sent.magic) for member in group],
                sent.codec,
            )
            end = offset + len(entry)
            rows = [Row(offset, offset, None, member.value or b"", codec) for member in group]
            rows[-1] = rows[-1]._replace(next_offset=end)
        yield entry, rows
        offset = rows[-1].next_offset


def plain(*payloads: bytes, rolls: bool = False) -> Sent:
    """Messages without keys, not compressed."""
    return Sent(tuple(KeyedMessage(None, payload) for payload in payloads), rolls=rolls)


# --- any log ---------------------------------------------------------------------------

LOOK_ALIKES = (
    message_set_07.encode([Message.of(b"inner")] * 3),
    message_set_07.encode([Message.of(b"inner", magic=0)] * 2),
    message_08.encode([KeyedMessage(None, b"inner"), KeyedMessage(b"k", b"v")], 3),
    b"\0" * 40,
    b"\0\0\0\x06\x01\0" * 5,
)
"""Payloads that contain bytes like those of entries."""

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
    codec = draw(st.sampled_from(sorted(CODECS_07 if form == "0.7" else CODECS_08)))
    magic = draw(st.sampled_from([1, 1, 1, 0])) if codec is Codec.NONE else 1
    messages = draw(st.lists(keyed, min_size=1, max_size=8))
    if form == "0.7":
        messages = [KeyedMessage(None, message.value or b"") for message in messages]
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
    """Return a log of `count` batches of three messages, in several segments."""
    sent = [
        Sent(
            tuple(
                KeyedMessage(_key(form, at), b"message %d of %d" % (number, at))
                for number in range(3)
            ),
            codec,
            rolls=at % rolls_every == 0,
        )
        for at in range(count)
    ]
    return built(sent, form)


def _key(form: str, at: int) -> bytes | None:
    return b"key %d" % at if form == "0.8" and at % 2 else None


LAST_CODEC = {"0.7": Codec.SNAPPY, "0.8": Codec.LZ4}


def brokers(form: str = "0.7") -> dict[str, BuiltLog]:
    """Return the logs of two brokers, by folder."""
    return {
        "1/clicks-0": in_turn(form, 10),
        "1/clicks-1": in_turn(form, 7, Codec.GZIP),
        "2/page views-0": in_turn(form, 9, LAST_CODEC[form], rolls_every=3),
    }


def written(home: Path, logs: dict[str, BuiltLog]) -> Path:
    """Write logs into their folders below a folder."""
    for name, log in logs.items():
        log.write(home / name)
    return home
