"""What members say of themselves in a trace, held against the registry of the same trace.

A member says which partitions it has assigned to itself, how many claims it has, by which of
its streams it fetches a partition, where it begins, which attempt at a rebalance this is, and
when it gives up. The trace has the claims, the registrations and the offsets themselves, too. A
difference is no violation of a property: a shipped member may say that it has a claim which
another one deleted. But a mutant that adds a difference has changed what users read in a trace.

Each module of accounts follows a trace event by event: `attempts` those of rebalances, `starts`
those of offsets, `writes` those of what members write of themselves, and this one the shares and
the claims.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.mutation.account import Account
from bench.mutation.attempts import Attempts
from bench.mutation.starts import Starts
from bench.mutation.writes import Writes

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.history import Claim, History, NodeState
from watchkeeper.model.registry.paths import parse_owner
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace

SAY_HOW_MANY = (EventKind.REBALANCE_COMPLETED, EventKind.FREED_CLAIMS_ACQUIRED)


def differences(plan: Plan, trace: Trace) -> tuple[str, ...]:
    """Name the kinds of differences in a trace, such as `owns`, `share` or `stream`."""
    history = History(plan)
    accounts = [account(plan, history) for account in (Claims, Attempts, Starts, Writes)]
    for event in trace:
        if event.kind in history.handlers:
            history.handlers[event.kind](event)
        for account in accounts:
            account.take(event)
    for account in accounts:
        account.end(trace.end_us)
    return tuple(sorted(name for account in accounts for name in account.found))


class Claims(Account):
    """Shares and claims: `owns`, `share`, `stream`."""

    def __init__(self, plan: Plan, history: History) -> None:
        super().__init__(plan, history)
        self.data: dict[Claim, str] = {}

    def take(self, event: Event) -> None:
        """Follow the claims, and compare their number."""
        written = ((parse_owner(did[1]), did) for did in event.detail.get("did", ()))
        self.data |= {c: str(did[3]) for c, did in written if c and did[0] != "deleted"}
        if event.kind in SAY_HOW_MANY and event.detail["owns"] != self._owned(event):
            self.found.add("owns")

    def _owned(self, event: Event) -> int:
        """The number of claims that a member has in the registry."""
        session = self.history.node(event.node).session
        claims = self.history.claims.items()
        return sum(group == event.group and owner == session for (group, _), owner in claims)

    def end(self, at_us: int) -> None:
        """Compare the last word of each member with what it fetches."""
        for state in self.history.nodes.values():
            if state.is_alive and not state.is_abandoned and state.shares:
                self.found |= set(self._at_end(state))

    def _at_end(self, state: NodeState) -> Iterator[str]:
        said = {Partition(topic, name) for topic, names in state.shares.items() for name in names}
        if said != set(state.fetching):
            yield "share"
        for partition, stream in state.fetching.items():
            claim = (state.group, partition)
            named = self.data[claim].rpartition("-")[2] if claim in self.history.claims else ""
            if named.isdecimal() and int(named) != stream:
                yield "stream"
