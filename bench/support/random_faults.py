"""Random timelines for simulated runs of a small cluster that is searched as well.

The members and the kinds of fault are those of the search's bound. The seed decides when each
member starts, and when and on which target each fault strikes. With `Draw` a fault may strike
while its target does not run; `Aimed` strikes while members run, and half of the time while they
rebalance.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from watchkeeper.model.actor.operations import Purpose
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.plan.faults import VERBS, Action, Option, Trigger
from watchkeeper.model.plan.plan import ConsumerPlan, Plan

MS = 1_000
S = 1_000 * MS
STRIKE = (1_000 * MS, 5_000 * MS)
"""The moments at which faults strike and members join."""
AT_ONCE_US = 200 * MS
"""Members that start together start within this time."""
AMIDST_US = 400 * MS
"""A little longer than the first rebalance of a group takes."""
LOAD = "timeline: [{at: 0s, produce: clicks, rate: 5/s, size: 100B}]"
"""The line of a scenario with messages."""
REQUESTS: tuple[Purpose, ...] = (
    *("register", "read members", "read claims", "read partitions", "fence", "await owner"),
    *("claim", "release", "commit"),
)
"""Where a request or its reply may be lost."""
WRITES: tuple[Purpose, ...] = ("register", "fence", "claim", "release", "commit")
AFTER = {"restart": "crash", "broker_restart": "broker_crash"}
"""A fault -> the fault that has to come before it."""


class Draw:
    """A random run of a plan within the bounds of a search."""

    most = 9
    """The request of its kind that is lost has a lower number than this."""

    def __init__(self, name: str, plan: Plan, bounds: Bounds, seed: int) -> None:
        self.dice = Random(f"{name}/{seed}")
        self.plan = plan
        self.bounds = bounds
        self.nodes = [consumer.node for consumer in plan.groups[0].consumers]
        self.brokers = [broker.node for broker in plan.clusters[0].brokers]
        self.crashed: dict[str, int] = {}
        self.begins_us = self.dice.randrange(*STRIKE)

    def drawn(self) -> Plan:
        """Return the plan with a random moment for each start and each fault."""
        faults = self._faults()
        [group] = self.plan.groups
        first = len(group.consumers) - self.bounds.faults.get("join", 0)
        members = tuple(
            self._starting(consumer, at - first, faults["join"])
            for at, consumer in enumerate(group.consumers)
        )
        timeline = list(self.plan.timeline)
        for kind, number in sorted(faults.items()):
            for _ in range(number if kind != "join" else 0):
                timeline.append(self._fault(kind, len(timeline)))
        group = replace(group, consumers=members)
        return replace(self.plan, groups=(group,), timeline=tuple(timeline))

    def _faults(self) -> Counter[str]:
        """Return the number of faults of each kind: all, or a sample if their sum is bounded."""
        faults = Counter(self.bounds.faults)
        together = self.bounds.together
        if together is None or together >= faults.total():
            return faults
        drawn = Counter(self.dice.sample(sorted(faults.elements()), together))
        for kind, first in AFTER.items():
            drawn[kind] = min(drawn[kind], drawn[first])
        return drawn

    def _starting(self, member: ConsumerPlan, late: int, joins: int) -> ConsumerPlan:
        """Return a member with its start; `late` counts the members that join, from 0."""
        if late >= joins:
            return replace(member, starts_us=None)
        if late >= 0:
            return replace(member, starts_us=self.dice.randrange(*STRIKE))
        is_fresh = self.bounds.begin == "fresh"
        starts_us = self.begins_us + self.dice.randrange(AT_ONCE_US) if is_fresh else 0
        return replace(member, starts_us=starts_us)

    def strikes_us(self) -> int:
        """Return the moment at which a fault strikes."""
        return self.dice.randrange(*STRIKE)

    def _fault(self, kind: str, number: int) -> Action:
        """Return one fault of a kind."""
        dice = self.dice
        if kind in ("late_request", "lost_reply", "lost_request"):
            return self._loss(kind, number)
        nodes = self.brokers if kind.startswith("broker_") else self.nodes
        verb = kind.removeprefix("broker_")
        target = dice.choice(nodes)
        at_us = self.strikes_us()
        options: tuple[tuple[Option, Any], ...] = ()
        if verb == "crash":
            self.crashed[target] = at_us
        elif verb == "restart":
            target = next(node for node in nodes if node in self.crashed)
            at_us = self.crashed[target] + dice.randrange(50, 4_000) * MS
        elif verb == "expire" and dice.random() < 0.5:
            options = (("unknown", dice.randrange(10, 2_000) * MS),)
        elif verb == "disconnect":
            options = (("for", dice.randrange(10, 1_500) * MS),)
        return Action(number, VERBS[verb], target, at_us, None, options)

    def _loss(self, kind: str, number: int) -> Action:
        """Return the loss of a request or reply; a late request arrives later."""
        dice = self.dice
        purpose = dice.choice(WRITES if kind == "late_request" else REQUESTS)
        step = Trigger(dice.choice(self.nodes), purpose, dice.randrange(1, self.most), "before")
        what = "reply" if kind == "lost_reply" else "request"
        options: tuple[tuple[Option, Any], ...] = ()
        if kind == "late_request":
            options = (("lands_after", dice.randrange(10, 3_000) * MS),)
        return Action(number, VERBS["lose"], what, None, step, options)


class Aimed(Draw):
    """A random run whose faults seldom strike a process that does not run."""

    most = 4

    def strikes_us(self) -> int:
        """Return a moment that is, half of the time, within the first rebalance."""
        begins_us = self.begins_us if self.bounds.begin == "fresh" else STRIKE[0]
        if self.dice.random() < 0.5:
            return begins_us + self.dice.randrange(AMIDST_US)
        return begins_us + self.dice.randrange(STRIKE[1] - STRIKE[0])
