"""What protocol code may ask of its world beside ZooKeeper: notes, time, names, fetching.

These asks never travel. The driver of a program answers them on the spot, or when the
time has come; a note of the inbox, a pause, a fetcher that has fallen quiet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from model.answers import Note
from model.operations import Ask


class Partition(NamedTuple):
    """A partition of a topic, by its name in the registry.

    In the 0.7 layout the name is `broker-partition`, in the 0.8 layout a number.
    """

    topic: str
    name: str

    def __str__(self) -> str:
        return f"{self.topic}/{self.name}"


class Fetch(NamedTuple):
    """Fetch this partition for that stream, from `start` if no position is known yet.

    `address` says where its broker listens (`host:port`); empty when the fetcher has to
    find the leader by itself, as it does in the 0.8 layout.
    """

    partition: Partition
    start: int
    stream: int
    address: str


Positions = tuple[tuple[Partition, int], ...]
"""Where a member stands in each partition: the offset of the next message."""


class NextNote(Ask[Note | None], frozen=True):
    """Wait for the oldest note of the inbox; None when the time is up."""

    timeout_ms: int | None


class Sleep(Ask[None], frozen=True):
    """Do nothing for a while."""

    duration_ms: int


class Now(Ask[int], frozen=True):
    """Read the clock of this machine: milliseconds, skewed as that clock may be."""


class FreshId(Ask[str], frozen=True):
    """Draw a name that nobody has: 32 hexadecimal digits."""


class NewSession(Ask[None], frozen=True):
    """Wait for a session; the inbox is empty when this is answered."""


class CloseSession(Ask[None], frozen=True):
    """End the session and with it every ephemeral; nothing can be asked afterwards."""


class Connected(Ask[None], frozen=True):
    """Wait until there is a connection; SessionExpired when the session turns out dead."""


class FetchExactly(Ask[None], frozen=True):
    """Fetch exactly these partitions; answered when all others have fallen quiet.

    A partition with a known position goes on from there, whatever its `start` says.
    Positions of partitions that stop are kept until they are forgotten.
    """

    fetches: tuple[Fetch, ...]


class KnownPositions(Ask[Positions], frozen=True):
    """Tell me every position that is known, of partitions fetched now or stopped."""


class Forget(Ask[None], frozen=True):
    """Forget where I stand in these partitions (None: in all of them)."""

    partitions: tuple[Partition, ...] | None


class Tell(Ask[None], frozen=True):
    """Write an event of the program's own into the trace."""

    kind: str
    topic: str
    detail: tuple[tuple[str, Any], ...]


def next_note(timeout_ms: int | None = None) -> NextNote:
    """Wait for the next note, for at most this long."""
    return NextNote(timeout_ms)


def sleep(duration_ms: int) -> Sleep:
    """Do nothing for so many milliseconds."""
    return Sleep(duration_ms)


def now_ms() -> Now:
    """Read the clock."""
    return Now()


def fresh_id() -> FreshId:
    """Draw a name that nobody has."""
    return FreshId()


def new_session() -> NewSession:
    """Wait for a session of my own."""
    return NewSession()


def close_session() -> CloseSession:
    """End my session."""
    return CloseSession()


def connected() -> Connected:
    """Wait until there is a connection again."""
    return Connected()


def fetch_exactly(fetches: Iterable[Fetch]) -> FetchExactly:
    """Fetch these partitions and no others."""
    return FetchExactly(tuple(fetches))


def known_positions() -> KnownPositions:
    """Tell me where I stand."""
    return KnownPositions()


def forget(partitions: Iterable[Partition] | None) -> Forget:
    """Forget where I stand."""
    return Forget(None if partitions is None else tuple(partitions))


def tell(kind: str, *, topic: str = "", **detail: Any) -> Tell:
    """Write an event into the trace."""
    return Tell(kind, topic, tuple(sorted(detail.items())))
