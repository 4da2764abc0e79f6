"""The faults that a simulation brings about in its own way, and the table of all of them.

Each function carries out one verb of a timeline. It adds to its effect what it has really
changed; a fault of a link or a disk counts later, when a message or a write meets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from watchkeeper.model.nemesis import actions
from watchkeeper.model.nemesis.nemesis import Handler
from watchkeeper.model.plan.faults import VERBS, Action, FaultEffect
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.zookeeper.writes import ephemerals_of
from watchkeeper.sim.faults.world import NodeTarget, World
from watchkeeper.sim.zookeeper.client import Loss
from watchkeeper.sim.zookeeper.ensemble import Ensemble

NOT_CONNECTED = "its client has no connection then"
"""Why a fault of a connection has no effect."""

# --- processes -------------------------------------------------------------------------


def crash_host(world: World, action: Action, effect: FaultEffect) -> None:
    """Lose a machine: no packet ends its connections at the other hosts."""
    target = world.process(action.target)
    if not isinstance(target, NodeTarget):
        return
    for node in target.nodes:
        assert node.client is not None, "every process has a client"
        if node.client.connection is not None:
            # The client forgets the connection without hanging up, so that the server keeps it
            # open until the session expires.
            effect.add("connections left open")
            node.client.pulse.end()
            node.client.connection = None
    target.kill(effect, lost=effect)


def skew(world: World, action: Action, effect: FaultEffect) -> None:
    """Set a clock wrong. It has an effect when a program reads it."""
    world.skew(action.target, int(action.option("by")), effect)


# --- sessions and connections ----------------------------------------------------------


def expire(world: World, action: Action, effect: FaultEffect) -> None:
    """Let the ensemble end a session; with `unknown` its client does not learn of it yet."""
    node = world.running(action.target)
    if node is None or node.client is None:
        return
    client = node.client
    sessions = client.ensemble.sessions
    lease = sessions.leases.get(client.session)
    if lease is None or lease.ending or client.ensemble.leader is None:
        return
    effect.add("sessions ended")
    ephemerals = client.ensemble.committed.ephemerals.get(client.session)
    effect.add("ephemerals removed", len(ephemerals) if ephemerals is not None else 0)
    sessions.end(lease, EventKind.SESSION_EXPIRED)
    if action.option("unknown"):
        _cut(world, effect, client.ensemble, node.name, action.for_us, ("from",))


def unregister(world: World, action: Action, effect: FaultEffect) -> None:
    """Delete the registration of a member, as an operator may do by hand."""
    node = world.running(action.target)
    client = None if node is None else node.client
    own = () if client is None else ephemerals_of(client.ensemble.committed, client.session)
    actions.delete_registration(world, action.target, own, effect)


def disconnect(world: World, action: Action, effect: FaultEffect) -> None:
    """Break a connection. Requests under way are lost or arrive, at random."""
    node = world.running(action.target)
    if node is None or node.client is None:
        return
    client = node.client
    client.blocked_until_us = world.kernel.now_us + action.for_us
    connection = client.connection
    if connection is None or client.state != "connected":
        effect.missed = NOT_CONNECTED
        return
    effect.add("connections broken")
    connection.loses_requests = world.kernel.streams("faults").chance(50)
    effect.add("watches lost", len(connection.server.watches.paths.get(connection.number, ())))
    connection.server.disconnect(connection)
    client.lose("disconnected")


def lose(world: World, action: Action, effect: FaultEffect) -> None:
    """Lose a request, or only its reply, with the connection that carries it."""
    trigger = action.trigger
    assert trigger is not None, "a loss is aimed at a step"
    node = world.running(trigger.node)
    client = None if node is None else node.client
    if client is None or client.connection is None or client.state != "connected":
        effect.missed = NOT_CONNECTED
        return
    message: Literal["request", "reply"] = "reply" if action.target == "reply" else "request"
    lands_after_us = action.option("lands_after")
    client.lose_next(Loss(message, effect, lands_after_us))
    if lands_after_us is not None:
        # The fault lasts until the late request lands: it still keeps a session alive then.
        world.later(effect, lands_after_us, lambda: None)


# --- links -----------------------------------------------------------------------------


def partition(world: World, action: Action, effect: FaultEffect) -> None:
    """Cut the links between two sides, in both directions or in one."""
    directions = {"to": ("to",), "from": ("from",)}.get(
        action.option("direction", "both"), ("to", "from")
    )
    ensemble = world.ensemble_of(action.target)
    others = list(_others(world, ensemble, action))
    _cut(world, effect, ensemble, action.target, action.for_us, directions, others)


def _others(world: World, ensemble: Ensemble, action: Action) -> Iterator[str]:
    """Yield the names on the other side of a partition."""
    others = action.option("from", "zookeeper")
    if others in ("zookeeper", f"{ensemble.prefix}zookeeper"):
        yield from (server.name for server in ensemble.servers if server.name != action.target)
    elif others == "brokers":
        yield from world.brokers_but(action.target)
    else:
        yield others


def _cut(
    world: World,
    effect: FaultEffect,
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
    # Followers apply lazily what has reached them; that has to happen before the cut, or a
    # follower would miss commits that arrived in time.
    ensemble.election.links_break()
    for pair in pairs:
        network.cut(*pair, effect)

    def heal() -> None:
        for pair in pairs:
            network.heal(*pair, effect)
        ensemble.election.links_changed()

    ensemble.election.links_changed()
    world.later(effect, for_us, heal)


def delay(world: World, action: Action, effect: FaultEffect) -> None:
    """Add a latency to every message that a node sends or receives."""
    name = action.target
    world.network.slow_down(name, int(action.option("by")), effect)
    world.later(effect, action.for_us, lambda: world.network.delays.pop(name, None))


def lag(world: World, action: Action, effect: FaultEffect) -> None:
    """Let a follower apply commits later than it should."""
    ensemble = world.ensemble_of(action.target)
    server = ensemble.server(action.target)
    server.fall_behind(int(action.option("by")), effect)
    world.later(effect, action.for_us, server.catch_up)


# --- disks -----------------------------------------------------------------------------


def disk_slow(world: World, action: Action, effect: FaultEffect) -> None:
    """Multiply the time that a disk takes. It has an effect when an operation waits for it."""
    undo = world.files_of(action.target).slow_down(int(action.option("times")), effect)
    world.later(effect, action.for_us, undo)


def disk_full(world: World, action: Action, effect: FaultEffect) -> None:
    """Fill a disk. It has an effect when a broker appends."""
    undo = world.files_of(action.target).fill_up(effect)
    world.later(effect, action.for_us, undo)


HANDLERS: Mapping[str, Handler[World]] = {
    **actions.HANDLERS,
    "crash_host": crash_host,
    "skew": skew,
    "expire": expire,
    "unregister": unregister,
    "disconnect": disconnect,
    "lose": lose,
    "partition": partition,
    "delay": delay,
    "lag": lag,
    "disk_slow": disk_slow,
    "disk_full": disk_full,
}
"""Verb -> the function that carries it out."""

assert set(HANDLERS) == {verb.name for verb in VERBS.values() if "sim" in verb.worlds}
