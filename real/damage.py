"""The faults of a timeline, for real: what goes wrong, and how it is undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.faults import Action, Effect
from real.ending import end_session

if TYPE_CHECKING:
    from real.clusters import Cluster
    from real.flow import Direction
    from real.server import Server
    from real.world import World


# --- processes -------------------------------------------------------------------------


def crash(world: World, action: Action, effect: Effect) -> None:
    """A process is killed."""
    found = server_of(world, action.target)
    if found is not None:
        if found.kill():
            effect.add("servers killed")
        return
    member = world.running(action.target)
    if member is not None:
        world.kill(member)
        effect.add("processes killed")


def crash_host(world: World, action: Action, effect: Effect) -> None:
    """A machine is lost: its process is gone, ZooKeeper is not told, and files are cut back."""
    member = world.running(action.target)
    if member is not None:
        world.cluster_of(action.target).proxy.strand(action.target, effect.add)
        world.kill(member)
        effect.add("processes killed")
        _cut_back(world, action.target, effect)


def _cut_back(world: World, name: str, effect: Effect) -> None:
    """Emulate what the end of a broker's host does to its files, and say that this was done."""
    sites = world.cluster_of(name).sites
    if sites is None or name not in world.brokers:
        return
    cuts = sites.cut_back(name)
    lost_bytes = sum(one.before_bytes - one.after_bytes for one in cuts)
    files = {one.path: [one.before_bytes, one.after_bytes] for one in cuts}
    world.write(name, "host emulated", {"bytes": lost_bytes, "files": files})
    effect.add("bytes cut back to the last fsync", lost_bytes)


def pause(world: World, action: Action, effect: Effect) -> None:
    """A process stands still."""
    server = server_of(world, action.target)
    if server is not None:
        if server.pause():
            effect.add("servers paused")
            world.nemesis.later(effect, action.for_us, server.resume)
        return
    member = world.running(action.target)
    if member is not None:
        member.pause()
        effect.add("processes paused")
        world.nemesis.later(effect, action.for_us, member.resume)


def server_of(world: World, target: str) -> Server | None:
    """The server of that name; None for a member's."""
    for cluster in world.clusters.values():
        for server in cluster.service.servers:
            if server.name == target:
                return server
    return None


def skew(world: World, action: Action, effect: Effect) -> None:
    """A clock is wrong."""
    by_ms = int(action.option("by")) // 1000
    world.skews[action.target] = by_ms
    member = world.running(action.target)
    if member is not None and member.tell(skew_ms=by_ms):
        effect.add("clocks set")


# --- sessions and connections ----------------------------------------------------------


def expire(world: World, action: Action, effect: Effect) -> None:
    """A session is ended from a second connection; with `unknown`, its client is cut off."""
    proxy = world.cluster_of(action.target).proxy
    session = proxy.session_of(action.target)
    if world.running(action.target) is None or session is None:
        return
    if action.option("unknown"):
        cut = proxy.cut(action.target, effect.add, directions=("from",))
        world.nemesis.later(effect, action.for_us, cut.end)
    if end_session(world.cluster_of(action.target).service.access, session):
        effect.add("sessions ended")


def disconnect(world: World, action: Action, effect: Effect) -> None:
    """A connection breaks, and for a while no other is made."""
    if world.running(action.target) is not None:
        proxy = world.cluster_of(action.target).proxy
        proxy.disconnect(action.target, effect.add, for_s=action.for_us / 1e6)


def lose(world: World, action: Action, effect: Effect) -> None:
    """A request, or only its reply, is lost with the connection that carried it."""
    assert action.trigger is not None, "a loss is aimed at a step"
    name = action.trigger.node
    proxy = world.cluster_of(name).proxy
    if action.target == "reply":
        proxy.lose_reply(name, effect.add)
        return
    lands_after_us = action.option("lands_after")
    lands_after_s = None if lands_after_us is None else lands_after_us / 1e6
    proxy.lose_request(name, effect.add, lands_after_s=lands_after_s)
    if lands_after_us is not None:
        world.nemesis.later(effect, lands_after_us, lambda: None)


def partition(world: World, action: Action, effect: Effect) -> None:
    """Nothing passes between a member and ZooKeeper, or in one direction only."""
    directions = DIRECTIONS[action.option("direction", "both")]
    cut = world.cluster_of(action.target).proxy.cut(
        action.target, effect.add, directions=directions
    )
    world.nemesis.later(effect, action.for_us, cut.end)


DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "to": ("to",),
    "from": ("from",),
    "both": ("to", "from"),
}
"""Which way nothing passes, seen from the member."""


def delay(world: World, action: Action, effect: Effect) -> None:
    """Everything that passes between a member and ZooKeeper takes longer."""
    proxy = world.cluster_of(action.target).proxy
    slow = proxy.delay(action.target, effect.add, by_s=int(action.option("by")) / 1e6)
    world.nemesis.later(effect, action.for_us, slow.end)


# --- the ensemble ----------------------------------------------------------------------


def rolling_restart(world: World, action: Action, effect: Effect) -> None:
    """Every server is killed and started again, one after the other."""
    servers = _cluster_at(world, action.target).service.servers
    each_us = int(action.option("each"))
    now = world.now_us()
    for at, server in enumerate(servers):
        world.at(now + at * each_us * 2, lambda one=server: _kill(one, effect))  # type: ignore[misc]
        world.at(now + at * each_us * 2 + each_us, lambda one=server: _revive(one, effect))  # type: ignore[misc]
    world.nemesis.later(effect, len(servers) * each_us * 2, lambda: None)


def quorum_loss(world: World, action: Action, effect: Effect) -> None:
    """As many servers are down as it takes for the others to be no majority."""
    servers = _cluster_at(world, action.target).service.servers
    doomed = servers[: len(servers) - len(servers) // 2]
    for server in doomed:
        _kill(server, effect)

    def revive() -> None:
        for server in doomed:
            _revive(server, effect)

    world.nemesis.later(effect, action.for_us, revive)


def _kill(server: Server, effect: Effect) -> None:
    if server.kill():
        effect.add("servers killed")


def _revive(server: Server, effect: Effect) -> None:
    if server.state == "down":
        server.start(patience_s=None)
        effect.add("servers started")


def _cluster_at(world: World, target: str) -> Cluster:
    """The cluster whose ensemble a target names."""
    for cluster in world.clusters.values():
        if f"{cluster.prefix}zookeeper" == target:
            return cluster
    return next(iter(world.clusters.values()))
