"""The fetching side of a consumer: what it fetches, how far it has come, when it is quiet."""

from __future__ import annotations

from collections.abc import Iterable

from simpy.events import Event

from model.asks import Fetch, Partition, Positions
from model.offsets import EARLIEST
from sim.kernel import Network
from sim.logs import Logs
from sim.node import Node

Fetched = tuple[Node | None, list[Fetch], list[tuple[Partition, int]]]
"""A broker, what was asked of it, and where that leads to."""

MOST_MESSAGES = 10_000
"""What one fetch brings at most, of one partition."""


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
        self._under_way: dict[Partition, None] = {}
        self._stopping: dict[Partition, None] = {}
        self._quiet: Event | None = None
        self._failures: dict[str, int] = {}
        self._is_running = False

    # --- what a program asks -----------------------------------------------------------

    def fetch_exactly(self, fetches: Iterable[Fetch]) -> Event | None:
        """Fetch these and no others; an event that happens when the others are quiet."""
        wanted = {fetch.partition: fetch for fetch in fetches}
        stopping = [partition for partition in self.current if partition not in wanted]
        starting = [partition for partition in wanted if partition not in self.current]
        self.current = wanted
        for partition in stopping:
            if partition in self._under_way:
                self._stopping[partition] = None
            else:
                self._write(partition, "ceases", 0)
        for partition in starting:
            if partition in self._stopping:
                del self._stopping[partition]  # it has not fallen quiet, so it just goes on
            else:
                self._begin(wanted[partition])
        if wanted and not self._is_running:
            self._is_running = True
            self.kernel.after(self.chance.below(self.every_us), self._cycle, None)
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
        return tuple((one, at) for one, at in self._positions.items() if at >= 0)

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget where I stood."""
        for partition in list(self._positions) if partitions is None else partitions:
            self._positions.pop(partition, None)

    def stop(self) -> None:
        """The process is gone, or its program is over."""
        for partition in (*self.current, *self._stopping):
            self._write(partition, "ceases", 0)
        self.current = {}
        self._stopping.clear()
        self._is_running = False

    # --- fetching ----------------------------------------------------------------------

    def _cycle(self, _: object) -> None:
        if not self._is_running or not self.node.is_alive:
            return
        if self.node.is_paused:
            resumed = self.node.until_resumed().callbacks
            resumed.append(self._cycle)
            return
        if not self.current:
            self._is_running = False
            return
        for broker, fetches in self._by_broker().items():
            self._ask(broker, fetches)
        self.kernel.after(self.every_us, self._cycle, None)

    def _by_broker(self) -> dict[Node | None, list[Fetch]]:
        requests: dict[Node | None, list[Fetch]] = {}
        under_way, broker_for = self._under_way, self.logs.broker_for
        for fetch in self.current.values():
            if fetch.partition not in under_way:
                requests.setdefault(broker_for(fetch.partition, fetch.address), []).append(fetch)
        return requests

    def _ask(self, broker: Node | None, fetches: list[Fetch]) -> None:
        """Send a request; what the broker has then is what will arrive."""
        moves: list[tuple[Partition, int]] = []
        size = 0
        for fetch in fetches:
            partition = fetch.partition
            self._under_way[partition] = None
            before = self._positions.get(partition)
            log = self.logs.logs.get(partition)
            if before is not None and log is not None and broker is not None:
                end = log.end(self.kernel.now_us)
                after = end if before < 0 else min(end, before + MOST_MESSAGES)
                if after != before:
                    moves.append((partition, after))
                    size += (after - max(before, 0)) * log.size_bytes
        took = self.chance.draw(self.kernel.profile.fetch)
        took += size * 1000 // self.kernel.profile.bytes_per_ms
        self.kernel.after(took, self._done, (broker, fetches, moves))

    def _done(self, message: Fetched) -> None:
        if not self.node.is_alive:
            return
        if self.node.is_paused:
            resumed = self.node.until_resumed().callbacks
            resumed.append(lambda event: self._done(message))
            return
        broker, fetches, moves = message
        for fetch in fetches:
            self._under_way.pop(fetch.partition, None)
        if broker is None or not self._reaches(broker):
            self._failed(broker, fetches)
        else:
            if self._failures:
                self._failures.pop(broker.name, None)
            if moves:
                self._delivered(broker, moves)
        if self._stopping:
            self._fall_quiet(fetches)

    def _reaches(self, broker: Node) -> bool:
        return (
            broker.is_alive
            and not broker.is_paused
            and not self.network.is_cut(self.node.name, broker.name)
            and not self.network.is_cut(broker.name, self.node.name)
        )

    def _delivered(self, broker: Node, moves: list[tuple[Partition, int]]) -> None:
        moved: dict[str, list[int]] = {}
        for partition, after in moves:
            before = self._positions.get(partition)
            if before is None or (
                partition not in self.current and partition not in self._stopping
            ):
                continue
            self._positions[partition] = after
            if after > before >= 0:
                moved[f"{partition.topic}/{partition.name}"] = [before, after]
        if moved:
            self._say("fetched", {"from": broker.name, "moved": moved})

    def _failed(self, broker: Node | None, fetches: list[Fetch]) -> None:
        name = broker.name if broker is not None else fetches[0].address or "no leader"
        self._failures[name] = self._failures.get(name, 0) + 1
        self._say("fetch fails", {"from": name, "times": self._failures[name]})
        if self.ends_on_error and self._failures[name] > 1:
            del self._failures[name]
            for fetch in fetches:
                if self.current.pop(fetch.partition, None) is not None:
                    self._write(fetch.partition, "ceases", 0)

    def _fall_quiet(self, fetches: list[Fetch]) -> None:
        for fetch in fetches:
            if fetch.partition in self._stopping:
                del self._stopping[fetch.partition]
                self._write(fetch.partition, "ceases", 0)
        if not self._stopping and self._quiet is not None:
            quiet, self._quiet = self._quiet, None
            quiet.succeed()

    # --- the trace ---------------------------------------------------------------------

    def _write(self, partition: Partition, does: str, stream: int) -> None:
        detail = {"does": does, "at": self._positions.get(partition, -1), "stream": stream}
        self._say("fetching", detail, partition)

    def _say(
        self, kind: str, detail: dict[str, object], partition: Partition | None = None
    ) -> None:
        client = self.node.client
        self.kernel.write(
            self.node.name,
            kind,
            detail,
            session=client.session if client is not None else 0,
            group=self.node.group,
            topic=partition.topic if partition is not None else "",
            partition=partition.name if partition is not None else "",
        )
