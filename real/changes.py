"""The ordinary changes of a timeline, for real: members and topics come and go, load begins."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from model.answers import LEAVE, Ordered
from model.asks import Partition
from model.faults import Action, Effect
from model.load import Load
from model.topics import CHANGES
from real.damage import server_of
from real.ports import free_ports

if TYPE_CHECKING:
    from real.clusters import Cluster
    from real.world import World


# --- members ---------------------------------------------------------------------------


def start(world: World, action: Action, effect: Effect) -> None:
    """A process starts."""
    server = server_of(world, action.target)
    if server is not None:
        if server.state == "down":
            server.start(patience_s=None)
            effect.add("servers started")
    elif world.start(action.target, new_id=action.option("as") == "new id"):
        effect.add("processes started")


def leave(world: World, action: Action, effect: Effect) -> None:
    """A member is asked to leave."""
    member = world.running(action.target)
    if member is not None and member.deliver(LEAVE):
        effect.add("processes asked to leave")


def move(world: World, action: Action, effect: Effect) -> None:
    """A broker leaves its machine in good order and starts on another with the same id.

    Another machine is another address: where the broker was, nobody listens any more. What
    it has on its disk moves with it.
    """
    name = action.target
    cluster, plan = world.brokers[name]
    host, _, port = str(action.option("to")).partition(":")
    world.brokers[name] = (
        cluster,
        replace(plan, host=host, port=int(port) if port else plan.port),
    )
    (world.ports[name],) = free_ports(1)

    def arrive() -> None:
        if world.start(name):
            effect.add("brokers moved")

    member = world.running(name)
    if member is None:
        arrive()
    else:
        world.after(member, arrive)
        member.deliver(LEAVE)


# --- topics ----------------------------------------------------------------------------


class ClusterTopics:
    """The topics of a live cluster."""

    def __init__(self, world: World, cluster: Cluster) -> None:
        self.world = world
        self.cluster = cluster
        self.plan = cluster.plan
        self.disks = cluster.data.disks
        self.homes = cluster.data.homes

    def is_up(self, broker: str) -> bool:
        """Whether the process of a broker runs."""
        return self.world.running(broker) is not None

    def serve(self, broker: str, partitions: list[Partition]) -> None:
        """Let a broker that is up serve more partitions."""
        self.cluster.data.add(broker, partitions)

    def remove(self, broker: str, topic: str) -> None:
        """Let a broker that is up serve nothing of a topic any more."""
        self.cluster.data.remove(broker, topic)

    def order(self, broker: str, order: Ordered) -> None:
        """Give an order to a broker that is up."""
        self.world.members[broker].deliver(order)

    def administer(self, order: Ordered) -> None:
        """Give an order to the administrator."""
        self.world.members[f"{self.cluster.prefix}administrator"].deliver(order)


def change_topic(world: World, action: Action, effect: Effect) -> None:
    """A topic changes, as it does in every world."""
    topics = ClusterTopics(world, _cluster_of(world, action))
    CHANGES[action.verb.name](topics, action, effect)


def _cluster_of(world: World, action: Action) -> Cluster:
    """The cluster that has the topic, or the first one for a topic that is new."""
    topic = action.target.partition("/")[0]
    for cluster in world.clusters.values():
        if topic in cluster.data.homes:
            return cluster
    return next(iter(world.clusters.values()))


# --- load ------------------------------------------------------------------------------


def produce(world: World, action: Action, effect: Effect) -> None:
    """Messages are written, at a rate."""
    topic = action.target
    cluster = _cluster_of(world, action)
    load = Load.of(action, effect)
    world.write(topic, "produces", load.detail, topic=topic)
    if cluster.sites is not None:
        named = action.option("from")
        number = world.producers.produce(topic, load, named, cluster.plan.name)
        cease = partial(world.producers.cease, number)
    else:
        cluster.data.produce(topic, load)
        cease = partial(cluster.data.cease, topic, load)
    if action.for_us:
        world.nemesis.later(effect, action.for_us, cease)
