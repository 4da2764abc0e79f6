"""The effects of a program beside ZooKeeper: events, time, names, fetching, the trace.

An effect is a value that a program awaits. These effects never travel: the driver of the
program answers them at once, or when an event arrives, a pause is over or a fetcher has
stopped. Programs use the functions at the end; drivers use the classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from watchkeeper.model.actor.events import Notification
from watchkeeper.model.actor.operations import Effect


class Partition(NamedTuple):
    """A partition of a topic, by its name in the registry.

    In the 0.7 layout the name is `broker-partition` (`2-0`), in the 0.8 layout a number.
    """

    topic: str
    name: str

    def __str__(self) -> str:
        return f"{self.topic}/{self.name}"


class Fetch(NamedTuple):
    """A request to fetch a partition for a stream.

    `start` is the first offset to fetch if no position is known yet; -2 and -1 mean the
    earliest and the latest one. `address` is `host:port` of the broker; empty where the
    fetcher has to find the leader by itself, as in the 0.8 layout.
    """

    partition: Partition
    start: int
    stream: int
    address: str


Positions = tuple[tuple[Partition, int], ...]
"""Pairs of partition and position: the offset of the next message."""


class NextEvent(Effect[Notification | None], frozen=True):
    """Wait for the oldest event of the inbox; None when the time is up."""

    timeout_ms: int | None


class Sleep(Effect[None], frozen=True):
    """Pause."""

    duration_ms: int


class Now(Effect[int], frozen=True):
    """Read the clock of this machine: milliseconds since 1970, with the skew of that clock."""


class FreshId(Effect[str], frozen=True):
    """Draw a unique name: 32 hexadecimal digits."""


class NewSession(Effect[None], frozen=True):
    """Wait for a new session; the inbox is empty when it begins."""


class CloseSession(Effect[None], frozen=True):
    """End the session and with it every ephemeral; no request can follow."""


class Connected(Effect[None], frozen=True):
    """Wait until there is a connection; raises SessionExpired if the session has ended."""


class FetchExactly(Effect[None], frozen=True):
    """Fetch exactly these partitions; answered when the fetchers of all others have stopped.

    A partition with a known position goes on from there, whatever its `start` is.
    Positions of partitions that stop are kept until they are forgotten.
    """

    fetches: tuple[Fetch, ...]


class KnownPositions(Effect[Positions], frozen=True):
    """Return every known position, of partitions fetched now or stopped."""


class Forget(Effect[None], frozen=True):
    """Forget the positions in these partitions (None: in all partitions)."""

    partitions: tuple[Partition, ...] | None


class Emit(Effect[None], frozen=True):
    """Write an event of the program's own into the trace."""

    kind: str
    topic: str
    detail: tuple[tuple[str, Any], ...]


def next_event(timeout_ms: int | None = None) -> NextEvent:
    """Wait for the next event: a fired watch, a change of the session, or a command.

    None if no event arrives within `timeout_ms`; without a limit the wait has no end.
    """
    return NextEvent(timeout_ms)


def sleep(duration_ms: int) -> Sleep:
    """Pause for so many milliseconds."""
    return Sleep(duration_ms)


def now_ms() -> Now:
    """Read the clock of this machine, in milliseconds since 1970."""
    return Now()


def fresh_id() -> FreshId:
    """Draw a unique name of 32 hexadecimal digits."""
    return FreshId()


def new_session() -> NewSession:
    """Wait for a new session. The inbox is emptied: its events are about the old one."""
    return NewSession()


def close_session() -> CloseSession:
    """End the session; ZooKeeper deletes its ephemerals."""
    return CloseSession()


def connected() -> Connected:
    """Wait until there is a connection again; raises SessionExpired if the session has ended."""
    return Connected()


def fetch_exactly(fetches: Iterable[Fetch]) -> FetchExactly:
    """Fetch these partitions and no others, and wait until the others have stopped."""
    return FetchExactly(tuple(fetches))


def known_positions() -> KnownPositions:
    """Return pairs of partition and offset of the next message."""
    return KnownPositions()


def forget(partitions: Iterable[Partition] | None) -> Forget:
    """Forget the positions in these partitions, or with None in all of them."""
    return Forget(None if partitions is None else tuple(partitions))


def emit(kind: str, *, topic: str = "", **detail: Any) -> Emit:
    """Write an event into the trace; `detail` has to be values that JSON can hold."""
    return Emit(kind, topic, tuple(sorted(detail.items())))
