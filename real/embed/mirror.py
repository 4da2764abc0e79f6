"""A mirror inside an application: it reads one cluster and sends to the brokers of another.

    with Mirror("localhost:2181/east", brokers="0:b0.example:9092", group="hub",
                topics="click.*") as mirror:
        mirror.wait_ended()

The simulation runs the same code; here it runs over a real ZooKeeper and TCP. Mirrors of one
group share the partitions of the source.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.compositions import mirror
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.trace_events import TraceListener
from watchkeeper.model.clients.producer.settings import ProducerSettings, producer_settings
from watchkeeper.model.plan.plan import Forwarding
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.embed.reader import ReadingMember
from watchkeeper.real.embed.validation import consumer_given, subscription_given

LOOK_S = 0.1
"""How often a closing mirror checks whether it was halted."""
LOGGER = logging.getLogger("watchkeeper.mirror")
TOLD = ("zk.connect", "broker.list")


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """The state of a mirror, and counts of its messages."""

    session: str
    """connecting, connected, suspended, expired or closed."""
    sessions: int
    """The number of sessions since the start."""
    read: int
    """Messages read from the source."""
    arrived: int
    """Messages read that were sent to a broker of the target."""
    failed_sends: int
    """Failed attempts to send; each is repeated until it succeeds."""
    rebalances: int
    failed_turns: int
    """Errors that the protocol does not handle; it tries again after a pause."""


class Mirror(ReadingMember):
    """One process of a mirror, run by this application."""

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
        """Describe a mirror; `start` joins the group and begins to read.

        hosts         the ZooKeeper of the source cluster, of layout 0.7
        brokers       the target, as in `broker.list`: `0:one:9092,1:two:9092`
        topics        a regular expression for the names of topics
        commits       whether an offset is committed after its message has arrived, or before
        config        the settings of the consumer by Kafka's names; `auto.offset.reset` is
                      `smallest` by default
        producer      the settings of the producer by Kafka's names

        Raises ValueError for an invalid argument or setting.
        """
        if commits not in ("after", "before"):
            raise ValueError(f"commits is {commits!r}; expected 'after' or 'before'")
        wanted = subscription_given(group, None, topics, None, 1)
        given = {"auto.offset.reset": "smallest", **(config or {})}
        me = consumer_given(group, wanted, "hardened", "0.7", given, consumer_id, host)
        connector = Connector(me, TraceListener(self._write))
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
            self.driver.start_task(f"handle {stream.queue}", body)

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
        """Send the messages that are queued in the producer, and close it."""
        await self.driver.tasks.run(self.application.producer.close(), self)

    def _look_at(self, closing: Future[None]) -> None:
        """Log the number of messages that the producer could not send in time."""
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
        """The partitions that are fetched at present."""
        with self.driver.tasks.baton:
            return tuple(self.fetcher.connector.fetcher.positions)

    @property
    def status(self) -> MirrorStatus:
        """The present state, and counts since the start."""
        counts = self.account.counts
        return MirrorStatus(
            session=self.session,
            sessions=self.driver.client.generation,
            read=counts[EventKind.CONSUMED],
            arrived=counts[EventKind.HANDLED],
            failed_sends=counts[EventKind.NOT_MIRRORED],
            rebalances=counts[EventKind.REBALANCE_COMPLETED],
            failed_turns=counts[EventKind.TURN_FAILED],
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
