"""The fetching side of a consumer: what it fetches, how far it has come, when it is quiet.

Theory of operation
  A fetcher asks its brokers in rounds, and a round that finds nothing leaves nothing behind. So
  while all logs that it fetches stand still, their ends are reached and their brokers answer, a
  fetcher *rests*: its rounds are not on the calendar. Whatever may let a round find something
  wakes it: other partitions to fetch, a change of a broker or of a rate, a link that is cut, a
  process that is paused. Awake, it draws the times of the rounds that are over, which have found
  nothing, and puts the next one on the calendar. A run in which fetchers rest is, event for
  event, the run in which they do not.

  In the 0.8 layout a fetcher does not rest: there the registry says who answers, and each write
  may change it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from simpy.events import Event

from watchkeeper.model.actor.effects import Fetch, Partition, Positions
from watchkeeper.model.group.offsets import EARLIEST
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.sim.brokers.rate_log import PER_RATE_US, Log, Logs
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.zookeeper.network import Network

NO_LOG = Log()
"""What a partition has that no broker has ever served."""
MOST_MESSAGES = 10_000
"""What one fetch brings at most, of one partition."""


class Source(NamedTuple):
    """Where a fetch finds its messages."""

    fetch: Fetch
    partition: Partition
    label: str
    """The partition as a trace has it."""
    log: Log
    broker: Node | None


class Fetcher:
    """The fetchers of one consumer, one for each broker."""

    def __init__(
        self, node: Node, network: Network, logs: Logs, every_us: int, *, ends_on_error: bool
    ) -> None:
        self.node = node
        self.kernel = node.kernel
        self.network = network
        self.logs = logs
        self.every_us = every_us
        self.ends_on_error = ends_on_error
        """0.7.2: a fetcher that fails twice running ends, and nothing starts it again."""
        self.chance = self.kernel.streams(f"fetch/{node.name}")
        self.current: dict[Partition, Fetch] = {}
        self._positions: dict[Partition, int] = {}
        self._stopping: dict[Partition, None] = {}
        self._quiet: Event | None = None
        self._failures: dict[str, int] = {}
        self._is_running = False
        self._runs = 0
        """Distinguishes this run of fetches from those that were stopped."""
        self._asked_us = 0
        self._due_us = 0
        """When the round that was asked last will have been answered."""
        self._last_bytes = 0
        self._sources: list[Source] = []
        """The sources of `current`, found after so many changes of the logs."""
        self._found_after = -1

    # --- for the program ---------------------------------------------------------------

    def fetch_exactly(self, fetches: Iterable[Fetch]) -> Event | None:
        """Fetch these and no others; an event that happens when the others are quiet."""
        self.wake()
        wanted = {fetch.partition: fetch for fetch in fetches}
        stopping = [partition for partition in self.current if partition not in wanted]
        starting = [partition for partition in wanted if partition not in self.current]
        moving = [
            fetch
            for partition, fetch in wanted.items()
            if partition in self.current and self.current[partition].stream != fetch.stream
        ]
        self.current = wanted
        self._found_after = -1
        is_under_way = self._is_under_way()
        for partition in stopping:
            if is_under_way:
                self._stopping[partition] = None
            else:
                self._write(partition, "ceases", 0)
        for partition in starting:
            if partition in self._stopping:
                del self._stopping[partition]  # it has not fallen quiet, so it just goes on
            else:
                self._begin(wanted[partition])
        for fetch in moving:
            self._write(fetch.partition, "ceases", 0)
            self._write(fetch.partition, "begins", fetch.stream)
        if wanted and not self._is_running:
            self._is_running = True
            self._runs += 1
            self._plan(self.kernel.now_us + self.chance.below(self.every_us), rests=False)
        return self._when_quiet()

    def _begin(self, fetch: Fetch) -> None:
        if fetch.partition not in self._positions:
            start = 0 if fetch.start == EARLIEST else fetch.start
            self._positions[fetch.partition] = start
        self._write(fetch.partition, "begins", fetch.stream)

    def _when_quiet(self) -> Event | None:
        if not self._stopping:
            return None
        if self._quiet is None:
            self._quiet = Event(self.kernel)
        return self._quiet

    def known_positions(self) -> Positions:
        """Where I stand, as far as I know; a place that only a broker knows is not known."""
        return tuple([pair for pair in self._positions.items() if pair[1] >= 0])

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget where I stood."""
        for partition in list(self._positions) if partitions is None else partitions:
            self._positions.pop(partition, None)

    def read_one(self, partition: Partition) -> None:
        """Read one message more, as if it had come with the last fetch."""
        before = max(self._positions.get(partition, 0), 0)
        self._positions[partition] = before + 1
        self._say(
            EventKind.FETCHED,
            {"moved": {f"{partition.topic}/{partition.name}": (before, before + 1)}},
        )

    def learn_places(self) -> None:
        """Know every place at once that only a broker knows: nothing was written there yet."""
        for partition, at in self._positions.items():
            self._positions[partition] = max(at, 0)

    def stop(self) -> None:
        """The process is gone, or its program is over."""
        self.wake()
        for partition in (*self.current, *self._stopping):
            self._write(partition, "ceases", 0)
        self.current = {}
        self._found_after = -1
        self._stopping.clear()
        self._is_running = False
        self._runs += 1

    # --- fetching ----------------------------------------------------------------------

    def _plan(self, at_us: int, *, rests: bool) -> None:
        """Ask all my brokers at that moment; they will all have answered some time later.

        That time includes what it takes to carry as much as came the last time.
        """
        profile = self.kernel.profile
        took = self.chance.draw(profile.fetch) + self._last_bytes * 1000 // profile.bytes_per_ms
        self._asked_us = at_us
        self._due_us = at_us + took
        if rests:
            self.network.resting_fetchers[self] = None
        else:
            self.kernel.at(self._due_us, self._arrive, self._runs)

    def wake(self) -> None:
        """A round may find something: put the next one on the calendar, if it is not there."""
        if self not in self.network.resting_fetchers:
            return
        del self.network.resting_fetchers[self]
        now, fetch = self.kernel.now_us, self.kernel.profile.fetch
        while self._due_us < now:
            self._asked_us = max(self._asked_us + self.every_us, self._due_us)
            self._due_us = self._asked_us + self.chance.draw(fetch)
        self.kernel.at(self._due_us, self._arrive, self._runs)

    def _is_under_way(self) -> bool:
        return self._is_running and self._asked_us <= self.kernel.now_us

    def _arrive(self, runs: int) -> None:
        """Take the answers; what was to stop has stopped, and the next round follows."""
        if runs != self._runs or not self.node.is_alive:
            return
        if self.node.is_paused:
            resumed = self.node.until_resumed().callbacks
            resumed.append(lambda event: self._arrive(runs))
            return
        rests = self._deliver() and self.logs.layout == "0.7"
        if self._stopping:
            self._fall_quiet()
        if self.current:
            at_us = max(self._asked_us + self.every_us, self.kernel.now_us)
            self._plan(at_us, rests=rests)
        else:
            self._is_running = False

    def _find_sources(self) -> list[Source]:
        """Return where each fetch finds its messages, by what the world has now."""
        logs = self.logs
        if self._found_after != logs.changes or logs.layout == "0.8":
            self._found_after = logs.changes
            self._sources = [
                Source(
                    fetch,
                    partition,
                    f"{partition.topic}/{partition.name}",
                    logs.logs.get(partition, NO_LOG),
                    logs.broker_for(partition, fetch.address),
                )
                for partition, fetch in self.current.items()
            ]
        return self._sources

    def _deliver(self) -> bool:
        """Take what each broker has, of those that can be reached.

        Return whether the next round finds nothing, if nothing changes until then.
        """
        moved: dict[str, tuple[int, int]] = {}
        failed: dict[str, list[Fetch]] = {}
        reached: dict[Node | None, bool] = {None: False}
        now, positions = self.kernel.now_us, self._positions
        size = 0
        is_still = True
        for fetch, partition, label, log, broker in self._find_sources():
            is_reached = reached.get(broker)
            if is_reached is None:
                assert broker is not None, "no broker is never reached"
                is_reached = reached[broker] = self._reaches(broker)
            if not is_reached:
                name = broker.name if broker is not None else fetch.address or "no leader"
                failed.setdefault(name, []).append(fetch)
                continue
            rate = log.rate_per_1000_s
            if rate:
                is_still = False
            before = positions.get(partition)
            if before is None:
                continue
            end = log.base + rate * (now - log.since_us) // PER_RATE_US  # `log.end`, written out
            if end == before:
                continue
            is_still = False
            most = before + MOST_MESSAGES
            after = end if before < 0 or end < most else most
            positions[partition] = after
            if after > before >= 0:
                moved[label] = (before, after)
                size += (after - before) * log.size_bytes
        self._last_bytes = size
        if moved:
            self._say(EventKind.FETCHED, {"moved": moved})
        if failed or self._failures:
            self._note_failures(failed)
            return False
        return is_still

    def _reaches(self, broker: Node) -> bool:
        return (
            broker.is_alive
            and not broker.is_paused
            and not (self.network.cuts and self.network.stops_fetch(self.node.name, broker.name))
        )

    def _note_failures(self, failed: dict[str, list[Fetch]]) -> None:
        """Count the brokers that did not answer; a fetcher of 0.7.2 bears only one failure."""
        self._failures = {name: self._failures.get(name, 0) + 1 for name in failed}
        for name, fetches in failed.items():
            times = self._failures[name]
            self._say(EventKind.FETCH_FAILED, {"from": name, "times": times})
            if self.ends_on_error and times > 1:
                self._found_after = -1
                for fetch in fetches:
                    del self.current[fetch.partition]
                    self._write(fetch.partition, "ceases", 0)

    def _fall_quiet(self) -> None:
        for partition in self._stopping:
            self._write(partition, "ceases", 0)
        self._stopping.clear()
        if self._quiet is not None:
            quiet, self._quiet = self._quiet, None
            quiet.succeed()

    # --- the trace ---------------------------------------------------------------------

    def _write(self, partition: Partition, does: str, stream: int) -> None:
        detail = {"does": does, "at": self._positions.get(partition, -1), "stream": stream}
        self._say(EventKind.FETCHING, detail, *partition)

    def _say(
        self, kind: str, detail: dict[str, object], topic: str = "", partition: str = ""
    ) -> None:
        node, kernel = self.node, self.kernel
        client = node.client
        session = client.session if client is not None else 0
        # As `kernel.write` does: half of all events are of fetchers.
        kernel.rows.append(
            (kernel.now_us, node.name, kind, session, node.group, topic, partition, 0, detail)
        )
