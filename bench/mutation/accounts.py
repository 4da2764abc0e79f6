"""What members say of themselves in a trace, held against the registry of the same trace.

A member says which partitions it has assigned to itself, how many claims it has after a
rebalance, and by which of its streams it fetches a partition. The trace has the claims
themselves, too. A difference is no violation of a property: a shipped member may say that it
has a claim which another one deleted. But a mutant that adds a difference has changed what
users read in a trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.history import Claim, History, NodeState
from watchkeeper.model.registry.paths import parse_owner
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace

SAY_HOW_MANY = (EventKind.REBALANCE_COMPLETED, EventKind.FREED_CLAIMS_ACQUIRED)


def differences(plan: Plan, trace: Trace) -> tuple[str, ...]:
    """Name the kinds of differences in a trace: `owns`, `share`, `stream`."""
    history = History(plan)
    data: dict[Claim, str] = {}
    found: set[str] = set()
    for event in trace:
        if event.kind in history.handlers:
            history.handlers[event.kind](event)
        data |= _claims_in(event)
        if event.kind in SAY_HOW_MANY and event.detail["owns"] != _owned(history, event):
            found.add("owns")
    for state in history.nodes.values():
        if state.is_alive and not state.is_abandoned and state.shares:
            found |= set(_at_end(history, state, data))
    return tuple(sorted(found))


def _claims_in(event: Event) -> dict[Claim, str]:
    """The claims that an event writes, with their data."""
    written = ((parse_owner(did[1]), did) for did in event.detail.get("did", ()))
    return {claim: str(did[3]) for claim, did in written if claim and did[0] != "deleted"}


def _owned(history: History, event: Event) -> int:
    """The number of claims that a member has in the registry."""
    session = history.node(event.node).session
    return sum(
        group == event.group and owner == session for (group, _), owner in history.claims.items()
    )


def _at_end(history: History, state: NodeState, data: Mapping[Claim, str]) -> Iterator[str]:
    """Yield the differences between the last word of a member and what it fetches."""
    said = {Partition(topic, name) for topic, names in state.shares.items() for name in names}
    if said != set(state.fetching):
        yield "share"
    for partition, stream in state.fetching.items():
        claim = (state.group, partition)
        named = data[claim].rpartition("-")[2] if claim in history.claims else ""
        if named.isdecimal() and int(named) != stream:
            yield "stream"
