"""What members say of themselves in a trace, held against the registry of the same trace.

A member says which partitions it has assigned to itself, how many claims it has after a
rebalance, and by which of its streams it fetches a partition. The trace has the claims
themselves, too. A difference is no violation of a property: a shipped member may say that it
has a claim which another one deleted. But a mutant that adds a difference has changed what
users read in a trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry.paths import parse_owner
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace

Claim = tuple[str, Partition]

SAY_HOW_MANY = (EventKind.REBALANCE_COMPLETED, EventKind.FREED_CLAIMS_ACQUIRED)
OVER = (EventKind.ENDED, EventKind.ABANDONED)


def differences(trace: Trace) -> tuple[str, ...]:
    """Name the kinds of differences in a trace: `owns`, `share`, `stream`."""
    accounts = _Accounts()
    found = [name for event in trace for name in accounts.after(event)]
    found += accounts.at_end()
    return tuple(sorted(set(found)))


@dataclass(slots=True)
class _Accounts:
    """The claims of the registry, and what members say, up to an event."""

    claims: dict[Claim, tuple[int, str]] = field(default_factory=dict)
    """Claim -> its session and its data."""
    sessions: dict[str, int] = field(default_factory=dict)
    """Node -> the session of its connection."""
    groups: dict[str, str] = field(default_factory=dict)
    shares: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Node -> topic -> the partitions that it has assigned to itself last."""
    fetching: dict[str, dict[Partition, int]] = field(default_factory=dict)
    """Node -> partition -> the stream that fetches it."""

    def after(self, event: Event) -> Iterator[str]:
        """Take in an event, and yield the differences that it shows."""
        for change in event.detail.get("did", ()):
            self._note(change)
        if event.kind == EventKind.CONNECTED:
            self.sessions[event.node] = event.session
        elif event.kind == EventKind.ASSIGNED:
            self.groups[event.node] = event.group
            self.shares.setdefault(event.node, {}).update(event.detail.get("shares", {}))
        elif event.kind == EventKind.FETCHING:
            self._note_fetch(event)
        elif event.kind in OVER:
            self.shares.pop(event.node, None)
            self.fetching.pop(event.node, None)
        elif event.kind in SAY_HOW_MANY and event.detail["owns"] != self._owned(event):
            yield "owns"

    def _note(self, change: list[object]) -> None:
        claim = parse_owner(str(change[1]))
        if claim is None:
            return
        if change[0] == "deleted":
            self.claims.pop(claim, None)
        else:
            _, _, owner, data = change
            assert isinstance(owner, int), (
                "a change of the trace has the session of its ephemeral"
            )
            self.claims[claim] = (owner, str(data))

    def _note_fetch(self, event: Event) -> None:
        partition = Partition(event.topic, event.partition)
        own = self.fetching.setdefault(event.node, {})
        if event.detail["does"] == "begins":
            own[partition] = event.detail["stream"]
        else:
            own.pop(partition, None)

    def _owned(self, event: Event) -> int:
        """The number of claims that a member has in the registry."""
        session = self.sessions.get(event.node)
        return sum(
            group == event.group and owner == session
            for (group, _), (owner, _) in self.claims.items()
        )

    def at_end(self) -> Iterator[str]:
        """Yield the differences between the last word of each member and what it fetches."""
        for node, shares in self.shares.items():
            fetched = self.fetching.get(node, {})
            said = {Partition(topic, name) for topic, names in shares.items() for name in names}
            if said != set(fetched):
                yield "share"
            for partition, stream in fetched.items():
                _, data = self.claims.get((self.groups[node], partition), (0, ""))
                named = data.rpartition("-")[2]
                if named.isdecimal() and int(named) != stream:
                    yield "stream"
