"""The faults that a live run brings about in its own way, and the table of all of them.

Each function carries out one verb of a timeline and adds to its effect what it has really
changed. Connections are broken, delayed and cut in the proxy between members and ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from watchkeeper.model.nemesis import actions
from watchkeeper.model.nemesis.nemesis import Handler
from watchkeeper.model.plan.faults import VERBS, Action, FaultEffect
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.client.sessions import end_session
from watchkeeper.real.faults.world import World

if TYPE_CHECKING:
    from watchkeeper.real.proxy.valve import Direction

# --- processes -------------------------------------------------------------------------


def crash_host(world: World, action: Action, effect: FaultEffect) -> None:
    """Lose a machine: kill its process, keep its connections open, and cut its files back."""
    process = world.process(action.target)
    if process is None:
        return
    members = world.members_of(action.target)
    for name in members:
        # Before the kill: the kernel of this machine closes the connections of a process
        # that dies, and the server must not see that.
        world.proxy_of(name).strand(name, effect.add)
    process.kill(effect)
    for name in members:
        _cut_back(world, name, effect)


def _cut_back(world: World, name: str, effect: FaultEffect) -> None:
    """Emulate what a power loss does to the files of a broker, and report it in the trace."""
    cuts = world.cut_back(name)
    if cuts is None:
        return
    lost_bytes = sum(cut.before_bytes - cut.after_bytes for cut in cuts)
    files = {cut.path: [cut.before_bytes, cut.after_bytes] for cut in cuts}
    world.write(name, EventKind.HOST_LOSS_EMULATED, {"bytes": lost_bytes, "files": files})
    effect.add("bytes cut back to the last fsync", lost_bytes)


def skew(world: World, action: Action, effect: FaultEffect) -> None:
    """Set a clock wrong."""
    if world.skew(action.target, int(action.option("by")) // 1000):
        effect.add("clocks set")


# --- sessions and connections ----------------------------------------------------------


def expire(world: World, action: Action, effect: FaultEffect) -> None:
    """End a session from a second connection; with `unknown`, cut its client off first."""
    name = action.target
    proxy = world.proxy_of(name)
    session = proxy.session_of(name)
    if world.process(name) is None or session is None:
        return
    if action.option("unknown"):
        cut = proxy.cut(name, effect.add, directions=("from",))
        world.later(effect, action.for_us, cut.end)
    if end_session(world.access_of(name), session):
        effect.add("sessions ended")


def unregister(world: World, action: Action, effect: FaultEffect) -> None:
    """Delete the registration of a member, as an operator may do by hand."""
    session = world.proxy_of(action.target).session_of(action.target)
    own = () if session is None else world.registrations_of(action.target, session.number)
    actions.delete_registration(world, action.target, own, effect)


def disconnect(world: World, action: Action, effect: FaultEffect) -> None:
    """Break a connection, and refuse others for a while."""
    name = action.target
    if world.process(name) is not None:
        world.proxy_of(name).disconnect(name, effect.add, for_s=action.for_us / 1e6)


def lose(world: World, action: Action, effect: FaultEffect) -> None:
    """Lose a request, or only its reply, with the connection that carries it."""
    assert action.trigger is not None, "a loss is aimed at a step"
    name = action.trigger.node
    proxy = world.proxy_of(name)
    if action.target == "reply":
        proxy.lose_reply(name, effect.add)
        return
    lands_after_us = action.option("lands_after")
    lands_after_s = None if lands_after_us is None else lands_after_us / 1e6
    proxy.lose_request(name, effect.add, lands_after_s=lands_after_s)
    if lands_after_us is not None:
        world.later(effect, lands_after_us, lambda: None)


def partition(world: World, action: Action, effect: FaultEffect) -> None:
    """Cut a member off from ZooKeeper or from brokers, or a server from others."""
    server = world.server(action.target)
    if server is not None:
        world.later(effect, action.for_us, server.cut_off(effect))
        return
    directions = DIRECTIONS[action.option("direction", "both")]
    others = world.brokers_against(action)
    if others:
        heal = world.cut_brokers(action.target, others, effect.add, directions)
        world.later(effect, action.for_us, heal)
        return
    proxy = world.proxy_of(action.target)
    cut = proxy.cut(action.target, effect.add, directions=directions)
    world.later(effect, action.for_us, cut.end)


DIRECTIONS: dict[str, tuple[Direction, ...]] = {
    "to": ("to",),
    "from": ("from",),
    "both": ("to", "from"),
}
"""The directions of a cut, seen from the member."""


def delay(world: World, action: Action, effect: FaultEffect) -> None:
    """Add a latency to everything that passes between a member and ZooKeeper."""
    proxy = world.proxy_of(action.target)
    slow = proxy.delay(action.target, effect.add, by_s=int(action.option("by")) / 1e6)
    world.later(effect, action.for_us, slow.end)


def lag(world: World, action: Action, effect: FaultEffect) -> None:
    """Let a follower apply commits later than it should."""
    server = world.server(action.target)
    assert server is not None, "only a server falls behind"
    by_s = int(action.option("by")) / 1e6
    world.later(effect, action.for_us, server.fall_behind(effect, by_s))


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
}
"""Verb -> the function that carries it out."""

assert set(HANDLERS) == {verb.name for verb in VERBS.values() if "live" in verb.worlds}
