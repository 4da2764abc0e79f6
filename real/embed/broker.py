"""A broker inside an application: it is registered in ZooKeeper while its session lives.

    with Broker("localhost:2181", id=7, host="10.0.0.7", port=9092, topics={"clicks": 4}):
        serve()

Consumers of every group are notified when it is registered, and when it is closed or its session
expires.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Command, CommandKind
from watchkeeper.model.actor.operations import Create, Exists, Multi, Operation, Pipelined
from watchkeeper.model.actor.program import Program
from watchkeeper.model.actor.rpc import Call
from watchkeeper.model.broker import registration
from watchkeeper.model.group.layout_detection import detecting
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.embed.member import Member
from watchkeeper.real.embed.task_member import TaskMember
from watchkeeper.real.embed.validation import broker_given, check_name, check_number


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """The state of a broker, and counts since its start."""

    session: str
    """connecting, connected, suspended, expired or closed."""
    sessions: int
    """The number of sessions since the start."""
    is_registered: bool
    """Whether its id is registered in ZooKeeper, by the last response."""
    failed_turns: int


class Broker(Member):
    """The registration of a broker in ZooKeeper, kept by this application."""

    not_ready = "is not registered"

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
        """Describe a broker; `start` registers it.

        topics               topic -> number of partitions on this broker, only in the 0.7
                             layout: in 0.8 a topic belongs to the cluster
        layout               "0.7" or "0.8"; by default 0.7 with `topics`; without them it is
                             found in the registry, and the variant's own in an empty one
        session_timeout_ms   the session timeout that is requested of ZooKeeper
        kazoo                passed to kazoo unchanged: `auth_data`, `use_ssl`, `ca` ...

        Raises ValueError for an invalid argument.
        """
        me = broker_given(id, (host, port), topics or {}, variant, layout, session_timeout_ms)
        self.me = me
        self._is_registered = False
        super().__init__(
            self.program_of(me) if layout or topics else detecting(me, self.program_of),
            hosts,
            name=me.node,
            logger=logging.getLogger("watchkeeper.broker"),
            session_timeout_ms=session_timeout_ms,
            kazoo=kazoo,
            resends_watches=True,
        )

    def program_of(self, me: registration.Broker) -> Program:
        """Return the program that registers a broker; one that does more has another."""
        return registration.broker(me)

    def set_topic(self, topic: str, partitions: int) -> None:
        """Register the number of partitions of a topic on this broker; 0 removes the topic.

        Raises ValueError for an invalid name or number.
        """
        check_name("a topic", topic)
        check_number("partitions", partitions, least=0)
        order = CommandKind.ADD_PARTITIONS if partitions else CommandKind.DELETE_TOPIC
        self.tell(Command(order, topic, partitions))

    @property
    def status(self) -> BrokerStatus:
        """The present state, and counts since the start."""
        return BrokerStatus(
            session=self.session,
            sessions=self.driver.client.generation,
            is_registered=self._is_registered and self.session == "connected",
            failed_turns=self.account.counts[EventKind.TURN_FAILED],
        )

    def _hear(self, kind: str) -> None:
        if kind == EventKind.EXPIRED:
            self._is_registered = False

    def _saw(self, effect: Operation[Any] | Pipelined | Call, answer: Any) -> None:
        if (
            not isinstance(effect, Operation | Pipelined)
            or effect.purpose != "register"
            or isinstance(answer, Failure)
        ):
            return
        first = effect.operations[0] if isinstance(effect, Multi | Pipelined) else effect
        if first.path != paths.broker(self.me.broker_id):
            return
        if isinstance(first, Create) or (isinstance(first, Exists) and answer and answer.mine):
            self._is_registered = True
            self._is_ready.set()


class BrokerWithTasks(Broker, TaskMember):
    """A registration whose session also serves operations from outside of its program."""
