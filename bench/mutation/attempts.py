"""The attempts at a rebalance: how members count them, when they pause, and when they give up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.mutation.account import Account

from watchkeeper.model.group.variants import AfterFailure
from watchkeeper.model.plan.plan import ConsumerPlan, Plan
from watchkeeper.model.properties.history import History
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

CAUSES = frozenset(
    {
        *(EventKind.NOTIFIED, EventKind.CONNECTED, EventKind.SUSPENDED, EventKind.EXPIRED),
        *(EventKind.REBALANCE_FAILED, EventKind.TURN_FAILED, EventKind.REBALANCE_ABANDONED),
    }
)
"""What may bring a member to another attempt, beside an error in an answer."""


@dataclass(slots=True)
class Tally:
    """The attempts of one member."""

    failed: int = 0
    """Attempts that have failed in a row."""
    failed_us: int | None = None
    """When the last of them failed, if nothing has followed yet."""
    has_cause: bool = True
    """Whether something has happened since the last attempt began."""


class Attempts(Account):
    """The numbers of attempts: `attempt`, `gives up`, `pause`, `needless attempt`."""

    def __init__(self, plan: Plan, history: History) -> None:
        super().__init__(plan, history)
        self.tallies: dict[str, Tally] = {}
        self.handlers: dict[str, Callable[[Event, Tally, ConsumerPlan], None]] = {
            EventKind.REBALANCE_STARTED: self._starts,
            EventKind.REBALANCE_COMPLETED: self._completed,
            EventKind.REBALANCE_FAILED: self._failed,
            EventKind.REBALANCE_ABANDONED: self._abandoned,
            EventKind.EXPIRED: self._expired,
        }

    def take(self, event: Event) -> None:
        """Follow the attempts of a member."""
        if event.node not in self.members:
            return
        if event.kind == EventKind.STARTED:
            self.tallies[event.node] = Tally()
        _, member = self.members[event.node]
        tally = self.tallies.setdefault(event.node, Tally())
        if event.kind in CAUSES or "error" in str(event.detail.get("answer", "")):
            tally.has_cause = True
        if event.kind in self.handlers:
            self.handlers[event.kind](event, tally, member)

    def _starts(self, event: Event, tally: Tally, member: ConsumerPlan) -> None:
        counts = member.variant.gives_up
        if event.detail["attempt"] != (tally.failed + 1 if counts else 1):
            self.found.add("attempt")
        if counts and tally.failed >= member.settings.rebalance_retries:
            self.found.add("gives up")
        if counts and tally.failed_us is not None:
            pause_us = event.t_us - tally.failed_us
            if pause_us < member.settings.rebalance_backoff_ms * 1_000:
                self.found.add("pause")
        if not tally.has_cause:
            self.found.add("needless attempt")
        tally.failed_us = None
        tally.has_cause = False

    def _completed(self, event: Event, tally: Tally, member: ConsumerPlan) -> None:
        tally.failed = 0

    def _failed(self, event: Event, tally: Tally, member: ConsumerPlan) -> None:
        tally.failed += 1
        tally.failed_us = event.t_us

    def _abandoned(self, event: Event, tally: Tally, member: ConsumerPlan) -> None:
        is_last = tally.failed == member.settings.rebalance_retries
        may_be_final = not member.variant.cluster_read_is_retried
        if event.detail["attempts"] != tally.failed or not (is_last or may_be_final):
            self.found.add("gives up")
        tally.failed, tally.failed_us = 0, None

    def _expired(self, event: Event, tally: Tally, member: ConsumerPlan) -> None:
        """Begin to count again where a new session begins in the member's own turn."""
        if member.variant.after_failure is AfterFailure.BACK_OFF:
            tally.failed_us = None
