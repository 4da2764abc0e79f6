"""The actions that are carried out alike in every world: see `HANDLERS`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from watchkeeper.model.actor.events import LEAVE, Command
from watchkeeper.model.actor.operations import Delete, SetData
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.nemesis.nemesis import Handler
from watchkeeper.model.nemesis.targets import server_of
from watchkeeper.model.nemesis.topic_changes import CHANGES
from watchkeeper.model.nemesis.world import Cluster, Target, World
from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.model.registry.paths import is_registration
from watchkeeper.model.trace.kinds import EventKind

# --- members and servers ---------------------------------------------------------------


def start(world: World, action: Action, effect: FaultEffect) -> None:
    """Start a process, for the first time or after it was killed."""
    server = server_of(world, action.target)
    if server is not None:
        server.start(effect)
    elif world.start(action.target, new_id=action.option("as") == "new id"):
        effect.add("processes started")


def leave(world: World, action: Action, effect: FaultEffect) -> None:
    """Ask a member to leave its group in good order."""
    if world.process(action.target) is not None and world.order(action.target, LEAVE):
        effect.add("processes asked to leave")


def move(world: World, action: Action, effect: FaultEffect) -> None:
    """Let a broker leave its machine in good order and start on another with the same id."""
    name = action.target
    host, _, port = str(action.option("to")).partition(":")
    world.readdress(name, host, int(port) if port else None)

    def arrive() -> None:
        if world.start(name):
            effect.add("brokers moved")

    if world.process(name) is None:
        arrive()
    else:
        # Two processes must never hold one id: the second starts when the first has ended.
        world.when_ended(name, arrive)
        world.order(name, LEAVE)


def crash(world: World, action: Action, effect: FaultEffect) -> None:
    """Kill a process; the kernel of its machine closes its connections."""
    target = _target_of(world, action.target)
    if target is not None:
        target.kill(effect)


def pause(world: World, action: Action, effect: FaultEffect) -> None:
    """Pause a process and resume it later."""
    target = _target_of(world, action.target)
    resume = None if target is None else target.pause(effect, action.for_us)
    if resume is not None:
        world.later(effect, action.for_us, resume)


def abandon(world: World, action: Action, effect: FaultEffect) -> None:
    """End a program but not its process, which keeps the session alive; kill that one later."""
    if not world.abandon(action.target):
        return
    effect.add("sessions left open")
    if action.for_us:
        process = world.process(action.target)
        assert process is not None, "the process of a program that was abandoned goes on"
        world.later(effect, action.for_us, partial(process.kill, effect))


def _target_of(world: World, name: str) -> Target | None:
    return server_of(world, name) or world.process(name)


# --- the ensemble ----------------------------------------------------------------------


def rolling_restart(world: World, action: Action, effect: FaultEffect) -> None:
    """Kill every server and start it again, one after the other."""
    servers = _ensemble_of(world, action.target).servers
    each_us = int(action.option("each"))
    now = world.now_us()
    for at, server in enumerate(servers):
        world.at(now + at * each_us * 2, partial(server.kill, effect))
        world.at(now + at * each_us * 2 + each_us, partial(server.start, effect))
    world.later(effect, len(servers) * each_us * 2, lambda: None)


def quorum_loss(world: World, action: Action, effect: FaultEffect) -> None:
    """Kill the fewest servers without which the others are no majority."""
    servers = _ensemble_of(world, action.target).servers
    victims = servers[: len(servers) - len(servers) // 2]
    for server in victims:
        server.kill(effect)

    def restart() -> None:
        for server in victims:
            server.start(effect)

    world.later(effect, action.for_us, restart)


def _ensemble_of(world: World, target: str) -> Cluster:
    """Return the cluster whose ensemble is meant: that of the name, or the first."""
    for cluster in world.clusters.values():
        if target in (cluster.plan.name, f"{cluster.prefix}zookeeper"):
            return cluster
    return next(iter(world.clusters.values()))


# --- topics ----------------------------------------------------------------------------


class ClusterTopics:
    """The topics of one cluster of a world, as `topic_changes` needs them."""

    def __init__(self, world: World, cluster: Cluster) -> None:
        self.world = world
        self.plan = cluster.plan
        self.disks = cluster.disks
        self.homes = cluster.homes
        self.deleted = cluster.deleted
        self.serve = cluster.serve
        self.remove = cluster.remove
        self._administrator = cluster.administrator

    @property
    def can_change(self) -> bool:
        """Whether a process runs that carries out orders: in the 0.8 layout the administrator."""
        return not self._administrator or self.world.process(self._administrator) is not None

    def is_up(self, broker: str) -> bool:
        """Whether the process of a broker runs."""
        return self.world.process(broker) is not None

    def order(self, broker: str, order: Command) -> None:
        """Give an order to a broker that is up."""
        self.world.order(broker, order)

    def administer(self, order: Command) -> None:
        """Give an order to the administrator."""
        self.world.order(self._administrator, order)


def change_topic(world: World, action: Action, effect: FaultEffect) -> None:
    """Create, grow or delete a topic, or move the leader of a partition."""
    topics = ClusterTopics(world, _cluster_of_topic(world, action))
    if not topics.can_change:
        effect.missed = "its administrator does not run"
        return
    CHANGES[action.verb.name](topics, action, effect)


def _cluster_of_topic(world: World, action: Action) -> Cluster:
    """Return the cluster that has the topic; the first one for a topic that is new."""
    topic = action.target.partition("/")[0]
    for cluster in world.clusters.values():
        if topic in cluster.homes:
            return cluster
    return next(iter(world.clusters.values()))


# --- znodes ----------------------------------------------------------------------------


def delete_registration(
    world: World, name: str, paths: Iterable[str], effect: FaultEffect
) -> None:
    """Delete the registration of a member, which is one of the ephemerals of its session."""
    found = next(filter(is_registration, paths), None)
    if found is None:
        effect.missed = f"{name} is not registered then"
        return
    done = partial(_operated, effect, "registrations deleted")
    world.cluster_of(name).operate(Delete(found), done)


def delete_znode(world: World, action: Action, effect: FaultEffect) -> None:
    """Delete a znode, as an operator may do by hand."""
    cluster, path = _znode_of(world, action.target)
    cluster.operate(Delete(path), partial(_operated, effect, "znodes deleted"))


def write_znode(world: World, action: Action, effect: FaultEffect) -> None:
    """Write a znode, as an operator may do by hand."""
    cluster, path = _znode_of(world, action.target)
    before = cluster.undo_of(path) if action.for_us else None
    data = str(action.option("data")).encode()
    cluster.operate(SetData(path, data), partial(_operated, effect, "znodes written"))
    if before is not None:
        done = partial(_operated, effect, "znodes written back")
        world.later(effect, action.for_us, partial(cluster.operate, before, done))


def _operated(effect: FaultEffect, what: str, problem: str) -> None:
    if problem and effect.is_real:
        effect.add(f"not undone ({problem})")
    elif problem:
        effect.missed = problem
    else:
        effect.add(what)


def _znode_of(world: World, target: str) -> tuple[Cluster, str]:
    """Return the cluster that a target names by its prefix, and the path in it."""
    name, _, path = target.partition("/")
    for cluster in world.clusters.values():
        if name == cluster.prefix:
            return cluster, f"/{path}"
    raise AssertionError(f"a scenario checks that {target!r} names a cluster")


# --- load ------------------------------------------------------------------------------


def produce(world: World, action: Action, effect: FaultEffect) -> None:
    """Send messages to a topic at a rate."""
    topic = action.target
    cluster = _cluster_of_topic(world, action).plan.name
    load = Load.of(action, effect)
    world.write(topic, EventKind.TOPIC_LOAD, load.detail, topic=topic)
    cease = world.produce(cluster, topic, load, action.option("from"))
    if action.for_us:
        world.later(effect, action.for_us, cease)


HANDLERS: Mapping[str, Handler[Any]] = {
    "start": start,
    "restart": start,
    "leave": leave,
    "move": move,
    "crash": crash,
    "pause": pause,
    "abandon": abandon,
    "rolling_restart": rolling_restart,
    "quorum_loss": quorum_loss,
    **dict.fromkeys(CHANGES, change_topic),
    "delete_znode": delete_znode,
    "write_znode": write_znode,
    "produce": produce,
}
"""Verb -> the function that carries it out."""
