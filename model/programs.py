"""The programs of a plan: what a world runs for each of its processes."""

from __future__ import annotations

from dataclasses import replace

from model.answers import LEAVE
from model.asks import close_session, new_session, next_note
from model.broker import Broker, broker
from model.clients.discovery import Discovery, discovery
from model.consumer import consumer
from model.member import Consumer
from model.operations import ZooKeeper
from model.plan import BrokerPlan, ClusterPlan, ConsumerPlan, ProducerPlan
from model.program import Ended, Program

PRODUCER_TIMEOUT_MS = 6_000
"""`zk.sessiontimeout.ms` of a producer as it is shipped."""


def consumer_program(
    cluster: ClusterPlan, group: str, plan: ConsumerPlan, *, life: int, new_id: bool
) -> Program:
    """The program of a consumer, shipped or the user's own.

    `life` counts the processes there have been of this name; one with a new id is
    configured with it.
    """
    configured = plan.configured_id
    if new_id and configured:
        configured = f"{configured}.{life}"
    me = Consumer(
        plan.node,
        group,
        plan.host,
        plan.subscription,
        cluster.layout,
        plan.variant,
        plan.settings,
        configured,
    )
    return consumer(me) if plan.program is None else replace(plan.program, me=me)


def broker_program(cluster: ClusterPlan, plan: BrokerPlan, on_disk: dict[str, int]) -> Program:
    """The program of a broker; `on_disk` says how many partitions of a topic it has (0.7)."""
    has = tuple(sorted(on_disk.items())) if cluster.layout == "0.7" else ()
    me = Broker(
        plan.node,
        plan.broker_id,
        plan.host,
        plan.port,
        cluster.layout,
        cluster.variant,
        has,
        cluster.session_timeout_ms,
    )
    return broker(me)


def producer_program(plan: ProducerPlan) -> Program:
    """The program of a producer: it finds brokers, unless the producer is told where they are."""
    return discovery(Discovery()) if plan.settings.finds_brokers else Program(_idle, None, None)


async def _idle(zk: ZooKeeper, me: None, memory: None) -> Ended | None:
    """Do nothing but leave when it is time to."""
    await new_session()
    while await next_note() != LEAVE:
        pass
    await close_session()
    return Ended("left")
