"""The events every world writes, and their file format.

A trace is one flat table in the order in which things happened. Its columns are
`COLUMNS`; what each kind of event means stands in `KINDS`. A file of it is JSON lines: a
header, then one line an event.

The *fingerprint* is the SHA-256 of the events alone: `CHUNK` at a time as a JSON array of
arrays, each of them the columns but `run_id`, `seq` and `world`; keys sorted, no spaces,
UTF-8. There are no floating-point numbers in it and no order that depends on a hash, so
the same run gives the same fingerprint on any machine.
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

KINDS = {
    # programs
    "starts": "a process starts",
    "ends": "a program is over: it left, it failed, or its process was killed",
    "asks": "a program asks ZooKeeper for something",
    "answers": "the answer has come, or the error that stands for it",
    "turn fails": "an error ended a turn; its memory is what it was before",
    "hears": "a note has reached the inbox",
    "wakes": "a program takes a note after it had been waiting",
    "waits": "a program waits, with nothing in its inbox and nothing to do",
    "sleeps": "a program pauses by its own wish",
    # what programs tell of themselves
    "rebalance begins": "an attempt at a rebalance begins",
    "assigned": "a member has computed its share; hashes of what it saw and what it decided",
    "conflict": "a claim met the claim of another",
    "rebalance ends": "an attempt has succeeded",
    "claimed what was freed": "a member got what others had let go of after its rebalance",
    "rebalance fails": "an attempt has failed",
    "rebalance given up": "the attempts are used up; nothing happens until the next note",
    "id in use": "a registration stands already",
    "topic stays": "a topic could not be taken out of the registry",
    "commit refused": "a commit did not get through",
    # connections and sessions
    "connected": "a client has a connection",
    "suspended": "a client has lost its connection",
    "expired": "a client has learnt that its session is dead",
    "session opened": "the ensemble began a session",
    "session moved": "a session goes on over another connection",
    "session expired": "the ensemble ended a session that had been silent",
    "session closed": "the ensemble ended a session that asked for it",
    # the service
    "applied": "a write took effect",
    "refused": "a write took a zxid and failed",
    "fires": "a watch of this node fired",
    "leads": "a server was elected",
    "leader lost": "the ensemble has no leader",
    "server": "a server's process changed its state",
    # the data plane
    "hosting": "a broker begins or ceases to serve a partition",
    "produces": "messages begin to be written to a topic, at a rate",
    "fetching": "a member begins or ceases to fetch a partition",
    "fetched": "messages were delivered to a member",
    "fetch fails": "a broker could not be reached",
    # messages, one by one: their producer and numbers, and the offsets at which they lie
    "sent": "an application was told what became of messages that it gave to its producer",
    "send fails": "a producer gave up messages that it had accepted",
    "stored": "a broker appended messages to a log",
    "opened": "a broker that starts has opened a log, which ends where it says",
    "request refused": "a broker closed a connection because of what came over it",
    "segment deleted": "a broker deleted the oldest segment of a log",
    "broker fails": "a broker ends because of its disk",
    "gauges": "bytes on a broker's host: not flushed now, at most since the last time, not "
    "written, in the pagecache, found there by reads so far, not found; live: of the broker's "
    "files, and where the kernel does not say what is in memory, read so far and no more",
    "host emulated": "live: a broker's files were cut back to their last fsync, and are in the "
    "pagecache no longer, which stands for the loss of its host; no host was lost",
    "consumed": "messages were handed to the application of a member",
    "handled": "an application is done with messages that it was handed",
    "not mirrored": "a mirror could not send what it was handed, and tries again",
    "stream fails": "an application could not be handed the next message",
    "offset reset": "a member goes on at the beginning or the end of a log",
    # the timeline
    "fault": "an entry of the timeline takes place",
    "fault ends": "what it did is undone",
    "change": "an ordinary change of the timeline takes place",
    "load": "the timeline begins to write messages",
    "load ends": "it ceases to",
    "run ends": "the run is over",
}
"""Every kind of event. A program of a user may tell of more."""


class Event(NamedTuple):
    """One row of a trace, without the two columns that are the same in all of them."""

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


EVENT = partial(tuple.__new__, Event)
"""Makes an event of a tuple of all its columns; `Event._make` without the way through Python."""

NOTHING: Mapping[str, Any] = {}
CHUNK = 4096
ENCODER = msgspec.json.Encoder(order="deterministic")

Row = tuple[int, str, str, int, str, str, str, int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Header:
    """What a trace is of."""

    scenario: str
    variant: str
    world: str
    seed: int
    versions: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False
    """True when the run was interrupted."""
    profile: str = ""
    """The digest of the latencies it was simulated with; empty for those that come along."""

    @property
    def run_id(self) -> str:
        """The name of the run."""
        return named_run(self.scenario, self.variant, self.world, self.seed, self.profile)


def named_run(scenario: str, variant: str, world: str, seed: int, profile: str = "") -> str:
    """The name of a run: what has to be the same for its events to be the same."""
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
        """The rows themselves, for those who read many and look at few."""
        return self._rows

    def __getitem__(self, seq: int) -> Event:
        return Event._make((range(len(self._rows))[seq], *self._rows[seq]))

    def of_kind(self, *kinds: str) -> Iterator[Event]:
        """The events of these kinds."""
        for seq, row in enumerate(self._rows):
            if row[2] in kinds:
                yield EVENT((seq, *row))

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
    """Read the first line of a trace file alone; BadTrace where it is none."""
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
    )


def _row(value: Any) -> Row:
    _, _, t_us, _, node, kind, session, group, topic, partition, zxid, detail = value
    return (t_us, node, kind, session, group, topic, partition, zxid, detail)
