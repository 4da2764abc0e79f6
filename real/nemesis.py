"""Brings about what the timeline says, for real, and counts what it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from model.answers import LEAVE
from model.faults import VERBS, Action, Effect
from real.ending import end_session

if TYPE_CHECKING:
    from real.clusters import Cluster
    from real.flow import Direction
    from real.process import MemberProcess
    from real.server import Server
    from real.world import World

Deed = Callable[["World", Action, Effect], None]


class Nemesis:
    """The timeline at work."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.effects = [Effect(action) for action in world.plan.timeline]
        self.ends_us = world.plan.calm_us
        """When the last action that has struck so far is over."""
        self._undoing = False
        self._asked: dict[tuple[str, str, str], int] = {}

    def schedule(self) -> None:
        """Put the actions that have a time on the calendar."""
        for effect in self.effects:
            at_us = effect.action.at_us
            if at_us is not None:
                self.world.at(at_us, lambda effect=effect: self.strike(effect))  # type: ignore[misc]

    def strike(self, effect: Effect) -> None:
        """Let an action take place."""
        action = effect.action
        now = self.world.now_us()
        effect.at_us = now
        effect.until_us = now + action.for_us
        self.ends_us = max(self.ends_us, effect.until_us)
        kind = "fault" if action.is_fault else action.verb.kind
        self.world.write(
            action.target,
            kind,
            {
                "verb": action.verb.name,
                "number": action.number,
                "for_us": action.for_us,
                "lasts": action.lasts,
            },
        )
        self._undoing = False
        DEEDS[action.verb.name](self.world, action, effect)
        if action.lasts and not self._undoing:
            self.later(effect, action.for_us, lambda: None)

    def later(self, effect: Effect, delay_us: int, call: Callable[[], Any]) -> None:
        """Undo an action when its time is over."""

        def undo() -> None:
            call()
            self.world.write(
                effect.action.target,
                "fault ends" if effect.action.is_fault else "load ends",
                {"verb": effect.action.verb.name, "number": effect.action.number},
            )

        self._undoing = True
        until_us = self.world.now_us() + delay_us
        effect.until_us = max(effect.until_us or 0, until_us)
        self.ends_us = max(self.ends_us, effect.until_us)
        self.world.at(until_us, undo)

    # --- faults that wait for a step ---------------------------------------------------

    def steps_of(self, node: str) -> tuple[tuple[str, str], ...]:
        """The steps of a member at which something may be waiting for it."""
        return tuple(
            dict.fromkeys(
                (_moment(effect.action), trigger.asks)
                for effect in self.effects
                for trigger in [effect.action.trigger]
                if trigger is not None and trigger.node == node
            )
        )

    def at_step(self, member: MemberProcess, when: str, purpose: str) -> None:
        """A member has reached a step; what waits for it strikes, and then it may go on."""
        key = (member.node, purpose, when)
        count = self._asked[key] = self._asked.get(key, 0) + 1
        for effect in self.effects:
            trigger = effect.action.trigger
            if trigger is None or effect.at_us is not None or trigger.node != member.node:
                continue
            step = (trigger.asks, _moment(effect.action), trigger.nth)
            if step == (purpose, when, count):
                self.strike(effect)
        member.go()


def _moment(action: Action) -> str:
    """When a step is of interest to an action; what is to be lost is aimed before."""
    assert action.trigger is not None, "only actions with a trigger wait for a step"
    return "before" if action.verb.name == "lose" else action.trigger.when


# --- members ---------------------------------------------------------------------------


def start(world: World, action: Action, effect: Effect) -> None:
    """A process starts."""
    found = _server(world, action.target)
    if found is not None:
        if found[1].state == "down":
            found[1].start(patience_s=None)
            effect.add("servers started")
    elif world.start(action.target, new_id=action.option("as") == "new id"):
        effect.add("processes started")


def leave(world: World, action: Action, effect: Effect) -> None:
    """A member is asked to leave."""
    member = world.running(action.target)
    if member is not None and member.deliver(LEAVE):
        effect.add("processes asked to leave")


def crash(world: World, action: Action, effect: Effect) -> None:
    """A process is killed."""
    found = _server(world, action.target)
    if found is not None:
        if found[1].kill():
            effect.add("servers killed")
        return
    member = world.running(action.target)
    if member is not None:
        world.kill(member)
        effect.add("processes killed")


def pause(world: World, action: Action, effect: Effect) -> None:
    """A process stands still."""
    found = _server(world, action.target)
    if found is not None:
        server = found[1]
        if server.pause():
            effect.add("servers paused")
            world.nemesis.later(effect, action.for_us, server.resume)
        return
    member = world.running(action.target)
    if member is not None:
        member.pause()
        effect.add("processes paused")
        world.nemesis.later(effect, action.for_us, member.resume)


def _server(world: World, target: str) -> tuple[Cluster, Server] | None:
    for cluster in world.clusters.values():
        for server in cluster.service.servers:
            if server.name == target:
                return cluster, server
    return None


def _cluster_at(world: World, target: str) -> Cluster:
    """The cluster whose ensemble a target names."""
    for cluster in world.clusters.values():
        if f"{cluster.prefix}zookeeper" == target:
            return cluster
    return next(iter(world.clusters.values()))


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
    if end_session(world.cluster_of(action.target).service.hosts, session):
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


# --- clocks and load -------------------------------------------------------------------


def skew(world: World, action: Action, effect: Effect) -> None:
    """A clock is wrong."""
    by_ms = int(action.option("by")) // 1000
    world.skews[action.target] = by_ms
    member = world.running(action.target)
    if member is not None and member.tell(skew_ms=by_ms):
        effect.add("clocks set")


def produce(world: World, action: Action, effect: Effect) -> None:
    """Messages are written, at a rate."""
    topic = action.target.partition("/")[0]
    rate, size = int(action.option("rate")), int(action.option("size", 100))
    effect.add("messages a second", rate // 1000)
    data = _cluster_of_topic(world, topic).data
    data.produce(topic, rate, size)
    world.write(topic, "produces", {"rate_per_1000_s": rate, "size": size})
    if action.for_us:
        world.nemesis.later(effect, action.for_us, lambda: data.cease(topic, rate, size))


def _cluster_of_topic(world: World, topic: str) -> Cluster:
    """The cluster that has a topic, or the first one for a topic that is new."""
    for cluster in world.clusters.values():
        if any(one.name == topic for one in cluster.plan.topics):
            return cluster
    return next(iter(world.clusters.values()))


DEEDS: dict[str, Deed] = {
    "start": start,
    "restart": start,
    "leave": leave,
    "crash": crash,
    "pause": pause,
    "skew": skew,
    "expire": expire,
    "disconnect": disconnect,
    "lose": lose,
    "partition": partition,
    "delay": delay,
    "rolling_restart": rolling_restart,
    "quorum_loss": quorum_loss,
    "produce": produce,
}

assert set(DEEDS) == {verb.name for verb in VERBS.values() if "live" in verb.worlds}
