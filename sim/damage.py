"""The faults of a timeline: what goes wrong, and how it is undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from model.faults import Action, Effect
from sim.client import Loss
from sim.server import Server

if TYPE_CHECKING:
    from sim.ensemble import Ensemble
    from sim.filesystem import FileSystem
    from sim.node import Node
    from sim.world import World


def _node(world: World, action: Action) -> Node | None:
    node = world.nodes.get(action.target)
    return node if node is not None and node.is_alive else None


def _server(world: World, name: str) -> tuple[Ensemble, Server] | None:
    for cluster in world.clusters.values():
        for server in cluster.ensemble.servers:
            if server.name == name:
                return cluster.ensemble, server
    return None


def _ensemble(world: World, name: str) -> Ensemble:
    for cluster in world.clusters.values():
        if name in (cluster.plan.name, f"{cluster.prefix}zookeeper"):
            return cluster.ensemble
    return next(iter(world.clusters.values())).ensemble


# --- processes -------------------------------------------------------------------------


def crash(world: World, action: Action, effect: Effect) -> None:
    """A process is killed; its kernel closes its connections."""
    found = _server(world, action.target)
    if found is not None:
        ensemble, server = found
        if server.state != "down":
            effect.add("servers killed")
            effect.add("connections broken", ensemble.election.kill(server))
        return
    node = _node(world, action)
    if node is not None:
        _kill(world, node, effect)


def _kill(world: World, node: Node, effect: Effect, lost: Effect | None = None) -> None:
    effect.add("processes killed")
    assert node.client is not None, "every process has a client"
    tree = node.client.ensemble.committed
    left_behind = tree.ephemerals.get(node.client.session)
    effect.add("ephemerals left behind", len(left_behind) if left_behind is not None else 0)
    world.kill(node, lost=lost)


def crash_host(world: World, action: Action, effect: Effect) -> None:
    """A machine is lost: nobody is told that its connections are gone."""
    node = _node(world, action)
    if node is None:
        return
    assert node.client is not None, "every process has a client"
    if node.client.connection is not None:
        effect.add("connections left open")
        node.client.pulse.end()
        node.client.connection = None
    _kill(world, node, effect, lost=effect)


def pause(world: World, action: Action, effect: Effect) -> None:
    """A process stands still."""
    found = _server(world, action.target)
    if found is not None:
        ensemble, server = found
        if server.state != "down" and not server.is_paused:
            effect.add("paused ms", action.for_us // 1000)
            ensemble.election.pause(server)
            world.nemesis.later(effect, action.for_us, lambda: _resume_server(ensemble, server))
        return
    node = _node(world, action)
    if node is not None and not node.is_paused:
        effect.add("paused ms", action.for_us // 1000)
        node.pause()
        world.nemesis.later(effect, action.for_us, node.resume)


def _resume_server(ensemble: Ensemble, server: Server) -> None:
    if server.is_paused:
        ensemble.election.resume(server)


# --- sessions and connections ----------------------------------------------------------


def expire(world: World, action: Action, effect: Effect) -> None:
    """The ensemble ends a session. The client is told at once, or cut off from the news."""
    node = _node(world, action)
    if node is None or node.client is None:
        return
    client = node.client
    sessions = client.ensemble.sessions
    lease = sessions.leases.get(client.session)
    if lease is None or lease.ending or client.ensemble.leader is None:
        return
    effect.add("sessions ended")
    held = client.ensemble.committed.ephemerals.get(client.session)
    effect.add("ephemerals removed", len(held) if held is not None else 0)
    sessions.end(lease, "session expired")
    if action.option("unknown"):
        _cut(world, effect, client.ensemble, node.name, action.for_us, ("from",))


def disconnect(world: World, action: Action, effect: Effect) -> None:
    """A connection breaks. What was under way is lost or not, as chance has it."""
    node = _node(world, action)
    if node is None or node.client is None:
        return
    client = node.client
    client.blocked_until_us = world.kernel.now_us + action.for_us
    connection = client.connection
    if connection is None or client.state != "connected":
        return
    effect.add("connections broken")
    connection.loses_requests = world.kernel.streams("faults").chance(50)
    effect.add("watches lost", len(connection.server.watches.paths.get(connection.number, ())))
    connection.server.disconnect(connection)
    client.lose("disconnected")


def lose(world: World, action: Action, effect: Effect) -> None:
    """A request, or only its reply, is lost with the connection that carried it."""
    trigger = action.trigger
    assert trigger is not None, "a loss is aimed at a step"
    node = world.nodes[trigger.node]
    client = node.client
    if client is None or client.connection is None or client.state != "connected":
        return
    what: Literal["request", "reply"] = "reply" if action.target == "reply" else "request"
    lands_after_us = action.option("lands_after")
    client.lose_next(Loss(what, effect, lands_after_us))
    if lands_after_us is not None:  # what lands keeps a session alive
        world.nemesis.later(effect, lands_after_us, lambda: None)


def partition(world: World, action: Action, effect: Effect) -> None:
    """Nothing passes between two sides, or in one direction only."""
    directions = {"to": ("to",), "from": ("from",)}.get(
        action.option("direction", "both"), ("to", "from")
    )
    others = action.option("from", "zookeeper")
    ensemble = _ensemble_of(world, action.target)
    names = list(_others(world, ensemble, action.target, others))
    _cut(world, effect, ensemble, action.target, action.for_us, directions, names)


def _ensemble_of(world: World, target: str) -> Ensemble:
    found = _server(world, target)
    if found is not None:
        return found[0]
    if target in world.consumers:
        return world.clusters[world.consumers[target][0].cluster].ensemble
    if target in world.producers.plans:
        return world.clusters[world.producers.plans[target].cluster].ensemble
    return world.brokers[target][0].ensemble


def _others(world: World, ensemble: Ensemble, target: str, others: str) -> Iterator[str]:
    if others in ("zookeeper", f"{ensemble.prefix}zookeeper"):
        yield from (server.name for server in ensemble.servers if server.name != target)
    elif others == "brokers":
        yield from (name for name in world.brokers if name != target)
    else:
        yield others


def _cut(
    world: World,
    effect: Effect,
    ensemble: Ensemble,
    node: str,
    for_us: int,
    directions: tuple[str, ...],
    others: list[str] | None = None,
) -> None:
    """Cut the links of a node in these directions, seen from the node, and heal them later."""
    network = world.network
    names = [server.name for server in ensemble.servers] if others is None else others
    pairs = [(node, name) for name in names if "to" in directions]
    pairs += [(name, node) for name in names if "from" in directions]
    running = {server.name for server in ensemble.servers if server.state != "down"}
    effect.add("links between servers cut", sum(running.issuperset(pair) for pair in pairs))
    ensemble.election.links_break()
    for pair in pairs:
        network.cut(*pair, effect)

    def heal() -> None:
        for pair in pairs:
            network.heal(*pair, effect)
        ensemble.election.links_changed()

    ensemble.election.links_changed()
    world.nemesis.later(effect, for_us, heal)


def delay(world: World, action: Action, effect: Effect) -> None:
    """Everything that a node sends or receives takes longer."""
    name = action.target
    world.network.slow_down(name, int(action.option("by")), effect)
    world.nemesis.later(effect, action.for_us, lambda: world.network.delays.pop(name, None))


def skew(world: World, action: Action, effect: Effect) -> None:
    """A clock is wrong. It has an effect when somebody reads it."""
    world.skew(action.target, int(action.option("by")), effect)


# --- disks -----------------------------------------------------------------------------


def _files(world: World, action: Action) -> FileSystem:
    sites = world.brokers[action.target][0].sites
    assert sites is not None, "a fault of a disk is only aimed at a broker that has one"
    return sites.host_of(action.target).storage.files


def disk_slow(world: World, action: Action, effect: Effect) -> None:
    """A disk takes so many times as long. It has an effect when something waits for it."""
    undo = _files(world, action).slow_down(int(action.option("times")), effect)
    world.nemesis.later(effect, action.for_us, undo)


def disk_full(world: World, action: Action, effect: Effect) -> None:
    """A disk has no room left. It has an effect when somebody appends."""
    undo = _files(world, action).fill_up(effect)
    world.nemesis.later(effect, action.for_us, undo)


# --- the ensemble ----------------------------------------------------------------------


def lag(world: World, action: Action, effect: Effect) -> None:
    """A server learns of what is committed later than it should."""
    found = _server(world, action.target)
    if found is None:
        return
    _, server = found
    server.fall_behind(int(action.option("by")), effect)
    world.nemesis.later(effect, action.for_us, server.catch_up)


def rolling_restart(world: World, action: Action, effect: Effect) -> None:
    """Every server is killed and started again, one after the other."""
    ensemble = _ensemble(world, action.target)
    each_us = int(action.option("each"))
    for at, server in enumerate(ensemble.servers):
        world.kernel.after(at * each_us * 2, _kill_server, (ensemble, server, effect))
        world.kernel.after(at * each_us * 2 + each_us, _start_server, (ensemble, server, effect))
    world.nemesis.later(effect, len(ensemble.servers) * each_us * 2, lambda: None)


def quorum_loss(world: World, action: Action, effect: Effect) -> None:
    """As many servers are down as it takes for the others to be no majority."""
    ensemble = _ensemble(world, action.target)
    doomed = ensemble.servers[: len(ensemble.servers) - ensemble.quorum + 1]
    for server in doomed:
        _kill_server((ensemble, server, effect))

    def revive() -> None:
        for server in doomed:
            _start_server((ensemble, server, effect))

    world.nemesis.later(effect, action.for_us, revive)


def _kill_server(message: tuple[Ensemble, Server, Effect]) -> None:
    ensemble, server, effect = message
    if server.state != "down":
        effect.add("servers killed")
        effect.add("connections broken", ensemble.election.kill(server))


def _start_server(message: tuple[Ensemble, Server, Effect]) -> None:
    ensemble, server, effect = message
    if server.state == "down":
        effect.add("servers started")
        ensemble.election.revive(server)
