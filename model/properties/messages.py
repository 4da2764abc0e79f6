"""The judges of messages, together: what a run that stores any is judged by beside the rest."""

from __future__ import annotations

from collections.abc import Callable

from model.delivered import COMMITS, DELIVERY, ORDER, DeliveryJudge
from model.plan import Plan
from model.routes import Routes
from model.trace import Event
from model.verdicts import Finding, Property, Verdict
from model.waiting import PUNCTUAL, STARVATION, PunctualityJudge, StarvationJudge

MESSAGE_PROPERTIES: tuple[Property, ...] = (DELIVERY, ORDER, COMMITS, STARVATION, PUNCTUAL)
STARVES_AFTER_US = 30_000_000
"""Without anything being handed on from a partition that has something, and whose broker is
there."""
STORED_WITHIN_US = 60_000_000
"""From being accepted by a producer, if it is stored at all."""


class MessageJudges:
    """Follow every message through a run."""

    def __init__(self, plan: Plan) -> None:
        self.routes = Routes(plan)
        self.delivery = DeliveryJudge(
            {group.name: group.promise for group in plan.groups if group.promise is not None},
            [group.name for group in plan.groups],
            self.routes,
        )
        self.starvation = {
            name: StarvationJudge(STARVES_AFTER_US) for name in self.routes.clusters
        }
        """Cluster -> its judge: partitions of two clusters may have one name."""
        self.punctuality = PunctualityJudge(STORED_WITHIN_US)
        self.has_groups = bool(plan.groups)

    def calls(self, kind: str) -> list[Callable[[Event], None]]:
        """What is to be called with events of this kind."""
        found: list[Callable[[Event], None]] = []
        if kind in DeliveryJudge.KINDS:
            found.append(self.delivery.take)
        if kind in StarvationJudge.KINDS:
            found.append(self._wait)
        if kind in PunctualityJudge.KINDS:
            found.append(self.punctuality.take)
        return found

    def _wait(self, event: Event) -> None:
        judge = self.starvation.get(self.routes.cluster_of(event.node))
        if judge is not None:
            judge.take(event)

    def findings(self, end_us: int) -> list[Finding]:
        """What was found."""
        of_groups = [*self.delivery.findings(), self._starvation(end_us)]
        return [*(of_groups if self.has_groups else ()), self.punctuality.finding()]

    def _starvation(self, end_us: int) -> Finding:
        """What was found on the cluster where it was first, or else where a wait was longest."""
        found = {judge: judge.finding(end_us) for judge in self.starvation.values()}
        violated = [one for one in found.values() if one.verdict is Verdict.VIOLATED]
        if violated:
            return min(violated, key=lambda one: one.at_us or 0)
        return found[max(found, key=lambda one: (one.waits > 0, one.longest_us))]


def message_judges(plan: Plan) -> MessageJudges | None:
    """The judges of a run's messages; None where logs hold none."""
    stores = any(cluster.storage is not None for cluster in plan.clusters)
    return MessageJudges(plan) if stores else None


def message_claims(plan_groups: list[str]) -> list[str]:
    """The names under which these properties are found, for these groups."""
    names = [claim.name for claim in MESSAGE_PROPERTIES if claim is not DELIVERY]
    return [*names, *(f"{DELIVERY.name} to {group}" for group in plan_groups)]
