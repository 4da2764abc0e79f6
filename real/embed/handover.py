"""Hands partitions to an application and takes them back: a `Fetching` made of callbacks.

The protocol requests "fetch exactly these partitions" and "report your positions". This module
turns the requests into two calls: `claim` for new partitions and `release` for those that end. A
protocol that waits until its old fetches have stopped waits until `release` has returned. A
consumer that fetches by itself, instead of the application, overrides these two methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Condition, Event
from time import monotonic
from typing import Any, NamedTuple

from watchkeeper.model.actor.effects import Fetch, Partition, Positions
from watchkeeper.real.embed.callbacks import Callbacks


class Claim(NamedTuple):
    """A partition that the application may read from now on."""

    partition: Partition
    offset: int | None
    """The next offset to be read; None if none is committed: `auto.offset.reset` decides."""
    stream: int
    """The number of the member's stream that reads it, from 0."""
    address: str
    """The address of its broker; empty in the 0.8 layout, where the leader has to be found."""


class NotOwned(LookupError):
    """An offset was stored for a partition that this member does not own, or no longer owns."""


OnPartitionsAssigned = Callable[[Sequence[Claim]], Any]
OnPartitionsRevoked = Callable[[Sequence[Partition]], Any]


class RebalanceListener:
    """The partitions that an application reads, and their positions."""

    def __init__(
        self,
        callbacks: Callbacks,
        on_partitions_assigned: OnPartitionsAssigned | None,
        on_partitions_revoked: OnPartitionsRevoked | None,
    ) -> None:
        self.callbacks = callbacks
        self.on_partitions_assigned = on_partitions_assigned
        self.on_partitions_revoked = on_partitions_revoked
        self._changed = Condition()
        self._current: dict[Partition, Fetch] = {}
        self._positions: dict[Partition, int | None] = {}
        """Of partitions that are read now, or were read before a release."""
        self._mine: dict[Partition, None] = {}
        """Partitions whose offsets the application may still store."""
        self._committed: dict[Partition, int] = {}
        self.is_given_up = False
        """Whether callbacks are no longer waited for."""
        self._releases = 0
        """The number of calls to `release` that run or wait."""
        self._is_over = False
        self._has_stopped = Event()

    # --- requests of the program: in the thread of the driver ------------------------------

    def fetch_exactly(self, fetches: Iterable[Fetch], quiet: Callable[[], None]) -> bool:
        """Let the application read exactly these partitions; return whether that holds at once.

        After False, `quiet` is called when all other partitions are released.
        """
        wanted = {fetch.partition: fetch for fetch in fetches}
        with self._changed:
            before, self._current = self._current, wanted
            stays = {
                partition
                for partition, fetch in before.items()
                if _is_same(fetch, wanted.get(partition))
            }
            ceasing = tuple(partition for partition in before if partition not in stays)
            begun = tuple(
                self._claim_of(fetch)
                for partition, fetch in wanted.items()
                if partition not in stays
            )
            self._releases += bool(ceasing)
            self._changed.notify_all()
        if ceasing:
            self.callbacks.put(lambda: self._cease(ceasing, quiet))
        if begun:
            self.callbacks.put(lambda: self._begin(begun))
        return not ceasing

    def _claim_of(self, fetch: Fetch) -> Claim:
        partition = fetch.partition
        if partition not in self._positions:
            self._positions[partition] = fetch.start if fetch.start >= 0 else None
            self._committed.pop(partition, None)
        return Claim(partition, self._positions[partition], fetch.stream, fetch.address)

    def known_positions(self) -> Positions:
        """Return the positions of the application; an unknown one is 0, and never committed."""
        with self._changed:
            return tuple((partition, at or 0) for partition, at in self._positions.items())

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget the positions of these partitions, or of all."""
        with self._changed:
            for partition in list(self._positions) if partitions is None else partitions:
                self._positions.pop(partition, None)
            self._changed.notify_all()

    def stop(self) -> None:
        """Take back all partitions; return when that is done or given up."""
        if not self.fetch_exactly((), self._has_stopped.set):
            self._has_stopped.wait()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def give_up(self) -> None:
        """Stop waiting for a callback that does not return."""
        self.is_given_up = True
        self._has_stopped.set()

    def committed(self, partition: Partition, position: int) -> None:
        """Record that this position is committed."""
        with self._changed:
            self._committed[partition] = position
            self._changed.notify_all()

    # --- in the thread of the callbacks ---------------------------------------------------

    def _cease(self, partitions: tuple[Partition, ...], quiet: Callable[[], None]) -> None:
        self.release(partitions)
        with self._changed:
            for partition in partitions:
                self._mine.pop(partition, None)
            self._releases -= 1
        quiet()

    def _begin(self, claims: tuple[Claim, ...]) -> None:
        with self._changed:
            self._mine.update((claim.partition, None) for claim in claims)
        self.claim(claims)

    def claim(self, claims: tuple[Claim, ...]) -> None:
        """Let the application read partitions that were claimed."""
        if self.on_partitions_assigned is not None:
            self.callbacks.call("on_partitions_assigned", self.on_partitions_assigned, claims)

    def release(self, partitions: tuple[Partition, ...]) -> None:
        """Have the application stop reading partitions; return when it has."""
        if self.on_partitions_revoked is not None:
            self.callbacks.call("on_partitions_revoked", self.on_partitions_revoked, partitions)

    # --- calls of the application: in any thread -------------------------------------------

    @property
    def owned(self) -> tuple[Partition, ...]:
        """The partitions that may be read now: a slow callback delays those that come next."""
        with self._changed:
            return tuple(partition for partition in self._current if partition in self._mine)

    @property
    def positions(self) -> dict[Partition, int | None]:
        """The next offset to be read in each owned partition; None if not known."""
        with self._changed:
            return {partition: self._positions.get(partition) for partition in self._mine}

    def store_offsets(self, offsets: Mapping[Partition, int]) -> None:
        """Store the next offset to be read in each of these partitions; all of them or none."""
        with self._changed:
            for partition, offset in offsets.items():
                self._check(partition, offset)
            self._positions.update(
                (Partition(*partition), at) for partition, at in offsets.items()
            )

    def _check(self, partition: Partition, offset: int) -> None:
        topic, name = partition
        if partition not in self._mine:
            raise NotOwned(
                f"{topic}/{name} is not owned by this member, so its offset is not stored; the "
                "next owner begins at the offset that was committed last"
            )
        before = self._positions.get(partition) or 0
        if offset < before:
            raise ValueError(
                f"the next message of {topic}/{name} cannot be {offset} after {before}: an "
                "offset never goes back"
            )

    def wait_until_committed(
        self, offsets: Mapping[Partition, int], request: Callable[[], None], timeout_s: float
    ) -> bool:
        """Request a commit until these offsets are written.

        Return False at once while a release runs: nothing is written before its end, and the
        callback may be waiting for the caller of this method.
        """
        end = monotonic() + timeout_s
        with self._changed:
            while missing := self._missing(offsets):
                if self._releases:
                    return False
                if monotonic() > end:
                    raise TimeoutError(
                        f"{_listed(missing)}: not committed within {timeout_s:g} s; the offsets "
                        "are known and will be written with the next commit"
                    )
                request()
                self._changed.wait(min(REMINDER_S, max(0.0, end - monotonic())))
        return True

    def _missing(self, offsets: Mapping[Partition, int]) -> list[Partition]:
        missing = [
            partition
            for partition, at in offsets.items()
            if at > self._committed.get(partition, 0)
        ]
        gone = [
            partition
            for partition in missing
            if self._is_over or partition not in self._positions
        ]
        if gone:
            raise NotOwned(
                f"{_listed(gone)}: released before it could be committed; its next owner begins "
                "at the offset that was committed last"
            )
        return missing


REMINDER_S = 0.25
"""How often a commit is requested again."""


def _is_same(fetch: Fetch, other: Fetch | None) -> bool:
    """Whether both fetches are one and the same for the application."""
    return other is not None and (fetch.stream, fetch.address) == (other.stream, other.address)


def _listed(partitions: Iterable[Partition]) -> str:
    return ", ".join("/".join(partition) for partition in partitions)
