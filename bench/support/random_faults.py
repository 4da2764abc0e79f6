"""What a seed draws for a simulated run of a small cluster that is searched as well.

The members and the kinds of fault are those of the search's bound; when everybody starts and
when each fault strikes, and whom, the seed draws. A fault may strike when there is nobody to
be hit, as chance has it. `Draw` knows nothing of what it strikes at; `Aimed` strikes when there
are members, and half of the time while they are at work.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from model.bounds import Bounds
from model.faults import VERBS, Action, Option, Trigger
from model.operations import Purpose
from model.plan import ConsumerPlan, Plan

MS = 1_000
S = 1_000 * MS
STRIKE = (1_000 * MS, 5_000 * MS)
"""When things happen."""
AT_ONCE_US = 200 * MS
"""Within what time members start that start at once."""
AMIDST_US = 400 * MS
"""How long a group is at work once its members have started, and a little longer."""
LOAD = "timeline: [{at: 0s, produce: clicks, rate: 5/s, size: 100B}]"
"""What is said of a run in which there are messages."""
ASKS: tuple[Purpose, ...] = (
    *("register", "read members", "read claims", "read partitions", "fence", "await owner"),
    *("claim", "release", "commit"),
)
"""Where a request or its reply may be lost."""
WRITES: tuple[Purpose, ...] = ("register", "fence", "claim", "release", "commit")
AFTER = {"restart": "crash", "broker_restart": "broker_crash"}
"""What there can only be after something else."""


class Draw:
    """A run of a plan within the bounds of a search, as a seed has it."""

    most = 9
    """A request is lost that comes before the so-manieth of its kind."""

    def __init__(self, name: str, plan: Plan, bounds: Bounds, seed: int) -> None:
        self.dice = Random(f"{name}/{seed}")
        self.plan = plan
        self.bounds = bounds
        self.nodes = [one.node for one in plan.groups[0].consumers]
        self.brokers = [one.node for one in plan.clusters[0].brokers]
        self.crashed: dict[str, int] = {}
        self.begins_us = self.dice.randrange(*STRIKE)

    def drawn(self) -> Plan:
        """The plan, with everybody's start and every fault at a moment of its own."""
        faults = self._faults()
        [group] = self.plan.groups
        first = len(group.consumers) - self.bounds.faults.get("join", 0)
        members = tuple(
            self._starting(one, at - first, faults["join"])
            for at, one in enumerate(group.consumers)
        )
        timeline = list(self.plan.timeline)
        for kind, number in sorted(faults.items()):
            for _ in range(number if kind != "join" else 0):
                timeline.append(self._fault(kind, len(timeline)))
        group = replace(group, consumers=members)
        return replace(self.plan, groups=(group,), timeline=tuple(timeline))

    def _faults(self) -> Counter[str]:
        """How many of each kind: all, or some of them where not all may be together."""
        faults = Counter(self.bounds.faults)
        together = self.bounds.together
        if together is None or together >= faults.total():
            return faults
        drawn = Counter(self.dice.sample(sorted(faults.elements()), together))
        for kind, first in AFTER.items():
            drawn[kind] = min(drawn[kind], drawn[first])
        return drawn

    def _starting(self, member: ConsumerPlan, late: int, joins: int) -> ConsumerPlan:
        """A member with its start; `late` counts those that join, from 0."""
        if late >= joins:
            return replace(member, starts_us=None)
        if late >= 0:
            return replace(member, starts_us=self.dice.randrange(*STRIKE))
        is_fresh = self.bounds.begin == "fresh"
        starts_us = self.begins_us + self.dice.randrange(AT_ONCE_US) if is_fresh else 0
        return replace(member, starts_us=starts_us)

    def strikes_us(self) -> int:
        """When a fault strikes."""
        return self.dice.randrange(*STRIKE)

    def _fault(self, kind: str, number: int) -> Action:
        """One fault of a kind."""
        dice = self.dice
        if kind in ("ghost", "lost_reply", "lost_request"):
            return self._loss(kind, number)
        nodes = self.brokers if kind.startswith("broker_") else self.nodes
        verb = kind.removeprefix("broker_")
        target = dice.choice(nodes)
        at_us = self.strikes_us()
        options: tuple[tuple[Option, Any], ...] = ()
        if verb == "crash":
            self.crashed[target] = at_us
        elif verb == "restart":
            target = next(one for one in nodes if one in self.crashed)
            at_us = self.crashed[target] + dice.randrange(50, 4_000) * MS
        elif verb == "expire" and dice.random() < 0.5:
            options = (("unknown", dice.randrange(10, 2_000) * MS),)
        elif verb == "disconnect":
            options = (("for", dice.randrange(10, 1_500) * MS),)
        return Action(number, VERBS[verb], target, at_us, None, options)

    def _loss(self, kind: str, number: int) -> Action:
        """A request or a reply is lost; a ghost lands later."""
        dice = self.dice
        asks = dice.choice(WRITES if kind == "ghost" else ASKS)
        step = Trigger(dice.choice(self.nodes), asks, dice.randrange(1, self.most), "before")
        what = "reply" if kind == "lost_reply" else "request"
        options: tuple[tuple[Option, Any], ...] = ()
        if kind == "ghost":
            options = (("lands_after", dice.randrange(10, 3_000) * MS),)
        return Action(number, VERBS["lose"], what, None, step, options)


class Aimed(Draw):
    """The same, with faults that seldom strike where there is nothing to be hit."""

    most = 4

    def strikes_us(self) -> int:
        """Half of the time within what the members do as they start."""
        begins_us = self.begins_us if self.bounds.begin == "fresh" else STRIKE[0]
        if self.dice.random() < 0.5:
            return begins_us + self.dice.randrange(AMIDST_US)
        return begins_us + self.dice.randrange(STRIKE[1] - STRIKE[0])
