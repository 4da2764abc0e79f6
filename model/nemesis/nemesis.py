"""The timeline at work: each action strikes when its moment or its step has come.

An action of a timeline has a time, or it waits for a step of a member (its *trigger*): the
nth time that the member makes a request of some purpose. An action that lasts is undone
later. Each one counts what it has really changed: processes killed, connections broken,
messages held up. An action that changed nothing makes the verdict of a run *unknown*.

This is the same in every world. A world supplies its clock and its trace (`World`), and a
table with the function that carries out each verb.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from watchkeeper.model.nemesis.targets import Targets
from watchkeeper.model.nemesis.world import Undo, World
from watchkeeper.model.plan.faults import Action, FaultEffect
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.plan.roles import role_of
from watchkeeper.model.trace.kinds import EventKind

W = TypeVar("W", bound=World)

Handler = Callable[[W, Action, FaultEffect], None]
"""Carries out a verb: takes the world, the action, and where to count what it did."""


class Nemesis(Generic[W]):
    """The timeline of one run."""

    def __init__(self, world: W, plan: Plan, handlers: Mapping[str, Handler[W]]) -> None:
        self.world = world
        self._plan = plan
        self.handlers = handlers
        self.effects = [FaultEffect(action) for action in plan.timeline]
        self._targets = Targets(world)
        self.ends_us = plan.calm_us
        """When the last action that has struck so far is over."""
        self._is_undone_later = False
        """Whether the action that strikes now has scheduled its end."""
        self._reached: dict[tuple[str, str, str], int] = {}
        """Member, moment and purpose of a step -> how often it was reached."""

    def schedule(self) -> None:
        """Put the actions that have a time on the calendar."""
        for effect in self.effects:
            if effect.action.at_us is not None:
                self.world.at(effect.action.at_us, partial(self.strike, effect))

    def strike(self, effect: FaultEffect) -> None:
        """Carry out an action now, unless it finds no target."""
        action = self._targets.aimed(effect)
        now = self.world.now_us()
        effect.at_us = now
        effect.until_us = now + action.for_us
        self.ends_us = max(self.ends_us, effect.until_us)
        detail: dict[str, Any] = {
            "verb": action.verb.name,
            "number": action.number,
            "for_us": action.for_us,
            "lasts": action.lasts,
        }
        detail |= self._members_of(action.target)
        if effect.target:
            detail["role"] = effect.action.target
        if action.option("from") != effect.action.option("from"):
            detail["from"] = action.option("from")
        if effect.missed:
            detail["missed"] = effect.missed
        kind = EventKind.FAULT if action.is_fault else EventKind(action.verb.kind)
        self.world.write(action.target, kind, detail)
        self._is_undone_later = False
        if not effect.missed:
            self.handlers[action.verb.name](self.world, action, effect)
        if action.lasts and not self._is_undone_later:
            # The target was not there, so nothing has to be undone. The trace still shows
            # the end of the action, since readers pair beginnings with ends.
            self.later(effect, action.for_us, lambda: None)

    def _members_of(self, name: str) -> dict[str, list[str]]:
        """The detail on the members of a process that several share; empty for any other."""
        members = self._plan.members_of(name)
        return {} if members == (name,) else {"members": list(members)}

    def later(self, effect: FaultEffect, delay_us: int, undo: Undo) -> None:
        """Undo an action after a delay, and write its end into the trace."""

        name = effect.target or effect.action.target
        members = self._members_of(name)

        def end() -> None:
            undo()
            self.world.write(
                name,
                EventKind.FAULT_ENDED if effect.action.is_fault else EventKind.LOAD_ENDED,
                {"verb": effect.action.verb.name, "number": effect.action.number, **members},
            )

        self._is_undone_later = True
        until_us = self.world.now_us() + delay_us
        # A fault that is triggered late, or lasts longer than its plan says, moves the end
        # of the run: the time to settle begins only when the last fault is over.
        effect.until_us = max(effect.until_us or 0, until_us)
        self.ends_us = max(self.ends_us, effect.until_us)
        self.world.at(until_us, end)

    # --- actions that wait for a step --------------------------------------------------

    def steps_of(self, node: str) -> tuple[tuple[str, str], ...]:
        """Return the steps of a member that actions wait for: moment and purpose of each."""
        return tuple(
            dict.fromkeys(
                (_moment_of(effect.action), trigger.purpose)
                for effect in self.effects
                for trigger in [effect.action.trigger]
                if trigger is not None
                and (trigger.node == node or role_of(trigger.node) is not None)
            )
        )

    def reach(self, node: str, moment: str, purpose: str) -> None:
        """Count a step that a member has reached; the actions that wait for it strike.

        `moment` is `before` (the request) or `after_reply`.
        """
        waiting = [effect for effect in self.effects if effect.action.trigger is not None]
        names = dict.fromkeys(_node_of(effect.action) for effect in waiting)
        for name in names:
            is_role = role_of(name) is not None
            if name == node or (is_role and self._targets.has_role(name, node)):
                self._reach(name, moment, purpose)

    def _reach(self, name: str, moment: str, purpose: str) -> None:
        """The process of this name, or with this role, has reached a step once more."""
        key = (name, moment, purpose)
        count = self._reached[key] = self._reached.get(key, 0) + 1
        for effect in self.effects:
            trigger = effect.action.trigger
            if trigger is None or effect.at_us is not None or trigger.node != name:
                continue
            reached = (_moment_of(effect.action), trigger.purpose, trigger.nth)
            if reached == (moment, purpose, count):
                self.strike(effect)


def _node_of(action: Action) -> str:
    assert action.trigger is not None, "only actions with a trigger wait for a step"
    return action.trigger.node


def _moment_of(action: Action) -> str:
    """Return when in its step an action strikes.

    A request can be lost only before it is sent, whatever the trigger says.
    """
    assert action.trigger is not None, "only actions with a trigger wait for a step"
    return "before" if action.verb.name == "lose" else action.trigger.when
