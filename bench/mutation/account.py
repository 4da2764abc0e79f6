"""An account: what members say of one thing, followed event by event."""

from __future__ import annotations

from functools import cached_property

from watchkeeper.model.plan.plan import ConsumerPlan, GroupPlan, Plan
from watchkeeper.model.properties.history import History
from watchkeeper.model.trace.trace import Event


class Account:
    """Names the kinds of differences that it finds."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.plan = plan
        self.history = history
        """The registry and the members as the trace has them, up to the event at hand."""
        self.found: set[str] = set()

    @cached_property
    def members(self) -> dict[str, tuple[GroupPlan, ConsumerPlan]]:
        """Node -> the plan of a member that runs the program of a variant."""
        return {
            member.node: (group, member)
            for group, member in self.plan.consumers()
            if member.program is None
        }

    def take(self, event: Event) -> None:
        """Follow an event."""

    def end(self, at_us: int) -> None:
        """Compare what is left at the end of a run."""
