"""The ordinary changes of a timeline: members come and go, topics change, load begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from model.administrator import spread
from model.answers import LEAVE, Order, Ordered
from model.asks import Partition
from model.faults import Action, Effect
from model.payloads import TopicAssignment
from model.registry import partition_07
from sim.logs import Load
from sim.node import Node

if TYPE_CHECKING:
    from sim.world import Cluster, World


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
    return target not in world.consumers and target not in world.brokers


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


def create_topic(world: World, action: Action, effect: Effect) -> None:
    """A topic comes into being."""
    cluster = _cluster_of(world, action)
    if cluster.plan.layout == "0.7":
        _grow_07(world, cluster, action, effect, Order.CREATE_TOPIC)
    else:
        _grow_08(world, cluster, action, effect, Order.CREATE_TOPIC)


def add_partitions(world: World, action: Action, effect: Effect) -> None:
    """A topic gets more partitions."""
    cluster = _cluster_of(world, action)
    if cluster.plan.layout == "0.7":
        _grow_07(world, cluster, action, effect, Order.ADD_PARTITIONS)
    else:
        _grow_08(world, cluster, action, effect, Order.ADD_PARTITIONS)


def _cluster_of(world: World, action: Action) -> Cluster:
    """The cluster that has the topic, or the first one for a topic that is new."""
    topic = action.target.partition("/")[0]
    for cluster in world.clusters.values():
        if topic in cluster.homes:
            return cluster
    return next(iter(world.clusters.values()))


def _broker_ids(cluster: Cluster) -> list[int]:
    return sorted({broker.broker_id for broker in cluster.plan.brokers})


def _counts(cluster: Cluster, action: Action) -> dict[int, int]:
    """How many partitions each broker is to have."""
    brokers = _broker_ids(cluster)
    if action.option("partitions_per_broker") is not None:
        return dict.fromkeys(brokers, int(action.option("partitions_per_broker")))
    total = int(action.option("partitions") or 1)
    return {
        broker: total // len(brokers) + (1 if at < total % len(brokers) else 0)
        for at, broker in enumerate(brokers)
    }


def _grow_07(
    world: World, cluster: Cluster, action: Action, effect: Effect, order: Order
) -> None:
    topic = action.target
    for broker_id, count in _counts(cluster, action).items():
        before = cluster.disks.setdefault(broker_id, {}).get(topic, 0)
        if count <= before:
            continue
        cluster.disks[broker_id][topic] = count
        effect.add("partitions added", count - before)
        new = [partition_07(topic, broker_id, index) for index in range(before, count)]
        for node in _brokers_up(world, cluster, broker_id):
            cluster.logs.add(node, new)
            node.deliver(Ordered(order, topic, count))


def _grow_08(
    world: World, cluster: Cluster, action: Action, effect: Effect, order: Order
) -> None:
    topic = action.target
    before = cluster.homes.get(topic, TopicAssignment(()))
    total = sum(_counts(cluster, action).values())
    alive = tuple(
        broker_id
        for broker_id in _broker_ids(cluster)
        if any(_brokers_up(world, cluster, broker_id))
    )
    grown = cluster.homes[topic] = spread(before, total, alive)
    effect.add("partitions added", len(grown.replicas) - len(before.replicas))
    new = grown.replicas[len(before.replicas) :]
    for broker_id in alive:
        its_own = [Partition(topic, str(index)) for index, brokers in new if broker_id in brokers]
        for node in _brokers_up(world, cluster, broker_id):
            cluster.logs.add(node, its_own)
    _administrator(world, cluster).deliver(Ordered(order, topic, total))


def _brokers_up(world: World, cluster: Cluster, broker_id: int) -> list[Node]:
    return [
        node
        for plan in cluster.plan.brokers
        if plan.broker_id == broker_id
        for node in [_running(world, plan.node)]
        if node is not None
    ]


def _administrator(world: World, cluster: Cluster) -> Node:
    return world.nodes[f"{cluster.prefix}administrator"]


def delete_topic(world: World, action: Action, effect: Effect) -> None:
    """A topic is deleted: its files on every broker, and its registration."""
    cluster = _cluster_of(world, action)
    topic = action.target
    doomed = [partition for partition in cluster.logs.logs if partition.topic == topic]
    order = Ordered(Order.DELETE_TOPIC, topic)
    gone = cluster.homes.pop(topic, TopicAssignment(()))
    on_disks = sum(disk.pop(topic, 0) for disk in cluster.disks.values())
    is_07 = cluster.plan.layout == "0.7"
    effect.add("partitions deleted", on_disks if is_07 else len(gone.replicas))
    for plan in cluster.plan.brokers:
        node = _running(world, plan.node)
        if node is not None:
            for partition in doomed:
                cluster.logs.remove(node, partition)
            if is_07:
                node.deliver(order)
    if not is_07:
        _administrator(world, cluster).deliver(order)


def move_leader(world: World, action: Action, effect: Effect) -> None:
    """Another broker leads a partition; it needs a replica there."""
    cluster = _cluster_of(world, action)
    topic, _, index = action.target.partition("/")
    broker_id = int(str(action.option("to")).rpartition("/")[2])
    homes = dict(cluster.homes.get(topic, TopicAssignment(())).replicas)
    if broker_id not in homes.get(int(index), ()):
        return
    effect.add("leaders moved")
    order = Ordered(Order.MOVE_LEADER, topic, int(index), broker_id)
    _administrator(world, cluster).deliver(order)


# --- load ------------------------------------------------------------------------------


def produce(world: World, action: Action, effect: Effect) -> None:
    """Messages are written, at a rate."""
    cluster = _cluster_of(world, action)
    load = Load(int(action.option("rate")), int(action.option("size", 100)), effect)
    topic = action.target
    world.kernel.write(
        topic,
        "produces",
        {"rate_per_1000_s": load.rate_per_1000_s, "size": load.size_bytes},
        topic=topic,
    )
    cluster.logs.produce(topic, load)
    if action.for_us:
        world.nemesis.later(effect, action.for_us, lambda: cluster.logs.cease(topic, load))
