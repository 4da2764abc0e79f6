"""The events that every world writes, and their file format.

A trace is one flat table in the order of events. Its columns are `COLUMNS`; the meaning of each
kind of event is in `kinds`. A file is JSON lines: a header, then one line an event.

The *fingerprint* is the SHA-256 of the events alone: `CHUNK` at a time as a JSON array of
arrays, each of them the columns but `run_id`, `seq` and `world`; keys sorted, no spaces,
UTF-8. There are no floating-point numbers in it and no order that depends on a hash, so the
same run has the same fingerprint on any machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import msgspec

COLUMNS = (
    "run_id",
    "seq",
    "t_us",
    "world",
    "node",
    "kind",
    "session",
    "group",
    "topic",
    "partition",
    "zxid",
    "detail",
)


class Event(NamedTuple):
    """One row of a trace, without the two columns that are the same in all rows."""

    seq: int
    t_us: int
    node: str
    kind: str
    session: int
    group: str
    topic: str
    partition: str
    zxid: int
    detail: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The topic and the partition as one word."""
        return f"{self.topic}/{self.partition}"

    @property
    def subject(self) -> str:
        """The partition that it is about, or the topic; empty for neither."""
        return self.place if self.partition else self.topic


EVENT = partial(tuple.__new__, Event)
"""Makes an event from a tuple of all its columns, faster than `Event._make`."""

NOTHING: Mapping[str, Any] = {}
LINE = "line"
"""The key, in the detail of an event, of the line of a user's code that it comes from."""
CHUNK = 4096
ENCODER = msgspec.json.Encoder(order="deterministic")

Row = tuple[int, str, str, int, str, str, str, int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Header:
    """The scenario, variant, world and seed of a trace."""

    scenario: str
    variant: str
    world: str
    seed: int
    versions: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False
    """True when the run was interrupted."""
    profile: str = ""
    """The digest of the latency profile; empty for the default profile."""
    mix: tuple[str, ...] = ()
    """The variants of the consumers; empty where all of them are of `variant`."""

    @property
    def run_id(self) -> str:
        """The name of the run."""
        return named_run(self.scenario, self.variant, self.world, self.seed, self.profile)


def mix_in_words(mix: Iterable[str], variant: str) -> str:
    """The variants of a run's consumers; `variant` where there is no mix."""
    return " and ".join(mix) or variant


def named_run(scenario: str, variant: str, world: str, seed: int, profile: str = "") -> str:
    """The name of a run: everything that determines its events."""
    name = f"{scenario}-{variant}-{world}-{seed}"
    return f"{name}-{profile}" if profile else name


class Trace:
    """The events of one run, in order."""

    __slots__ = ("_rows", "header")

    def __init__(self, header: Header, rows: list[Row]) -> None:
        self.header = header
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Event]:
        for seq, row in enumerate(self._rows):
            yield EVENT((seq, *row))

    @property
    def rows(self) -> list[Row]:
        """The rows, for readers that skip most of them."""
        return self._rows

    def __getitem__(self, seq: int) -> Event:
        return Event._make((range(len(self._rows))[seq], *self._rows[seq]))

    def of_kind(self, *kinds: str) -> Iterator[Event]:
        """The events of these kinds."""
        wanted = frozenset(kinds)
        for seq, row in enumerate(self._rows):
            if row[2] in wanted:
                yield EVENT((seq, *row))

    def has(self, kind: str) -> bool:
        """Whether it has an event of this kind."""
        return any(row[2] == kind for row in self._rows)

    @property
    def end_us(self) -> int:
        """When the last event happened."""
        return self._rows[-1][0] if self._rows else 0

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the events, in hexadecimal."""
        digest = hashlib.sha256()
        for first in range(0, len(self._rows), CHUNK):
            rows = self._rows[first : first + CHUNK]
            digest.update(ENCODER.encode(rows))
        return digest.hexdigest()

    def lines(self) -> Iterator[bytes]:
        """The lines of a trace file: the header, then the events."""
        header = self.header
        yield _line(
            {
                **({"profile": header.profile} if header.profile else {}),
                **({"mix": header.mix} if header.mix else {}),
                "watchkeeper": "trace",
                "scenario": header.scenario,
                "variant": header.variant,
                "world": header.world,
                "seed": header.seed,
                "versions": dict(header.versions),
                "partial": header.partial,
                "columns": COLUMNS,
            }
        )
        for seq, row in enumerate(self._rows):
            yield _line((header.run_id, seq, row[0], header.world, *row[1:]))


def _line(value: Any) -> bytes:
    return ENCODER.encode(value) + b"\n"


class BadTrace(ValueError):
    """A file is not a trace."""


def parse(lines: Iterable[bytes], *, name: str) -> Trace:
    """Read a trace file; BadTrace names the line that cannot be read."""
    header: Header | None = None
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        try:
            value = msgspec.json.decode(line)
            if header is None:
                header = _header(value)
            else:
                rows.append(_row(value))
        except (ValueError, TypeError, KeyError) as error:
            raise BadTrace(f"{name}:{number} is not a line of a trace ({error})") from None
    if header is None:
        raise BadTrace(f"{name} is empty; expected a trace, beginning with its header")
    return Trace(header, rows)


def header_of(line: bytes, *, name: str) -> Header:
    """Read the first line of a trace file; BadTrace if it is not a header."""
    return parse([line], name=name).header


def _header(value: Any) -> Header:
    if value["watchkeeper"] != "trace" or tuple(value["columns"]) != COLUMNS:
        raise ValueError("not a header of this version")
    return Header(
        value["scenario"],
        value["variant"],
        value["world"],
        value["seed"],
        value["versions"],
        value["partial"],
        value.get("profile", ""),
        tuple(value.get("mix", ())),
    )


def _row(value: Any) -> Row:
    _, _, t_us, _, node, kind, session, group, topic, partition, zxid, detail = value
    return (t_us, node, kind, session, group, topic, partition, zxid, detail)


def struck_by(event: Event) -> tuple[str, ...]:
    """The members that an entry of the timeline strikes: its node, or all those in a process."""
    members: list[str] | None = event.detail.get("members")
    return (event.node,) if members is None else tuple(members)
