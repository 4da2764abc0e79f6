"""The servers of a world's ZooKeeper: `model.ensemble`, with virtual time and a network.

A write is durable after the time that a sync of the log takes, and in an ensemble of several
servers after a majority has it. Requests and answers take the latency of the network.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from random import Random

from watchkeeper.model.ensemble.clock import Timer as ClockTimer
from watchkeeper.model.ensemble.connection import Connection
from watchkeeper.model.ensemble.control import Control
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.entry import Entry
from watchkeeper.model.ensemble.server import Server
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.virtual.network.network import Network
from watchkeeper.virtual.network.stream import Stream
from watchkeeper.virtual.threads.scheduler import Scheduler
from watchkeeper.virtual.zookeeper.record import Lines, Received, Record

PORT = 2181
NS_A_MS = 1_000_000
APART_MS = 1_000
SHORTEST_SYNC_NS = 150_000
SPREAD_SYNC_NS = 350_000
QUORUM_NS = 300_000
"""What a majority adds to a write."""


class VirtualClock:
    """The time of a scheduler, as ensembles read it."""

    def __init__(self, scheduler: Scheduler, ahead_ms: int = 0) -> None:
        self._scheduler = scheduler
        self._ahead_ms = ahead_ms

    def now_ms(self) -> float:
        """Milliseconds since the begin of the run."""
        return self._scheduler.now_ns / NS_A_MS

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._scheduler.wall_ns() // NS_A_MS + self._ahead_ms

    def call_later(self, delay_ms: float, call: Callable[[], object]) -> ClockTimer:
        """Make a call once so much time has passed.

        Rounded up: an ensemble that waits for the rest of a tick would else wait for ever, at one
        moment.
        """
        return self._scheduler.call_later(max(ceil(delay_ms * NS_A_MS), 0), call)


class ZooKeeperService:
    """The ZooKeeper of one world."""

    def __init__(
        self,
        scheduler: Scheduler,
        network: Network,
        *,
        servers: int = 1,
        settings: EnsembleSettings | None = None,
        received: Received | None = None,
        lines: Lines | None = None,
        subnet: int = 0,
    ) -> None:
        """Start the servers; `received` is called with each request that one receives.

        Several services of one world have a `subnet` each.
        `lines` has the line of code that a request comes from.
        """
        self._scheduler = scheduler
        self._chance = Random(scheduler.random.getrandbits(64))
        self._durable_ns = 0
        self.record = Record(scheduler, received, lines)
        self.ensemble = Ensemble(
            # The ids of sessions have the time in them, and two services never began at once.
            VirtualClock(scheduler, ahead_ms=subnet * APART_MS),
            servers=servers,
            settings=settings,
            journal=self._sync,
            recorder=self.record,
        )
        self.record.begin(self.ensemble)
        self.control = Control(self.ensemble)
        self.addresses = tuple(
            f"10.1.{subnet}.{server.number}" for server in self.ensemble.servers
        )
        for server, address in zip(self.ensemble.servers, self.addresses, strict=True):
            network.listen(address, PORT, lambda stream, server=server: _accept(server, stream))  # type: ignore[misc]

    @property
    def hosts(self) -> str:
        """The servers, as a connection string."""
        return ",".join(f"{address}:{PORT}" for address in self.addresses)

    def _sync(self, entry: Entry) -> None:
        takes_ns = SHORTEST_SYNC_NS + int(self._chance.random() ** 2 * SPREAD_SYNC_NS)
        if len(self.addresses) > 1:
            takes_ns += QUORUM_NS
        due_ns = self._durable_ns = max(self._scheduler.now_ns + takes_ns, self._durable_ns)
        zxid = entry.zxid
        self._scheduler.call_at(due_ns, lambda: self.ensemble.durable_up_to(zxid))

    def stop(self) -> None:
        """Close every connection and stop every timer."""
        self.ensemble.stop()


def _accept(server: Server, stream: Stream) -> Connection | None:
    host, port = stream.peer
    connection = server.accept(stream, host, port=port)
    if connection is not None:
        stream.received = connection.receive
        stream.closed = connection.closed_by_client
    return connection
