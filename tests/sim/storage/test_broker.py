"""A simulated broker: requests over connections, served from a disk that may lose its power."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from watchkeeper.model.actor.effects import sleep
from watchkeeper.model.actor.program import Program
from watchkeeper.model.actor.rpc import Call, Disconnected, TimedOut, Unreachable
from watchkeeper.model.log.format.contents import Contents, Series, size_of, whole_series
from watchkeeper.model.log.format.requests import (
    EARLIEST,
    LATEST,
    FetchRequest,
    OffsetsRequest,
    ProduceRequest,
)
from watchkeeper.model.log.settings import log_settings
from watchkeeper.model.plan.plan import StoragePlan
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.sim.brokers.broker import Announced, Broker, BrokerHost
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.engine.latency_profile import DEFAULT
from watchkeeper.sim.engine.random_streams import Streams
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.rpc import Calls
from watchkeeper.sim.process.tasks import Tasks
from watchkeeper.sim.zookeeper.network import Network

ADDRESS = "b0.example:9092"
S = 1_000_000


class Site:
    """One broker on its host, and clients that call it."""

    def __init__(self, **given: Any) -> None:
        self.kernel = Kernel(Streams(7), DEFAULT)
        self.network = Network(self.kernel)
        self.calls = Calls(self.kernel, self.network)
        settings = {name.replace("_", "."): value for name, value in given.items()}
        self.announced = Announced(0, ADDRESS, log_settings(settings))
        self.host = BrokerHost("broker/0", StoragePlan(), self.calls)
        self.failed: list[str] = []
        self.broker = self.start()

    def start(self) -> Broker:
        """Start the broker's process, and let it open its logs."""
        node = self._node("broker/0")
        broker = Broker(node, self.host, self.announced)
        broker.on_failed = self.failed.append
        broker.start()
        self.run(S)
        self.broker = broker
        return broker

    def _node(self, name: str) -> Node:
        node = Node(self.kernel, name, Program(_nothing, None, None))
        node.begin()
        return node

    def run(self, duration_us: int) -> None:
        """Let time pass."""
        self.kernel.run_until(self.kernel.now_us + duration_us)

    def client(self, body: Coroutine[Any, Any, Any], name: str = "client") -> list[Any]:
        """Start a client; what it returns comes into the list."""
        done: list[Any] = []

        async def thread() -> None:
            try:
                done.append(await body)
            except Exception as error:
                done.append(error)

        Tasks(self._node(name), self.calls).start("main", thread())
        return done

    def ask(self, body: Coroutine[Any, Any, Any], within_us: int = 60 * S) -> Any:
        """Run a client to its end."""
        done = self.client(body)
        self.run(within_us)
        assert done, "the client is not done"
        return done[0]

    def crash(self, *, is_host_lost: bool) -> None:
        """The process ends; with it, maybe, the host."""
        self.broker.client_node.is_alive = False
        self.broker.end(is_host_lost=is_host_lost)
        if is_host_lost:
            self.host.lose_power()


async def _nothing(zk: Any, me: Any, memory: Any) -> None:
    """A broker's program is another matter."""


def series(first: int, count: int) -> Contents:
    """Messages of 90 bytes, 100 with what an entry adds."""
    return whole_series(Series("web/0", first, count, 90))


async def produce(first: int, count: int, *, batch: int = 100) -> None:
    """Send messages in batches."""
    for at in range(first, first + count, batch):
        await Call(ADDRESS, ProduceRequest("clicks", 0, series(at, batch)))


async def fetch(at: int = 0, size_bytes: int = 1 << 20) -> Any:
    """Fetch once."""
    return await Call(ADDRESS, FetchRequest("clicks", 0, at, size_bytes))


async def end() -> int:
    """Ask where the log ends."""
    response = await Call(ADDRESS, OffsetsRequest("clicks", 0, LATEST, 1))
    return response.offsets[0]


def test_what_is_produced_is_fetched_once_it_is_flushed() -> None:
    site = Site(log_flush_interval=500)
    site.ask(produce(0, 400), S)
    assert size_of(site.ask(fetch(), S).messages) == 0

    site.ask(produce(400, 100), S)
    response = site.ask(fetch(12_300, 450), S)

    (series_range,) = response.messages
    assert series_range.series.first * 100 + series_range.begin == 12_300
    assert series_range.size_bytes == 450
    ranges = [row[8]["ranges"] for row in site.kernel.rows if row[2] == EventKind.STORED]
    assert [item for ranges_of_one in ranges for item in ranges_of_one][1][:5] == [
        "web/0",
        100,
        200,
        10_000,
        20_000,
    ]


def test_what_is_not_flushed_by_number_is_flushed_in_time() -> None:
    site = Site(log_default_flush_scheduler_interval_ms=200)
    site.ask(produce(0, 100), 300_000)
    site.run(S)

    assert size_of(site.ask(fetch(), S).messages) == 10_000


CRASHES: dict[str, tuple[bool, int]] = {"process": (False, 40_000), "host": (True, 30_000)}


