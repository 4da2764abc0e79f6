"""When a group is at rest (quiescent).

At rest: no rebalance runs, no notification is pending or unread, no retry timer runs, no
process is paused, every process is connected with a live session, and no session of a dead
process remains. A process whose member has left in good order may go on without a session. A
process whose id another one has registered may go on trying to register it. A process whose
program is over may go on with its session: that is no transition, it lasts until the process
ends or the session expires.
Heartbeats, commits and fetches do not count. No group is at rest while a fault of the timeline
is in force.

A trace cannot show an event of which no process has been notified yet. So a rest counts only
after `QUIET_TICKS` without a disturbance, in every world.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import ClassVar

from watchkeeper.model.plan.plan import ClusterPlan, GroupPlan, Plan
from watchkeeper.model.properties.history import History, NodeState
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, struck_by

QUIET_TICKS = 2

NEVER = 1 << 62
NO_SESSIONS: frozenset[int] = frozenset()

SESSION_ENDS = frozenset(
    {EventKind.SESSION_OPENED, EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED}
)

DISTURBING = frozenset({EventKind.FETCHING, EventKind.HOSTING})
"""Kinds of event that change what is fetched without waking a process."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A time during which a group was at rest."""

    begins_us: int
    ends_us: int


@dataclass(slots=True)
class RestTracker:
    """The rests of some processes, found while their history advances."""

    KINDS: ClassVar = frozenset(
        {
            EventKind.STARTED,
            EventKind.ENDED,
            EventKind.ABANDONED,
            EventKind.WAITING,
            EventKind.WOKEN,
            EventKind.WATCH_FIRED,
            EventKind.NOTIFIED,
            EventKind.CONNECTED,
            EventKind.SUSPENDED,
            EventKind.EXPIRED,
            EventKind.SESSION_OPENED,
            EventKind.SESSION_EXPIRED,
            EventKind.SESSION_CLOSED,
            EventKind.FAULT,
            EventKind.FAULT_ENDED,
            EventKind.FETCHING,
            EventKind.HOSTING,
        }
    )
    """The kinds of event that may start or end a rest, or change what holds in it."""

    concerned: frozenset[str]
    """The processes that have to be quiet: members, brokers, the administrator."""
    quiet_us: int
    sharers: tuple[str, ...] = ()
    """The members whose id another member has too: one waits for the other to go."""
    rests: list[Rest] = field(default_factory=list)
    since_us: int | None = None
    """When the present rest started; None if there is none."""
    due_us: int = NEVER
    """When it will have lasted long enough to be judged."""
    restless: dict[str, None] = field(default_factory=dict)
    outlived: dict[str, int] = field(default_factory=dict)
    """Member whose program is over while its session is alive -> the claims of that session."""

    def look(self, event: Event, history: History) -> None:
        """Update the rest after an event."""
        if event.kind in DISTURBING and not self.sharers and not self.outlived:
            if self.since_us is not None:
                self.due_us = event.t_us + self.quiet_us
            return
        if event.node in self.concerned:
            self._look_at(history, event.node)
        elif event.kind in SESSION_ENDS:
            self._look_at_concerned(history, (history.holders[event.session],))
        else:
            self._look_at_concerned(history, struck_by(event))
        if self.sharers or self.outlived:
            self._look_at_concerned(history, (*self.sharers, *self.outlived))
        resting = not self.restless and not history.faults_in_force
        if self.since_us is None:
            if resting:
                self.since_us = event.t_us
                self.due_us = event.t_us + self.quiet_us
        elif not resting:
            self.close(event.t_us)
        elif event.kind in DISTURBING:
            self.due_us = event.t_us + self.quiet_us

    def _look_at_concerned(self, history: History, names: Iterable[str]) -> None:
        for name in names:
            if name in self.concerned:
                self._look_at(history, name)

    def _look_at(self, history: History, name: str) -> None:
        state = history.nodes.get(name) or history.node(name)
        sessions = history.sessions_of.get(name, NO_SESSIONS)
        # The first line is the frequent case of the function, found without a call.
        if (state.is_alive and state.is_busy and sessions and not history.shared_ids) or (
            _is_restless(history, state, sessions)
        ):
            self.restless[name] = None
        elif name in self.restless:
            del self.restless[name]
        if state.is_abandoned and sessions:
            self.outlived[name] = history.outlived_claims(name)
        elif self.outlived:
            self.outlived.pop(name, None)

    def close(self, now_us: int) -> None:
        """The rest is over, or the run is."""
        if self.since_us is not None and now_us - self.since_us >= self.quiet_us:
            self.rests.append(Rest(self.since_us, now_us))
        self.since_us = None
        self.due_us = NEVER


@dataclass(slots=True)
class RestOf(RestTracker):
    """The rests of one group."""

    group: GroupPlan = field(kw_only=True)


def _is_restless(history: History, state: NodeState, sessions: Set[int]) -> bool:
    """Whether this process is active, or leaves something behind."""
    if not state.is_alive:
        return bool(sessions)
    if not sessions and (state.has_leave_command or state.is_abandoned):
        return False
    if history.shared_ids and _waits_for_its_id(history, state):
        return False
    return (
        state.is_busy
        or not state.is_connected
        or state.is_paused
        or state.notes_under_way > 0
        or state.session not in history.alive
        or len(sessions) > 1
    )


def _waits_for_its_id(history: History, state: NodeState) -> bool:
    """Whether this process only tries again and again to register an id that is in use."""
    return history.lacks_its_id(state.name) and not state.fetching and state.is_connected


def rests_of(plan: Plan) -> list[RestOf]:
    """A tracker for each group."""
    found = []
    shared_ids = plan.shared_ids()
    for group in plan.groups:
        cluster = plan.cluster(group.cluster)
        members = {member.node for member in group.consumers}
        concerned = _servants(plan, cluster) | members
        sharers = tuple(sorted(members.intersection(shared_ids)))
        found.append(RestOf(concerned, _quiet_us(cluster), sharers, group=group))
    return found


def cluster_rests(plan: Plan) -> Iterator[tuple[ClusterPlan, RestTracker]]:
    """Yield each cluster with a tracker of its brokers and its administrator."""
    for cluster in plan.clusters:
        yield cluster, RestTracker(_servants(plan, cluster), _quiet_us(cluster))


def _servants(plan: Plan, cluster: ClusterPlan) -> frozenset[str]:
    """The processes of a cluster that belong to no group."""
    administrator = f"{plan.prefix_of(cluster.name)}administrator"
    return frozenset({administrator, *(broker.node for broker in cluster.brokers)})


def _quiet_us(cluster: ClusterPlan) -> int:
    return QUIET_TICKS * cluster.zookeeper.tick_us
