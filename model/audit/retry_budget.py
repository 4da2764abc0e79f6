"""Whether the attempts of a rebalance can outlast a dead session.

A dead member's claims exist until its session ends. A member that needs its partitions tries a
fixed number of times, with a pause after each; if all attempts are over while the claims still
exist, the partitions have no owner until something else changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from watchkeeper.model.audit.finding import FindingKind
from watchkeeper.model.plan.plan import GroupPlan, Plan

SHORT_PATIENCE = FindingKind.SHORT_PATIENCE.value
"""The name of the warning, in audits, runs and searches."""


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """The settings of a group that decide it; the defaults are Kafka's."""

    session_timeout_ms: int = 6000
    retries: int = 4
    backoff_ms: int = 2000

    def judge(self) -> tuple[str, str]:
        """A finding and a note, each a sentence, or empty."""
        lasts = self.retries * self.backoff_ms
        last = (self.retries - 1) * self.backoff_ms
        budget = f"{self.retries} attempts with {self.backoff_ms} ms between them"
        if lasts <= self.session_timeout_ms:
            enough = -(-(self.session_timeout_ms + 1) // self.backoff_ms)
            return (
                f"{budget} are over after {lasts} ms, but the claims of a dead member stand for "
                f"the {self.session_timeout_ms} ms of its session: a rebalance gives up before "
                f"it could succeed; allow at least {enough + 1} attempts",
                "",
            )
        if last <= self.session_timeout_ms:
            return (
                "",
                f"{budget} outlast a session of {self.session_timeout_ms} ms by the pause alone: "
                f"the last attempt begins {last} ms after the first, and ZooKeeper ends a "
                "session up to a tick late",
            )
        return "", ""


@dataclass(frozen=True, slots=True)
class PatienceWarning:
    """The warning that members of a group may give up too soon."""

    group: str
    message: str
    name: str = SHORT_PATIENCE

    def __str__(self) -> str:
        return f"{self.name}, {self.group}: {self.message}"


def warnings_of(plan: Plan) -> tuple[PatienceWarning, ...]:
    """The warnings on the settings of a plan; none for variants that never give up."""
    return tuple(
        PatienceWarning(group.name, message)
        for group in plan.groups
        for budget in dict.fromkeys(_budgets_of(group))
        if (message := " ".join(filter(None, budget.judge())))
    )


def _budgets_of(group: GroupPlan) -> Iterator[RetryBudget]:
    """The budget of each member that gives up; any other member may be the dead one."""
    longest = max(
        (consumer.settings.session_timeout_ms for consumer in group.consumers), default=0
    )
    for consumer in group.consumers:
        if consumer.variant.gives_up and consumer.program is None:
            settings = consumer.settings
            yield RetryBudget(longest, settings.rebalance_retries, settings.rebalance_backoff_ms)
