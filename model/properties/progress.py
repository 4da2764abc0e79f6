"""Judges of how soon a group comes to rest, and at what cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from watchkeeper.model.plan.plan import GroupPlan, Plan
from watchkeeper.model.properties.quiescence import Rest, RestOf
from watchkeeper.model.properties.verdicts import (
    Finding,
    Property,
    Subject,
    Verdict,
    counted,
    duration,
    seconds,
)
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

PROGRESS = Property(
    "progress",
    "eventually",
    "after the last action of the timeline, with ZooKeeper available, the group comes to rest "
    "within session timeout, ticks, back-off, reconnection and round trips",
)
WORK = Property(
    "work bound",
    "end",
    "rebalances per change stay below a multiple of the number of members, and reads below a "
    "multiple of the reads that each of them needs",
)

TRIPS_OF_AN_ATTEMPT = 20
"""Round trips of a rebalance besides those for each partition and each member."""

LONGEST_RECONNECT_US = 2_000_000
"""The longest pause a client makes between two attempts to connect."""

READS_OF_A_ZNODE = 3
"""How often an attempt may read a znode: its data, its claim, its offset."""
READS = frozenset({"get", "children", "exists", "ephemerals"})


@dataclass(frozen=True, slots=True)
class ChangeSeen:
    """A change of members, brokers or topics, and its effect on one group."""

    at_us: int
    what: str
    group: str
    rest_after_us: int | None
    """Time until the group was at rest; None if it was not before the run ended."""
    skew_us: int | None
    """From the first member that was woken by it to the last."""


@dataclass(slots=True)
class WorkOf:
    """The work of one group."""

    attempts: int = 0
    reads: int = 0
    operations: int = 0
    trips_after_calm: int = 0
    changes: list[tuple[int, int, str]] = field(default_factory=list)
    """(when, zxid, text) of each change in the registry."""
    disturbances: int = 0
    """Lost connections and sessions of its members."""
    wakings: dict[int, list[int]] = field(default_factory=dict)
    """zxid -> when members were notified of it."""
    slowest_trip_us: int = 1000
    was_cut_off: bool = False
    """Whether a member had no connection when the faults were over, or lost it afterwards."""


@dataclass
class ProgressJudge:
    """Counts the work of each group."""

    plan: Plan
    calm_us: int
    after: str = "the last action"
    """The event after which progress is judged."""
    work: dict[str, WorkOf] = field(default_factory=dict)
    _asked: dict[str, int] = field(default_factory=dict)
    _leaderless: dict[str, None] = field(default_factory=dict)
    """Prefix of the names of an ensemble's servers -> it has no leader."""
    _away: dict[str, None] = field(default_factory=dict)
    _fired: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.work = {group.name: WorkOf() for group in self.plan.groups}
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.REQUEST: self._note_ask,
            EventKind.RESPONSE: self._note_answer,
            EventKind.REBALANCE_STARTED: self._note_attempt,
            EventKind.LEADER_ELECTED: self._note_leader,
            EventKind.LEADER_LOST: self._note_leader,
            EventKind.CONNECTED: self._note_connection,
            EventKind.SUSPENDED: self._note_connection,
            EventKind.EXPIRED: self._note_connection,
            EventKind.APPLIED: self._note_changes,
            EventKind.SESSION_EXPIRED: self._note_changes,
            EventKind.SESSION_CLOSED: self._note_changes,
            EventKind.WATCH_FIRED: self._note_fired,
            EventKind.NOTIFIED: self._note_waking,
        }

    def _note_attempt(self, event: Event) -> None:
        self.work[event.group].attempts += 1

    def _note_leader(self, event: Event) -> None:
        ensemble = event.node.rpartition("zookeeper")[0]
        if event.kind == EventKind.LEADER_ELECTED:
            self._leaderless.pop(ensemble, None)
        else:
            self._leaderless[ensemble] = None

    def _is_served(self, group: GroupPlan) -> bool:
        return self._ensemble_of(group) not in self._leaderless

    def _ensemble_of(self, group: GroupPlan) -> str:
        """The prefix of the names of the servers that a group connects to."""
        return self.plan.prefix_of(group.cluster)

    def _note_connection(self, event: Event) -> None:
        """Update the connections."""
        is_gone = event.kind != EventKind.CONNECTED
        if is_gone:
            self._away[event.node] = None
        elif self._away.pop(event.node, 0) is None and event.t_us > self.calm_us:
            for work in self.work.values():
                work.was_cut_off = True
        if is_gone and event.group:
            self.work[event.group].disturbances += 1

    def _note_fired(self, event: Event) -> None:
        if event.group:
            pending = self._fired.setdefault(event.node, [])
            pending.append((event.detail["path"], event.zxid))

    def _note_ask(self, event: Event) -> None:
        if not event.group or event.detail["purpose"] == "commit":
            return
        self._asked[event.node] = event.t_us
        work = self.work[event.group]
        detail = event.detail
        op, number = detail["op"], 1
        if op == "pipelined":
            op, number = detail["parts"][0][0], detail["number"]
        work.operations += number
        if event.t_us >= self.calm_us:
            work.trips_after_calm += 1
        if op in READS:
            work.reads += number

    def _note_answer(self, event: Event) -> None:
        asked_us = self._asked.pop(event.node, None)
        if asked_us is not None and event.t_us >= self.calm_us:
            work = self.work[event.group]
            work.slowest_trip_us = max(work.slowest_trip_us, event.t_us - asked_us)

    def _note_changes(self, event: Event) -> None:
        for change in event.detail["did"]:
            path = change[1]
            member = paths.parse_member(path)
            if member is not None:
                if member[0] in self.work and change[0] != "changed":
                    self._add(member[0], event, f"{member[1]} {_verb(change[0])}")
            elif path.startswith((f"{paths.BROKER_IDS}/", f"{paths.TOPICS}/")):
                ensemble = event.node.rpartition("zookeeper")[0]
                for group in self.plan.groups:
                    if self._ensemble_of(group) == ensemble:
                        self._add(group.name, event, f"{path} {change[0]}")

    def _add(self, group: str, event: Event, what: str) -> None:
        self.work[group].changes.append((event.t_us, event.zxid, what))

    def _note_waking(self, event: Event) -> None:
        if not event.group or "path" not in event.detail:
            return
        pending = self._fired.get(event.node, [])
        for at, (path, zxid) in enumerate(pending):
            if path == event.detail["path"]:
                del pending[at]
                self.work[event.group].wakings.setdefault(zxid, []).append(event.t_us)
                return

    # --- progress ----------------------------------------------------------------------

    def bound_us(self, group: GroupPlan) -> int:
        """The time within which a group has to come to rest after the last action."""
        if self.plan.progress_within_us is not None:
            return self.plan.progress_within_us
        cluster = self.plan.cluster(group.cluster)
        timeouts = [cluster.session_timeout_ms] + [
            member.settings.session_timeout_ms for member in group.consumers
        ]
        pauses = [
            member.settings.rebalance_backoff_ms * member.settings.rebalance_retries
            for member in group.consumers
            if member.variant.backs_off
        ]
        work = self.work[group.name]
        trips = min(work.trips_after_calm, self._most_trips(group)) * work.slowest_trip_us
        session = max(timeouts) * 1000 + 2 * cluster.zookeeper.tick_us
        connecting = LONGEST_RECONNECT_US if work.was_cut_off else 0
        return session + connecting + max(pauses, default=0) * 1000 + trips

    def _most_trips(self, group: GroupPlan) -> int:
        """The greatest number of round trips of a rebalance: every member attempts it a few
        times."""
        an_attempt = TRIPS_OF_AN_ATTEMPT + 4 * self._partitions(group) + 2 * len(group.consumers)
        return self.plan.work_factor * len(group.consumers) * an_attempt

    def _partitions(self, group: GroupPlan) -> int:
        """How many partitions the group's cluster has, or had when the run began."""
        topics = self.plan.cluster(group.cluster).topics
        by_broker = sum(count for topic in topics for _, count in topic.by_broker)
        return max(by_broker, sum(len(topic.replicas) for topic in topics))

    def progress(self, trackers: list[RestOf], end_us: int) -> Finding:
        """Judge whether every group came to rest soon enough after the last action."""
        slowest = ""
        longest = -1
        for tracker in trackers:
            rest = _first_lasting(tracker.rests, self.calm_us, end_us)
            if rest is None:
                return self._restless(tracker, end_us)
            name, bound = tracker.group.name, self.bound_us(tracker.group)
            took = max(rest.begins_us - self.calm_us, 0)
            if took > bound:
                return Finding(
                    PROGRESS,
                    Verdict.VIOLATED,
                    f"{name} came to rest {duration(took)} after {self.after}; the bound is "
                    f"{duration(bound)}{_outlived(tracker)}",
                    rest.begins_us,
                    shape="a group comes to rest later than the bound",
                    about=Subject(tuple(one.node for one in tracker.group.consumers), name),
                )
            if took > longest:
                longest = took
                slowest = (
                    f"{name} was at rest {duration(took)} after {self.after}, at "
                    f"{seconds(self.calm_us)}; the bound is {duration(bound)}"
                    f"{_outlived(tracker)}"
                )
        return Finding(PROGRESS, Verdict.HOLDS, slowest)

    def _restless(self, tracker: RestOf, end_us: int) -> Finding:
        """The finding on a group that is not at rest when the run ends."""
        name, bound = tracker.group.name, self.bound_us(tracker.group)
        waited = end_us - self.calm_us
        if not self._is_served(tracker.group):
            return Finding(
                PROGRESS,
                Verdict.UNKNOWN,
                f"the service of {name} was not back when the run ended; nothing is owed "
                "before it is",
                shape="the service was not back when the run ended",
            )
        if waited < bound:
            return Finding(
                PROGRESS,
                Verdict.UNKNOWN,
                f"{name} was not at rest when the run ended, {duration(waited)} after "
                f"{self.after}; it may take {duration(bound)}, so settle for longer"
                f"{_outlived(tracker)}",
                shape="a group was not at rest when the run ended, within the bound",
            )
        return Finding(
            PROGRESS,
            Verdict.VIOLATED,
            f"{name} was not at rest {duration(waited)} after {self.after}; "
            f"{_restless(tracker)}; the bound is {duration(bound)}",
            end_us,
            shape="a group does not come to rest before the run ends",
            about=Subject(tuple(sorted(tracker.restless)), name),
        )

    def rest_after_us(self, tracker: RestOf, end_us: int) -> int | None:
        """Time from the last action until a group came to rest for good; None if it did not."""
        rest = _first_lasting(tracker.rests, self.calm_us, end_us)
        return None if rest is None else max(rest.begins_us - self.calm_us, 0)

    # --- work --------------------------------------------------------------------------

    def work_bound(self) -> Finding:
        """Judge whether the work is proportional to the changes."""
        evidence = ""
        for group in self.plan.groups:
            work = self.work[group.name]
            members = len(group.consumers)
            reasons = len(work.changes) + work.disturbances + members
            allowed = self.plan.work_factor * members * max(reasons, 1)
            evidence = (
                f"{group.name}: {work.attempts} attempts and {work.reads} reads for "
                f"{len(work.changes)} changes and {work.disturbances} lost connections or "
                f"sessions among {members} members"
            )
            if work.attempts > allowed:
                return Finding(
                    WORK,
                    Verdict.VIOLATED,
                    f"{evidence}; {allowed} attempts allowed",
                    shape="a group makes more attempts than the changes need",
                )
            most = allowed * READS_OF_A_ZNODE * self._znodes(group)
            if work.reads > most:
                return Finding(
                    WORK,
                    Verdict.VIOLATED,
                    f"{evidence}; {most} reads allowed",
                    shape="a group makes more reads than the changes need",
                )
        return Finding(WORK, Verdict.HOLDS, evidence)

    def _znodes(self, group: GroupPlan) -> int:
        """The number of znodes that a rebalance reads."""
        cluster = self.plan.cluster(group.cluster)
        things = len(group.consumers) + len(cluster.brokers) + len(cluster.topics)
        return things + self._partitions(group) + 1

    def changes_seen(self, trackers: list[RestOf]) -> list[ChangeSeen]:
        """Each change of the registry with the time to rest that followed."""
        seen: list[ChangeSeen] = []
        for tracker in trackers:
            work = self.work[tracker.group.name]
            for at_us, zxid, what in work.changes:
                rest = next((rest for rest in tracker.rests if rest.begins_us >= at_us), None)
                heard = work.wakings.get(zxid, [])
                seen.append(
                    ChangeSeen(
                        at_us,
                        what,
                        tracker.group.name,
                        None if rest is None else rest.begins_us - at_us,
                        max(heard) - min(heard) if heard else None,
                    )
                )
        return seen


def _verb(change: str) -> str:
    return {"created": "joined", "deleted": "left"}[change]


def _first_lasting(rests: list[Rest], calm_us: int, end_us: int) -> Rest | None:
    """The rest that lasts until the run ends, or the first that starts after the last action."""
    later = [rest for rest in rests if rest.ends_us > calm_us]
    if not later or later[-1].ends_us < end_us:
        return None
    return later[-1] if later[-1].begins_us > calm_us else Rest(calm_us, end_us)


def _restless(tracker: RestOf) -> str:
    names = sorted(tracker.restless)
    if not names:
        return f"something had only just ended{_outlived(tracker)}"
    which = f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"
    return f"{which} had not come to rest{_outlived(tracker)}"


def _outlived(tracker: RestOf) -> str:
    """The sessions that outlive their programs, and what they claim; empty without any."""
    return "".join(
        f"; the program of {name} is over, and its session claims {counted(claims, 'partition')}"
        for name, claims in sorted(tracker.outlived.items())
    )
