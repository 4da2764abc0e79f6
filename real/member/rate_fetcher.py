"""The fetching side of a live consumer without messages: one thread polls every broker in turn.

A partition stops immediately unless a round of fetches is under way; then it stops at the end
of that round, and the waiting program is notified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from io import BufferedRWPair
from threading import Condition, Thread

from watchkeeper.model.actor.effects import Fetch, Partition, Positions
from watchkeeper.model.group.offsets import EARLIEST
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.member.data_plane_file import DataPlaneFile
from watchkeeper.real.net.log_ends import Ends, connect, ends_over
from watchkeeper.real.trace.writer import TraceWriter

MOST_MESSAGES = 10_000
"""The most messages of one partition in one fetch."""

Outcome = dict[str, tuple[list[Fetch], Ends | None]]
"""Address -> the fetches from it, and the ends of their logs; None after a failure."""


class RateFetcher:
    """The fetchers of one consumer."""

    def __init__(
        self,
        writer: TraceWriter,
        cluster: DataPlaneFile,
        every_s: float,
        session: Callable[[], int],
        *,
        ends_on_error: bool,
    ) -> None:
        self.writer = writer
        self.cluster = cluster
        self.every_s = every_s
        self.session = session
        self.ends_on_error = ends_on_error
        """As in 0.7.2: a fetcher ends after two failures in a row and is not restarted."""
        self._changed = Condition()
        self._current: dict[Partition, Fetch] = {}
        self._positions: dict[Partition, int] = {}
        self._stopping: dict[Partition, None] = {}
        self._on_stopped: Callable[[], None] | None = None
        self._is_under_way = False
        self._is_over = False
        self._brokers: dict[str, BufferedRWPair] = {}
        self._failures: dict[str, int] = {}
        Thread(target=self._work, daemon=True).start()

    # --- effects of the program ------------------------------------------------------------

    def fetch_exactly(self, fetches: Iterable[Fetch], stopped: Callable[[], None]) -> bool:
        """Fetch exactly these; False if `stopped` is called when the others have stopped."""
        requested = {fetch.partition: fetch for fetch in fetches}
        with self._changed:
            before, self._current = self._current, requested
            for partition in before:
                if partition not in requested:
                    self._stop(partition)
            for partition, fetch in requested.items():
                self._start_or_move(before.get(partition), fetch)
            self._changed.notify()
            self._on_stopped = stopped if self._stopping else None
            return not self._stopping

    def _stop(self, partition: Partition) -> None:
        if self._is_under_way:
            self._stopping[partition] = None
        else:
            self._write(partition, "ceases", 0)

    def _start_or_move(self, before: Fetch | None, fetch: Fetch) -> None:
        partition = fetch.partition
        if before is None and partition in self._stopping:
            del self._stopping[partition]  # it has not stopped yet, so it continues
        elif before is None:
            start = 0 if fetch.start == EARLIEST else fetch.start
            self._positions.setdefault(partition, start)
            self._write(partition, "begins", fetch.stream)
        elif before.stream != fetch.stream:
            self._write(partition, "ceases", 0)
            self._write(partition, "begins", fetch.stream)

    def known_positions(self) -> Positions:
        """The known positions; one that only a broker can resolve is omitted."""
        with self._changed:
            return tuple((partition, at) for partition, at in self._positions.items() if at >= 0)

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget the positions of these partitions, or of all."""
        with self._changed:
            for partition in list(self._positions) if partitions is None else partitions:
                self._positions.pop(partition, None)

    def stop(self) -> None:
        """Stop fetching for good."""
        with self._changed:
            for partition in (*self._current, *self._stopping):
                self._write(partition, "ceases", 0)
            self._current = {}
            self._stopping.clear()
            self._is_over = True
            self._changed.notify()

    # --- fetching: in a thread of its own ------------------------------------------------

    def _work(self) -> None:
        while not self._is_over:
            with self._changed:
                self._changed.wait_for(lambda: self._current or self._is_over)
                self._is_under_way = True
                requested = list(self._current.values())
            outcome = self._ask_brokers(requested)
            with self._changed:
                self._is_under_way = False
                self._deliver(outcome)
                self._changed.wait_for(lambda: self._is_over, self.every_s)

    def _ask_brokers(self, requested: list[Fetch]) -> Outcome:
        """Poll every broker once."""
        by_address: dict[str, list[Fetch]] = {}
        for fetch in requested:
            by_address.setdefault(self._address_for(fetch), []).append(fetch)
        return {
            address: (fetches, self._ask(address, fetches))
            for address, fetches in by_address.items()
        }

    def _address_for(self, fetch: Fetch) -> str:
        if fetch.address:
            return fetch.address
        state = self.cluster.read()
        return state.addresses.get(state.leaders.get(str(fetch.partition), -1), "no leader")

    def _ask(self, address: str, fetches: list[Fetch]) -> Ends | None:
        try:
            broker = self._brokers.get(address) or self._connect(address)
            return ends_over(broker, [fetch.partition for fetch in fetches])
        except (OSError, ValueError, LogError):
            broken = self._brokers.pop(address, None)
            if broken is not None:
                with suppress(OSError):
                    broken.close()
            return None

    def _connect(self, address: str) -> BufferedRWPair:
        listening = self.cluster.read().listening.get(address)
        if not listening:
            raise ConnectionError(f"there is no broker at {address}")
        broker = self._brokers[address] = connect(listening)
        return broker

    # --- results ---------------------------------------------------------------------------

    def _deliver(self, outcome: Outcome) -> None:
        moved: dict[str, tuple[int, int]] = {}
        failed: dict[str, list[Fetch]] = {}
        for address, (fetches, ends) in outcome.items():
            for fetch in fetches:
                if fetch.partition not in self._current:
                    continue
                end = None if ends is None else ends[fetch.partition]
                if isinstance(end, int):
                    self._move(fetch.partition, end, moved)
                else:
                    failed.setdefault(address, []).append(fetch)
        if moved:
            self.writer.write(EventKind.FETCHED, {"moved": moved}, session=self.session())
        self._note_failures(failed)
        self._finish_stopping()

    def _move(self, partition: Partition, end: int, moved: dict[str, tuple[int, int]]) -> None:
        before = self._positions.get(partition)
        if before is None or before == end:
            return
        after = end if before < 0 else min(end, before + MOST_MESSAGES)
        self._positions[partition] = after
        if after > before >= 0:
            moved[str(partition)] = (before, after)

    def _note_failures(self, failed: dict[str, list[Fetch]]) -> None:
        """Count the failures of each broker; a fetcher of 0.7.2 tolerates only one."""
        self._failures = {address: self._failures.get(address, 0) + 1 for address in failed}
        for address, fetches in failed.items():
            times = self._failures[address]
            self.writer.write(
                EventKind.FETCH_FAILED, {"from": address, "times": times}, session=self.session()
            )
            if self.ends_on_error and times > 1:
                for fetch in fetches:
                    del self._current[fetch.partition]
                    self._write(fetch.partition, "ceases", 0)

    def _finish_stopping(self) -> None:
        for partition in self._stopping:
            self._write(partition, "ceases", 0)
        self._stopping.clear()
        if self._on_stopped is not None:
            stopped, self._on_stopped = self._on_stopped, None
            stopped()

    def _write(self, partition: Partition, does: str, stream: int) -> None:
        detail = {"does": does, "at": self._positions.get(partition, -1), "stream": stream}
        self.writer.write(
            EventKind.FETCHING,
            detail,
            session=self.session(),
            topic=partition.topic,
            partition=partition.name,
        )
