"""The programs of a plan: what a world runs for each of its processes.

The program of a consumer depends on its variant: a mutant has a group member of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from watchkeeper.model.actor.effects import close_session, new_session, next_event
from watchkeeper.model.actor.events import LEAVE
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.broker.administrator import Administrator, administrator
from watchkeeper.model.broker.registration import Broker, broker
from watchkeeper.model.clients.producer.metadata import MetadataSettings, metadata_program
from watchkeeper.model.clients_08.settings import ProducerSettings08
from watchkeeper.model.group.consumer import consumer
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.mutants.by_name import member_of
from watchkeeper.model.plan.plan import (
    BrokerPlan,
    ClusterPlan,
    ConsumerPlan,
    ControllerPlan,
    ProducerPlan,
)
from watchkeeper.model.registry.payloads import TopicAssignment

PRODUCER_TIMEOUT_MS = 6_000
"""`zk.sessiontimeout.ms` of a producer as it is shipped."""


def consumer_program(
    cluster: ClusterPlan, group: str, plan: ConsumerPlan, *, life: int, new_id: bool
) -> Program:
    """Return the program of a consumer: of its variant, or the user's own.

    `life` counts the processes that had this name, this one included. A process with a new
    id has the count in its configured id.
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
    if plan.program is not None:
        return replace(plan.program, me=me)
    return consumer(me, member_of(plan.variant))


def broker_program(cluster: ClusterPlan, plan: BrokerPlan, on_disk: dict[str, int]) -> Program:
    """Return the program of a broker; `on_disk` is topic -> number of partitions (0.7)."""
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
    if cluster.controller is None:
        return broker(me)
    return _controlling_broker(cluster, cluster.controller, me)


def _controlling_broker(cluster: ClusterPlan, controller: ControllerPlan, me: Broker) -> Program:
    # Few clusters elect a controller, and it is a tenth of what a run would import.
    from watchkeeper.model.controller.broker import controlling_broker
    from watchkeeper.model.controller.state_machines.reign import ControllerSettings

    settings = ControllerSettings(
        me.broker_id,
        controller.variant,
        controller.allows_unclean,
        cluster.session_timeout_ms,
    )
    if cluster.replication is not None:
        settings = replace(
            settings,
            sends=True,
            rebalance_ms=cluster.replication.rebalance_ms,
            shutdown_backoff_ms=cluster.replication.shutdown_backoff_ms,
            deletes_topics=cluster.replication.deletes_topics,
        )
    return controlling_broker(me, settings)


def administrator_program(
    cluster: ClusterPlan, name: str, topics: Mapping[str, TopicAssignment]
) -> Program:
    """Return the program of a cluster's administrator, with the topics that it has to create.

    Where the brokers elect a controller, it writes assignments and no leaders.
    """
    has = tuple(sorted(topics.items()))
    controller = cluster.controller
    return administrator(
        Administrator(
            name,
            has,
            elects_leaders=controller is None,
            adds_to_what_is_there=controller is not None and controller.variant.fenced,
            takes_ids_for_places=cluster.tools_take_ids_for_places,
        )
    )


def producer_program(plan: ProducerPlan) -> Program:
    """The program of a producer: it discovers brokers, unless its settings list them."""
    if isinstance(plan.settings, ProducerSettings08) or not plan.settings.finds_brokers:
        return Program(_idle, None, None)
    return metadata_program(MetadataSettings())


async def _idle(zk: ZooKeeper, me: None, state: None) -> Ended | None:
    """Keep a session until the order to leave."""
    await new_session()
    while await next_event() != LEAVE:
        pass
    await close_session()
    return Ended("left")
