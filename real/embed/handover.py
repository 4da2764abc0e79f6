"""Hands partitions to an application and takes them back: a `Fetching` made of callbacks.

What a protocol asks for (fetch exactly these, tell me where you stand) is turned into two
calls: `claim` for what is begun and `release` for what is to stop. A protocol that waits
until the others have fallen quiet waits until `release` has returned. Whoever fetches by
itself instead of leaving that to the application extends these two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Condition, Event
from time import monotonic
from typing import Any, NamedTuple

from model.asks import Fetch, Partition, Positions
from real.callbacks import Callbacks


class Claim(NamedTuple):
    """A partition that is the application's to read from now on."""

    partition: Partition
    offset: int | None
    """The next message to be read; None where nothing has been committed, so that
    `auto.offset.reset` says where to begin."""
    stream: int
    """Which of the member's streams is to read it, from 0."""
    address: str
    """Where its broker listens; empty in the 0.8 layout, where its leader has to be found."""


class NotOwned(LookupError):
    """A position was given for a partition that is not this member's (any more)."""


OnClaimed = Callable[[Sequence[Claim]], Any]
OnReleased = Callable[[Sequence[Partition]], Any]


class Handover:
    """What an application has in its hands, and how far it has come."""

    def __init__(
        self, callbacks: Callbacks, on_claimed: OnClaimed | None, on_released: OnReleased | None
    ) -> None:
        self.callbacks = callbacks
        self.on_claimed = on_claimed
        self.on_released = on_released
        self._changed = Condition()
        self._current: dict[Partition, Fetch] = {}
        self._positions: dict[Partition, int | None] = {}
        """Of what is read now, or was until lately."""
        self._mine: dict[Partition, None] = {}
        """Where the application may still say how far it has come."""
        self._committed: dict[Partition, int] = {}
        self.is_given_up = False
        """Whether nobody waits for callbacks any more."""
        self._releases = 0
        """How many calls to release are under way or waiting."""
        self._is_over = False
        self._has_stopped = Event()

    # --- what a program asks: in the driver's thread --------------------------------------

    def fetch_exactly(self, fetches: Iterable[Fetch], quiet: Callable[[], None]) -> bool:
        """Let these be read and no others; False when `quiet` is called once that is so."""
        wanted = {fetch.partition: fetch for fetch in fetches}
        with self._changed:
            before, self._current = self._current, wanted
            stays = {one for one, fetch in before.items() if _is_same(fetch, wanted.get(one))}
            ceasing = tuple(one for one in before if one not in stays)
            begun = tuple(
                self._claim_of(fetch) for one, fetch in wanted.items() if one not in stays
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
        """Where the application stands; 0, which nobody commits, where that is not known."""
        with self._changed:
            return tuple((one, at or 0) for one, at in self._positions.items())

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget where it stood."""
        with self._changed:
            for one in list(self._positions) if partitions is None else partitions:
                self._positions.pop(one, None)
            self._changed.notify_all()

    def stop(self) -> None:
        """Take everything back, and come back when that is done or was given up."""
        if not self.fetch_exactly((), self._has_stopped.set):
            self._has_stopped.wait()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def give_up(self) -> None:
        """Wait no longer for a callback that does not return."""
        self.is_given_up = True
        self._has_stopped.set()

    def committed(self, partition: Partition, position: int) -> None:
        """This has been written."""
        with self._changed:
            self._committed[partition] = position
            self._changed.notify_all()

    # --- in the thread of the callbacks ---------------------------------------------------

    def _cease(self, partitions: tuple[Partition, ...], quiet: Callable[[], None]) -> None:
        self.release(partitions)
        with self._changed:
            for one in partitions:
                self._mine.pop(one, None)
            self._releases -= 1
        quiet()

    def _begin(self, claims: tuple[Claim, ...]) -> None:
        with self._changed:
            self._mine.update((claim.partition, None) for claim in claims)
        self.claim(claims)

    def claim(self, claims: tuple[Claim, ...]) -> None:
        """These have been claimed: let them be read."""
        if self.on_claimed is not None:
            self.callbacks.call("on_claimed", self.on_claimed, claims)

    def release(self, partitions: tuple[Partition, ...]) -> None:
        """These are to be released: come back when nobody reads them any more."""
        if self.on_released is not None:
            self.callbacks.call("on_released", self.on_released, partitions)

    # --- what the application says: in any thread -----------------------------------------

    @property
    def owned(self) -> tuple[Partition, ...]:
        """What may be read now."""
        with self._changed:
            return tuple(self._current)

    @property
    def positions(self) -> dict[Partition, int | None]:
        """How far the application has come in what it owns."""
        with self._changed:
            return {one: self._positions.get(one) for one in self._mine}

    def advance(self, offsets: Mapping[Partition, int]) -> None:
        """Note the next message to be read in each of these; all of them or none."""
        with self._changed:
            for partition, offset in offsets.items():
                self._check(partition, offset)
            self._positions.update((Partition(*one), at) for one, at in offsets.items())

    def _check(self, partition: Partition, offset: int) -> None:
        topic, name = partition
        if partition not in self._mine:
            raise NotOwned(
                f"{topic}/{name} is not this member's, so how far it was read is not taken "
                "down; its next owner begins at the offset that was committed last"
            )
        before = self._positions.get(partition) or 0
        if offset < before:
            raise ValueError(
                f"the next message of {topic}/{name} cannot be {offset} after {before}: an "
                "offset never goes back"
            )

    def wait_until_committed(
        self, offsets: Mapping[Partition, int], ask: Callable[[], None], timeout_s: float
    ) -> bool:
        """Ask for a commit until these offsets have been written.

        False without waiting while anything is being released: nothing is written before
        that is over, and it may be waiting for whoever asks here.
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
                ask()
                self._changed.wait(min(REMINDER_S, max(0.0, end - monotonic())))
        return True

    def _missing(self, offsets: Mapping[Partition, int]) -> list[Partition]:
        missing = [one for one, at in offsets.items() if at > self._committed.get(one, 0)]
        gone = [one for one in missing if self._is_over or one not in self._positions]
        if gone:
            raise NotOwned(
                f"{_listed(gone)}: released before it could be committed; its next owner begins "
                "at the offset that was committed last"
            )
        return missing


REMINDER_S = 0.25
"""How often a commit is asked for again that something got in the way of."""


def _is_same(fetch: Fetch, other: Fetch | None) -> bool:
    """Whether an application that reads the one need not be told of the other."""
    return other is not None and (fetch.stream, fetch.address) == (other.stream, other.address)


def _listed(partitions: Iterable[Partition]) -> str:
    return ", ".join("/".join(one) for one in partitions)