@pytest.mark.parametrize(("is_host_lost", "kept"), CRASHES.values(), ids=CRASHES)
def test_a_process_that_ends_loses_nothing_and_a_host_what_was_not_flushed(
    is_host_lost: bool, kept: int
) -> None:
    site = Site(log_flush_interval=300, log_default_flush_scheduler_interval_ms=1_000_000)
    site.ask(produce(0, 400), S)

    site.crash(is_host_lost=is_host_lost)
    site.start()

    assert site.ask(end(), S) == kept


def test_logs_that_were_closed_are_not_recovered() -> None:
    site = Site()
    site.ask(produce(0, 400), S)
    closed: list[bool] = []
    site.broker.close(lambda: closed.append(True))
    site.run(S)
    assert closed

    site.crash(is_host_lost=True)
    site.start()

    assert site.ask(end(), S) == 40_000
    opened = [row[8] for row in site.kernel.rows if row[2] == EventKind.LOG_OPENED]
    assert opened == [{"start": 0, "end": 40_000, "clean": True}]


# --- connections -----------------------------------------------------------------------


def test_no_process_listens() -> None:
    site = Site()
    site.crash(is_host_lost=False)

    assert isinstance(site.ask(fetch(), S), Unreachable)


def test_a_host_that_is_lost_does_not_say_so() -> None:
    site = Site()
    site.ask(produce(0, 100), S)
    site.crash(is_host_lost=True)

    begun_us = site.kernel.now_us
    done = site.client(fetch())
    site.run(4 * S)
    assert not done
    site.run(2 * S)

    assert isinstance(done[0], Unreachable)
    assert site.kernel.now_us - begun_us == 6 * S


def _crash_in_between(site: Site, is_host_lost: bool) -> Callable[[], Any]:
    async def client() -> list[str]:
        await produce(0, 100)
        await sleep(1000)
        outcomes = []
        for at in (100, 200, 300):
            try:
                await produce(at, 100)
                outcomes.append("sent")
            except (Disconnected, Unreachable) as error:
                outcomes.append(type(error).__name__)
            await sleep(1000)
        return outcomes

    done = site.client(client())
    site.run(S // 2)
    site.crash(is_host_lost=is_host_lost)
    site.run(20 * S)
    return lambda: done[0]


def test_a_producer_hears_from_the_kernel_of_a_process_that_has_died() -> None:
    assert _crash_in_between(Site(), False)() == ["Unreachable"] * 3


def test_a_producer_is_not_told_of_a_host_that_is_lost() -> None:
    """It goes on writing into a connection that no process reads: the messages are lost."""
    assert _crash_in_between(Site(), True)() == ["sent"] * 3


def test_a_response_that_does_not_come_in_time_ends_the_connection() -> None:
    site = Site()
    site.ask(produce(0, 500), S)

    async def client() -> Any:
        await fetch()
        site.broker.client_node.is_paused = True
        try:
            await Call(ADDRESS, FetchRequest("clicks", 0, 0, 100), timeout_ms=2000)
        except TimedOut as error:
            site.broker.client_node.resume()
            return error, await fetch()

    error, response = site.ask(client())

    assert isinstance(error, TimedOut)
    assert size_of(response.messages) == 50_000


def test_a_damaged_request_ends_its_connection_and_no_other() -> None:
    site = Site()

    async def client() -> Any:
        await Call(ADDRESS, ProduceRequest("clicks", 99, series(0, 1)))
        await Call(ADDRESS, FetchRequest("clicks", 0, 0, 100))

    codes = site.client(end())
    assert isinstance(site.ask(client(), S), Disconnected)
    assert codes == [0]
    assert [row[8]["of"] for row in site.kernel.rows if row[2] == EventKind.REQUEST_REFUSED] == [
        "client"
    ]


def test_a_connection_takes_no_more_than_its_buffer() -> None:
    """A broker that does not read lets its producers wait."""
    site = Site()
    site.ask(produce(0, 100), S)
    site.broker.client_node.is_paused = True

    done = site.client(produce(100, 10_000))
    site.run(5 * S)
    assert not done
    site.broker.client_node.resume()
    site.run(60 * S)

    assert done == [None]
    assert site.ask(end(), S) == 1_010_000


def test_a_disk_that_is_full_ends_the_broker() -> None:
    site = Site()
    site.host.storage.files.allowed = lambda file, wanted: 0  # type: ignore[method-assign]

    site.ask(produce(0, 100), S)

    assert len(site.failed) == 1
    assert "no room" in site.failed[0]


def test_the_same_seed_gives_the_same_run() -> None:
    def rows() -> list[Any]:
        site = Site()
        for name in ("one", "other"):
            site.client(produce(0, 1_000), name)
        site.run(5 * S)
        return site.kernel.rows

    assert rows() == rows()


def test_the_earliest_offset_is_the_first_that_is_kept() -> None:
    site = Site(log_file_size=10_000, log_retention_size=20_000, log_cleanup_interval_mins=1)
    site.ask(produce(0, 1_000), 130 * S)

    async def earliest() -> int:
        response = await Call(ADDRESS, OffsetsRequest("clicks", 0, EARLIEST, 1))
        return response.offsets[0]

    assert site.ask(earliest(), S) == 80_000
