"""When a group is at rest.

At rest: no rebalance runs, no notification is under way or unread, no timer for another
attempt runs, no process stands still, every process is connected, its session is alive,
and no session is left of a process that is gone. Heartbeats, commits and fetches do not
count. Nor is there rest while a fault of the timeline is in force.

What has happened and nobody has heard of yet cannot be seen in a trace. So a rest counts
only from `QUIET_TICKS` of silence on, in every world.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from model.history import History, NodeState
from model.plan import GroupPlan, Plan
from model.trace import Event

QUIET_TICKS = 2

NEVER = 1 << 62

SESSION_ENDS = frozenset({"session opened", "session expired", "session closed"})

DISTURBING = frozenset({"fetching", "hosting"})
"""What may change what is fetched without anybody's waking up."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A time during which a group was at rest."""

    begins_us: int
    ends_us: int


@dataclass(slots=True)
class RestOf:
    """The rests of one group, found as its history moves on."""

    KINDS: ClassVar = frozenset(
        {
            "starts",
            "ends",
            "waits",
            "wakes",
            "fires",
            "hears",
            "connected",
            "suspended",
            "expired",
            "session opened",
            "session expired",
            "session closed",
            "fault",
            "fault ends",
            "fetching",
            "hosting",
        }
    )
    """The kinds of event that may begin or end a rest, or change what holds in it."""

    group: GroupPlan
    concerned: frozenset[str]
    """The processes that have to be quiet: members, brokers, the administrator."""
    quiet_us: int
    rests: list[Rest] = field(default_factory=list)
    since_us: int | None = None
    """When the present rest began; None while there is none."""
    due_us: int = NEVER
    """When it will have lasted long enough to be judged."""
    restless: dict[str, None] = field(default_factory=dict)

    def look(self, event: Event, history: History) -> None:
        """See what an event has changed."""
        if event.node in self.concerned:
            self._look_at(history, event.node)
        elif event.kind in SESSION_ENDS:
            self._look_at(history, history.holders[event.session])
        resting = not self.restless and not history.faults_in_force
        if self.since_us is None:
            if resting:
                self.since_us = event.t_us
                self.due_us = event.t_us + self.quiet_us
        elif not resting:
            self.close(event.t_us)
        elif event.kind in DISTURBING:
            self.due_us = event.t_us + self.quiet_us

    def _look_at(self, history: History, name: str) -> None:
        if name in self.concerned:
            if _is_restless(history, history.node(name)):
                self.restless[name] = None
            else:
                self.restless.pop(name, None)

    def close(self, now_us: int) -> None:
        """The rest is over, or the run is."""
        if self.since_us is not None and now_us - self.since_us >= self.quiet_us:
            self.rests.append(Rest(self.since_us, now_us))
        self.since_us = None
        self.due_us = NEVER


def _is_restless(history: History, state: NodeState) -> bool:
    """Whether something of this process is going on, or is left of it."""
    sessions = history.sessions_of.get(state.name, ())
    if not state.is_alive:
        return bool(sessions)
    return (
        state.is_busy
        or not state.is_connected
        or state.is_paused
        or state.notes_under_way > 0
        or state.session not in history.alive
        or len(sessions) > 1
    )


def rests_of(plan: Plan) -> list[RestOf]:
    """A tracker for each group."""
    found = []
    for group in plan.groups:
        cluster = plan.cluster(group.cluster)
        prefix = f"{cluster.name}:" if len(plan.clusters) > 1 else ""
        others = {broker.node for broker in cluster.brokers} | {f"{prefix}administrator"}
        members = {member.node for member in group.consumers}
        quiet_us = QUIET_TICKS * cluster.zookeeper.tick_us
        found.append(RestOf(group, frozenset(others | members), quiet_us))
    return found
