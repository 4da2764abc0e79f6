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

from model.history import History, NodeState
from model.plan import GroupPlan, Plan
from model.trace import Event

QUIET_TICKS = 2

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

    group: GroupPlan
    others: frozenset[str]
    """The processes of the cluster beside the group's: brokers and administrator."""
    members: frozenset[str]
    quiet_us: int
    rests: list[Rest] = field(default_factory=list)
    since_us: int | None = None
    """When the present rest began; None while there is none."""
    changed_us: int = 0
    is_judged: bool = True
    restless: dict[str, None] = field(default_factory=dict)

    def is_due(self, now_us: int) -> bool:
        """Whether what holds at rest can be judged, just before something happens now."""
        return (
            not self.is_judged
            and self.since_us is not None
            and now_us - self.changed_us >= self.quiet_us
        )

    def look(self, event: Event, history: History) -> None:
        """See what an event has changed."""
        for name in (event.node, history.holders.get(event.session, "")):
            if name in self.members or name in self.others:
                if _is_restless(history, history.node(name)):
                    self.restless[name] = None
                else:
                    self.restless.pop(name, None)
        resting = not self.restless and not history.faults_in_force
        if resting and self.since_us is None:
            self.since_us = self.changed_us = event.t_us
            self.is_judged = False
        elif not resting and self.since_us is not None:
            self.close(event.t_us)
        elif resting and event.kind in DISTURBING:
            self.changed_us = event.t_us
            self.is_judged = False

    def close(self, now_us: int) -> None:
        """The rest is over, or the run is."""
        if self.since_us is not None and now_us - self.since_us >= self.quiet_us:
            self.rests.append(Rest(self.since_us, now_us))
        self.since_us = None
        self.is_judged = True


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
        members = frozenset(member.node for member in group.consumers)
        quiet_us = QUIET_TICKS * cluster.zookeeper.tick_us
        found.append(RestOf(group, frozenset(others), members, quiet_us))
    return found
