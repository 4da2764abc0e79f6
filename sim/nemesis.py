"""Brings about what the timeline says, and counts what it did.

Each verb of the alphabet is a function in `changes` or `damage`. Every one of them adds to
its effect what it has really changed: processes killed, connections broken, messages held
up. A count of nothing at all makes the run *unknown*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from model.faults import VERBS, Action, Effect
from model.topics import CHANGES
from sim import changes, damage

if TYPE_CHECKING:
    from sim.driver import Driver
    from sim.world import World

Deed = Callable[["World", Action, Effect], None]

DEEDS: dict[str, Deed] = {
    "start": changes.start,
    "restart": changes.restart,
    "leave": changes.leave,
    "move": changes.move,
    **dict.fromkeys(CHANGES, changes.change_topic),
    "produce": changes.produce,
    "crash": damage.crash,
    "crash_host": damage.crash_host,
    "pause": damage.pause,
    "expire": damage.expire,
    "disconnect": damage.disconnect,
    "lose": damage.lose,
    "partition": damage.partition,
    "delay": damage.delay,
    "skew": damage.skew,
    "disk_slow": damage.disk_slow,
    "disk_full": damage.disk_full,
    "lag": damage.lag,
    "rolling_restart": damage.rolling_restart,
    "quorum_loss": damage.quorum_loss,
}

assert set(DEEDS) == {verb.name for verb in VERBS.values() if "sim" in verb.worlds}


class Nemesis:
    """The timeline at work."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.kernel = world.kernel
        self.effects = [Effect(action) for action in world.plan.timeline]
        self.ends_us = world.plan.calm_us
        """When the last action that has struck so far is over."""
        self._undoing = False
        """Whether the action that strikes now has said how it is undone."""
        self._asked: dict[tuple[str, str, str], int] = {}
        self._armed: dict[str, list[Effect]] = {}
        for effect in self.effects:
            if effect.action.trigger is not None:
                self._armed.setdefault(effect.action.trigger.node, []).append(effect)

    def schedule(self) -> None:
        """Put the actions that have a time on the calendar."""
        for effect in self.effects:
            if effect.action.at_us is not None:
                self.kernel.after(effect.action.at_us, self.strike, effect)

    def strike(self, effect: Effect) -> None:
        """Let an action take place."""
        action = effect.action
        now = self.kernel.now_us
        effect.at_us = now
        effect.until_us = now + action.for_us
        self.ends_us = max(self.ends_us, effect.until_us)
        detail = {
            "verb": action.verb.name,
            "number": action.number,
            "for_us": action.for_us,
            "lasts": action.lasts,
        }
        kind = "fault" if action.is_fault else action.verb.kind
        self.kernel.write(action.target, kind, detail)
        self._undoing = False
        DEEDS[action.verb.name](self.world, action, effect)
        if action.lasts and not self._undoing:
            self.later(effect, action.for_us, lambda: None)

    def later(self, effect: Effect, delay_us: int, call: Callable[[], Any]) -> None:
        """Undo an action when its time is over."""

        def undo(_: None) -> None:
            call()
            self.kernel.write(
                effect.action.target,
                "fault ends" if effect.action.is_fault else "load ends",
                {"verb": effect.action.verb.name, "number": effect.action.number},
            )

        assert effect.at_us is not None, "only what has struck is undone"
        self._undoing = True
        effect.until_us = max(effect.until_us or 0, self.kernel.now_us + delay_us)
        self.ends_us = max(self.ends_us, effect.until_us)
        self.kernel.after(delay_us, undo, None)

    # --- faults that wait for a step ---------------------------------------------------

    def aim(self, driver: Driver) -> None:
        """Watch what a member asks, if a fault waits for one of its steps."""
        if driver.node.name in self._armed:
            driver.before = lambda purpose: self._look(driver, purpose, "before")
            driver.after = lambda purpose: self._look(driver, purpose, "after_reply")

    def _look(self, driver: Driver, purpose: str, when: str) -> None:
        name = driver.node.name
        key = (name, purpose, when)
        self._asked[key] = self._asked.get(key, 0) + 1
        for effect in self._armed[name]:
            if effect.at_us is None and self._meets(
                effect.action, purpose, when, self._asked[key]
            ):
                self.strike(effect)

    def _meets(self, action: Action, purpose: str, when: str, count: int) -> bool:
        """Whether this is the step an action waits for; what is to be lost is aimed before."""
        trigger = action.trigger
        assert trigger is not None, "only actions with a trigger are armed"
        moment = "before" if action.verb.name == "lose" else trigger.when
        return trigger.asks == purpose and moment == when and trigger.nth == count
