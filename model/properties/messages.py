"""The judges of messages: applied in addition to the others if brokers store messages."""

from __future__ import annotations

from collections.abc import Callable

from watchkeeper.model.plan.mirror_routes import Routes
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.delivery import COMMITS, DELIVERY, ORDER, DeliveryJudge
from watchkeeper.model.properties.starvation import (
    PUNCTUAL,
    STARVATION,
    PunctualityJudge,
    StarvationJudge,
)
from watchkeeper.model.properties.verdicts import Finding, Property, Verdict
from watchkeeper.model.trace.trace import Event

MESSAGE_PROPERTIES: tuple[Property, ...] = (DELIVERY, ORDER, COMMITS, STARVATION, PUNCTUAL)
STARVES_AFTER_US = 30_000_000
"""How long a partition that has messages and a live broker may hand on none of them."""
STORED_WITHIN_US = 60_000_000
"""From being accepted by a producer, if it is stored at all."""


class MessageJudges:
    """Follow every message through a run."""

    def __init__(self, plan: Plan) -> None:
        self.routes = Routes(plan)
        self.delivery = DeliveryJudge(
            {group.name: group.guarantee for group in plan.groups if group.guarantee is not None},
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
        """The handlers of events of this kind."""
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
        """The findings of every judge."""
        of_groups = [*self.delivery.findings(), self._starvation(end_us)]
        return [*(of_groups if self.has_groups else ()), self.punctuality.finding()]

    def _starvation(self, end_us: int) -> Finding:
        """The earliest starvation on any cluster, or else the longest wait."""
        found = {judge: judge.finding(end_us) for judge in self.starvation.values()}
        violated = [finding for finding in found.values() if finding.verdict is Verdict.VIOLATED]
        if violated:
            return min(violated, key=lambda finding: finding.at_us or 0)
        return found[max(found, key=lambda judge: (judge.waits > 0, judge.longest_us))]


def message_judges(plan: Plan) -> MessageJudges | None:
    """The judges of a run's messages; None if logs hold none."""
    stores = any(cluster.storage is not None for cluster in plan.clusters)
    replicating = {cluster.name for cluster in plan.clusters if cluster.replication is not None}
    reads = any(group.cluster in replicating for group in plan.groups)
    return MessageJudges(plan) if stores or reads else None


def message_claims(plan_groups: list[str]) -> list[str]:
    """The names under which these properties are found, for these groups."""
    names = [claim.name for claim in MESSAGE_PROPERTIES if claim is not DELIVERY]
    return [*names, *(f"{DELIVERY.name} to {group}" for group in plan_groups)]
