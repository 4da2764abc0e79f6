"""A broker inside an application: its registrations stand for as long as it lives.

    with Broker("localhost:2181", id=7, host="10.0.0.7", port=9092, topics={"clicks": 4}):
        serve()

Consumers of every group see it come, and see it go when it is closed or its session ends.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from model import broker, registry
from model.answers import Order, Ordered
from model.errors import Failure
from model.operations import Create, Exists, Multi, Operation, Pipelined
from real.living import Member
from real.wishes import broker_given, check_name, check_number


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """How a broker is, and what it has been through."""

    session: str
    """connecting, connected, suspended, expired or closed."""
    sessions: int
    """How many it has had."""
    is_registered: bool
    """Whether its id stands in ZooKeeper, as far as it knows."""
    failed_turns: int


class Broker(Member):
    """A broker's registrations, alive inside this application."""

    not_ready = "is not registered, and its id may be held by an earlier session,"

    def __init__(
        self,
        hosts: str,
        *,
        id: int,
        host: str | None = None,
        port: int = 9092,
        topics: Mapping[str, int] | None = None,
        variant: str = "hardened",
        layout: str | None = None,
        session_timeout_ms: int = 6000,
        kazoo: Mapping[str, Any] | None = None,
    ) -> None:
        """Describe a broker; nothing happens before it is started.

        topics   topic -> partitions on this broker's disk. In the 0.8 layout topics belong
                 to the cluster, and none can be given here
        """
        me = broker_given(id, (host, port), topics or {}, variant, layout, session_timeout_ms)
        self.me = me
        self._is_registered = False
        super().__init__(
            broker.broker(me),
            hosts,
            name=me.node,
            logger=logging.getLogger("watchkeeper.broker"),
            session_timeout_ms=session_timeout_ms,
            kazoo=kazoo,
        )

    def set_topic(self, topic: str, partitions: int) -> None:
        """Say that a topic has so many partitions here from now on; 0 for none any more."""
        check_name("a topic", topic)
        check_number("partitions", partitions, least=0)
        order = Order.ADD_PARTITIONS if partitions else Order.DELETE_TOPIC
        self.tell(Ordered(order, topic, partitions))

    @property
    def status(self) -> BrokerStatus:
        """How it is now."""
        return BrokerStatus(
            session=self.session,
            sessions=self.driver.client.life,
            is_registered=self._is_registered and self.session == "connected",
            failed_turns=self.account.counts["turn fails"],
        )

    def _hear(self, kind: str) -> None:
        if kind == "expired":
            self._is_registered = False

    def _saw(self, ask: Operation[Any] | Pipelined, answer: Any) -> None:
        if ask.purpose != "register" or isinstance(answer, Failure):
            return
        first = ask.operations[0] if isinstance(ask, Multi | Pipelined) else ask
        if first.path != registry.broker(self.me.broker_id):
            return
        if isinstance(first, Create) or (isinstance(first, Exists) and answer and answer.mine):
            self._is_registered = True
            self._is_ready.set()
