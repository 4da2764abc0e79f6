"""The ordinary changes of a timeline: members come and go, topics change, load begins."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from model.answers import LEAVE, Ordered
from model.asks import Partition
from model.faults import Action, Effect
from model.load import Load
from model.topics import CHANGES
from sim.node import Node

if TYPE_CHECKING:
    from sim.cluster import Cluster
    from sim.world import World


# --- members ---------------------------------------------------------------------------


def start(world: World, action: Action, effect: Effect) -> None:
    """A process starts."""
    if _is_server(world, action.target):
        _revive(world, action, effect)
        return
    node = world.start(action.target, new_id=action.option("as") == "new id")
    if node is not None:
        effect.add("processes started")


def restart(world: World, action: Action, effect: Effect) -> None:
    """A process that was killed starts again."""
    start(world, action, effect)


def _is_server(world: World, target: str) -> bool:
    return not any(
        target in known for known in (world.consumers, world.brokers, world.producers.plans)
    )


def _revive(world: World, action: Action, effect: Effect) -> None:
    for cluster in world.clusters.values():
        for server in cluster.ensemble.servers:
            if server.name == action.target and server.state == "down":
                cluster.ensemble.election.revive(server)
                effect.add("servers started")


def leave(world: World, action: Action, effect: Effect) -> None:
    """A member is asked to leave."""
    node = _running(world, action.target)
    if node is not None:
        node.deliver(LEAVE)
        effect.add("processes asked to leave")


def move(world: World, action: Action, effect: Effect) -> None:
    """A broker leaves its machine in good order and starts on another with the same id."""
    node = _running(world, action.target)
    cluster, plan = world.brokers[action.target]
    host, _, port = str(action.option("to")).partition(":")
    world.brokers[action.target] = (
        cluster,
        replace(plan, host=host, port=int(port) if port else plan.port),
    )

    def arrive(_: object = None) -> None:
        if world.start(action.target) is not None:
            effect.add("brokers moved")

    if node is None:
        arrive()
        return
    driver = world.drivers[action.target]
    buried = driver.on_end

    def gone(ended: object) -> None:
        if buried is not None:
            buried(ended)  # type: ignore[arg-type]
        world.kernel.after(0, arrive, None)

    driver.on_end = gone
    node.deliver(LEAVE)


def _running(world: World, name: str) -> Node | None:
    node = world.nodes.get(name)
    return node if node is not None and node.is_alive else None


# --- topics ----------------------------------------------------------------------------


class ClusterTopics:
    """The topics of a simulated cluster."""

    def __init__(self, world: World, cluster: Cluster) -> None:
        self.world = world
        self.cluster = cluster
        self.plan = cluster.plan
        self.disks = cluster.disks
        self.homes = cluster.homes

    def is_up(self, broker: str) -> bool:
        """Whether the process of a broker runs."""
        return _running(self.world, broker) is not None

    def serve(self, broker: str, partitions: list[Partition]) -> None:
        """Let a broker that is up serve more partitions."""
        self.cluster.logs.add(self.world.nodes[broker], partitions)

    def remove(self, broker: str, topic: str) -> None:
        """Let a broker that is up serve nothing of a topic any more."""
        for partition in self.cluster.logs.logs:
            if partition.topic == topic:
                self.cluster.logs.remove(self.world.nodes[broker], partition)

    def order(self, broker: str, order: Ordered) -> None:
        """Give an order to a broker that is up."""
        self.world.nodes[broker].deliver(order)

    def administer(self, order: Ordered) -> None:
        """Give an order to the administrator."""
        self.world.nodes[f"{self.cluster.prefix}administrator"].deliver(order)


def change_topic(world: World, action: Action, effect: Effect) -> None:
    """A topic changes, as it does in every world."""
    cluster = ClusterTopics(world, _cluster_of(world, action))
    CHANGES[action.verb.name](cluster, action, effect)


def _cluster_of(world: World, action: Action) -> Cluster:
    """The cluster that has the topic, or the first one for a topic that is new."""
    topic = action.target.partition("/")[0]
    for cluster in world.clusters.values():
        if topic in cluster.homes:
            return cluster
    return next(iter(world.clusters.values()))


# --- load ------------------------------------------------------------------------------


def produce(world: World, action: Action, effect: Effect) -> None:
    """Messages are written, at a rate."""
    cluster = _cluster_of(world, action)
    load = Load.of(action, effect)
    topic = action.target
    world.kernel.write(topic, "produces", load.detail, topic=topic)
    if cluster.sites is not None:
        world.producers.produce(topic, load, action.option("from"), cluster.plan.name)
        cease = partial(world.producers.cease, load)
    else:
        cluster.logs.produce(topic, load)
        cease = partial(cluster.logs.cease, topic, load)
    if action.for_us:
        world.nemesis.later(effect, action.for_us, cease)
