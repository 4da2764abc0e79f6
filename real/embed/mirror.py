"""A mirror inside an application: it reads one cluster and sends to the brokers of another.

    with Mirror("localhost:2181/east", brokers="0:b0.example:9092", group="hub",
                topics="click.*") as mirror:
        mirror.over()

It is the consumer, the producer and the mirror that the simulation runs, over a real ZooKeeper
and TCP. Several of one group share the partitions of the source.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal

from model.asks import Partition
from model.clients import mirror
from model.clients.connector import Connector
from model.clients.journals import TraceJournal
from model.clients.producer_settings import ProducerSettings, producer_settings
from model.plan import Forwarding
from real.reading import ReadingMember
from real.wishes import consumer_given, subscription_given

LOOK_S = 0.1
"""How often it looks whether what waits is to be given up."""
LOGGER = logging.getLogger("watchkeeper.mirror")
TOLD = ("zk.connect", "broker.list")


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """How a mirror is, and what it has carried."""

    session: str
    """connecting, connected, suspended, expired or closed."""
    sessions: int
    """How many it has had."""
    read: int
    """Messages that it was handed."""
    arrived: int
    """Those of them that a connection to a broker of the target has taken."""
    failed_sends: int
    """How often something could not be sent; it is tried again until it can."""
    rebalances: int
    failed_turns: int
    """Errors that the protocol has no answer to; it tries again after a pause."""


class Mirror(ReadingMember):
    """One process of a mirror, alive inside this application."""

    def __init__(
        self,
        hosts: str,
        *,
        brokers: str,
        group: str,
        topics: str,
        commits: Literal["after", "before"] = "after",
        config: Mapping[str, Any] | None = None,
        producer: Mapping[str, Any] | None = None,
        consumer_id: str = "",
        host: str | None = None,
        kazoo: Mapping[str, Any] | None = None,
    ) -> None:
        """Describe a mirror; nothing happens before it is started.

        hosts         the ZooKeeper of the cluster that is read, of layout 0.7
        brokers       those that are sent to, as `broker.list` has them: `0:one:9092,1:two:9092`
        topics        an expression that the names of topics match
        commits       whether a place moves on after its message has arrived, or before that
        config        a consumer's settings by Kafka's names; it begins at the smallest offset
                      unless `auto.offset.reset` says otherwise
        producer      a producer's settings by Kafka's names
        """
        if commits not in ("after", "before"):
            raise ValueError(f"commits is {commits!r}; expected 'after' or 'before'")
        wanted = subscription_given(group, None, topics, None, 1)
        given = {"auto.offset.reset": "smallest", **(config or {})}
        me = consumer_given(group, wanted, "hardened", "0.7", given, consumer_id, host)
        connector = Connector(me, TraceJournal(self._write))
        forwarding = Forwarding(group, brokers, topics, _producer(producer, brokers), commits)
        self.me = me
        self.application = mirror.Mirror(connector, forwarding, me.node)
        self._streams = self.application.streams(topics)
        self._is_halted = Event()
        super().__init__(connector, hosts, logger=LOGGER, kazoo=kazoo)

    # --- coming and going -----------------------------------------------------------------

    def _prepare(self) -> None:
        for stream in self._streams:
            body = self.application.handle_all(stream)
            self.driver.start_thread(f"handle {stream.queue}", body)

    def _halt(self) -> None:
        self._is_halted.set()
        super()._halt()

    def _thread_failed(self, name: str, error: Exception) -> None:
        self._is_halted.set()
        super()._thread_failed(name, error)

    def _clean_up(self) -> None:
        self.fetcher.stop()
        closing = self.callers.begin(self._closed())
        while not closing.done() and not self._is_halted.is_set():
            wait([closing], LOOK_S)
        self._look_at(closing)
        super()._clean_up()

    async def _closed(self) -> None:
        """What waits in the producer is sent."""
        await self.driver.threads.run(self.application.producer.close(), self)

    def _look_at(self, closing: Future[None]) -> None:
        """Say what is given up, if what waits in the producer could not be sent in time."""
        status = self.status
        if not closing.done():
            closing.cancel()
        elif closing.exception() is not None:
            self.logger.error("%s: could not close", self.name, exc_info=closing.exception())
        if status.read > status.arrived:
            self.logger.warning(
                "%s: %d messages that it was handed have not arrived",
                self.name,
                status.read - status.arrived,
            )

    # --- what happened --------------------------------------------------------------------

    @property
    def owned(self) -> tuple[Partition, ...]:
        """What it reads."""
        with self.driver.threads.baton:
            return tuple(self.fetcher.connector.fetching.places)

    @property
    def status(self) -> MirrorStatus:
        """How it is now."""
        counts = self.account.counts
        return MirrorStatus(
            session=self.session,
            sessions=self.driver.client.life,
            read=counts["consumed"],
            arrived=counts["handled"],
            failed_sends=counts["not mirrored"],
            rebalances=counts["rebalance ends"],
            failed_turns=counts["turn fails"],
        )

    def _write(self, kind: str, detail: dict[str, Any], partition: Partition | None) -> None:
        if partition is None:
            self.account.write(kind, detail)
        else:
            self.account.write(kind, detail, topic=partition.topic, partition=partition.name)


def _producer(given: Mapping[str, Any] | None, brokers: str) -> ProducerSettings:
    for key in TOLD:
        if key in (given or {}):
            raise ValueError(f"{key} is not a mirror's to set: it sends to `brokers`")
    return producer_settings({**(given or {}), "broker.list": brokers})
