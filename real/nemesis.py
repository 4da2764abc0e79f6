"""Brings about what the timeline says, for real, and counts what it did.

Each verb of the alphabet is a function in `changes` or `damage`. A count of nothing at all
makes the run *unknown*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from model.faults import VERBS, Action, Effect
from model.topics import CHANGES
from real import changes, damage

if TYPE_CHECKING:
    from real.process import MemberProcess
    from real.world import World

Deed = Callable[["World", Action, Effect], None]

DEEDS: dict[str, Deed] = {
    "start": changes.start,
    "restart": changes.start,
    "leave": changes.leave,
    "move": changes.move,
    **dict.fromkeys(CHANGES, changes.change_topic),
    "produce": changes.produce,
    "crash": damage.crash,
    "crash_host": damage.crash_host,
    "pause": damage.pause,
    "skew": damage.skew,
    "expire": damage.expire,
    "disconnect": damage.disconnect,
    "lose": damage.lose,
    "partition": damage.partition,
    "delay": damage.delay,
    "rolling_restart": damage.rolling_restart,
    "quorum_loss": damage.quorum_loss,
}

assert set(DEEDS) == {verb.name for verb in VERBS.values() if "live" in verb.worlds}


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
