"""Judges every property from the trace of a run alone.

Reading order: `verdicts` (what a verdict is), `model/trace/history` (what was true when),
`ownership` (always), `quiescence` and `at_quiescence` (at rest), `progress` (eventually, and
at what cost).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import Plan, Sometimes
from watchkeeper.model.properties.at_quiescence import (
    AGREED,
    BALANCE,
    CONSENSUS,
    COVER,
    CalmJudge,
)
from watchkeeper.model.properties.group_offsets import GroupOffsetsJudge, offset_judges
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.messages import MessageJudges, message_judges
from watchkeeper.model.properties.ownership import (
    MONOTONE,
    OWN_NODES,
    SINGLE,
    STRICT,
    TRUTHFUL,
    OwnershipJudge,
)
from watchkeeper.model.properties.progress import PROGRESS, WORK, ChangeSeen, ProgressJudge
from watchkeeper.model.properties.quiescence import NEVER, RestOf, rests_of
from watchkeeper.model.properties.verdicts import (
    Finding,
    Property,
    Subject,
    Verdict,
    counted,
    overall,
    seconds,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import EVENT, Event, Trace

if TYPE_CHECKING:
    from watchkeeper.model.properties.control_plane.judges import Judge
    from watchkeeper.model.properties.control_plane.rests import ControlPlaneJudge

PROPERTIES: tuple[Property, ...] = (
    SINGLE,
    STRICT,
    TRUTHFUL,
    OWN_NODES,
    MONOTONE,
    COVER,
    CONSENSUS,
    AGREED,
    BALANCE,
    PROGRESS,
    WORK,
)
"""Those of groups; `watchkeeper.model.properties.messages` has those of messages,
`watchkeeper.model.properties.group_offsets` those of offsets in Kafka, and
`watchkeeper.model.properties.control_plane` those of controllers and of replicas."""

SOMETIMES = Property("sometimes", "sometimes", "the events that the scenario is about occurred")
NEVER_HAPPENS = Property("never", "always", "the events that the scenario excludes did not occur")
EFFECTS = Property("faults struck", "sometimes", "every action of the timeline had an effect")


FailedTurns = tuple[int, int, str]
"""How many turns failed, when the last one did, and its error."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a run: a finding for each property."""

    findings: tuple[Finding, ...]
    changes: tuple[ChangeSeen, ...]
    stats: dict[str, Any]
    failed_turns: Mapping[str, FailedTurns] = field(default_factory=dict)
    """Node -> its turns that ended in an error which its program did not handle."""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the run."""
        return overall(self.findings)

    def violated(self) -> list[str]:
        """The names of the properties that count and are violated."""
        return [
            finding.claim.name
            for finding in self.findings
            if finding.counts and finding.verdict is Verdict.VIOLATED
        ]

    def finding(self, name: str) -> Finding:
        """The finding for a property."""
        return next(finding for finding in self.findings if finding.claim.name == name)


def judge(plan: Plan, trace: Trace, effects: Sequence[FaultEffect]) -> Judgement:
    """Judge a run."""
    calm_us, after = _calm_us(trace, effects)
    end_us = trace.end_us
    history = History(plan)
    ownership = OwnershipJudge(history)
    calm = CalmJudge(plan)
    progress = ProgressJudge(plan, calm_us, after)
    trackers = rests_of(plan)
    messages = message_judges(plan)
    control, of_events = _control_plane(plan, history)
    followers = (*of_events, *offset_judges(plan))
    watch = _Watch(history, ownership, calm, progress, trackers, messages, control)
    for judge_of in followers:
        watch.follow(judge_of)
    watch.all_of(trace)
    history.now_us = end_us
    if control is not None:
        control.close(end_us)
    for judge_of in followers:
        judge_of.close(end_us)
    if trackers:
        watch.judge_rests(end_us)
    for tracker in trackers:
        tracker.close(end_us)
    of_groups = [
        *ownership.findings(end_us, strict_counts=plan.strict_ownership),
        *calm.findings(),
        progress.progress(trackers, end_us),
        progress.work_bound(),
    ]
    findings = [
        *(of_groups if plan.groups else _without_groups(of_groups, plan)),
        *(control.findings() if control is not None else ()),
        *(finding for judge_of in followers for finding in judge_of.findings()),
        *(messages.findings(end_us) if messages is not None else ()),
        *(_never(never, trace) for never in plan.never),
        *(_sometimes(wanted, trace) for wanted in plan.sometimes),
    ]
    if effects:
        findings.append(_effects(effects))
    if trace.header.partial:
        findings.append(_partial(end_us))
    changes = progress.changes_seen(trackers)
    return Judgement(
        tuple(findings),
        tuple(changes),
        _stats(ownership, progress, trackers, end_us),
        watch.failed_turns,
    )


def _control_plane(
    plan: Plan, history: History
) -> tuple[ControlPlaneJudge | None, tuple[Judge, ...]]:
    """The judges of its control planes; they are imported only if brokers elect controllers."""
    if not plan.elects_controllers and not plan.replicates:
        return None, ()
    from watchkeeper.model.properties.control_plane.judges import event_judges
    from watchkeeper.model.properties.control_plane.rests import control_plane_judge

    return control_plane_judge(plan, history), event_judges(plan, history)


def _without_groups(findings: list[Finding], plan: Plan) -> list[Finding]:
    """Findings about groups in a run without groups: unknown, and they count only if no other
    finding does. That a process deletes no ephemeral of another one concerns brokers too."""
    counts = not (plan.sometimes or plan.never or plan.timeline or plan.elects_controllers)
    message = "there is no group"
    return [
        finding
        if plan.elects_controllers and finding.claim is OWN_NODES
        else Finding(finding.claim, Verdict.UNKNOWN, message, counts=counts)
        for finding in findings
    ]


def _calm_us(trace: Trace, effects: Sequence[FaultEffect]) -> tuple[int, str]:
    """When the last action was over, every process had started and the service was available.

    Live, a busy machine breaks connections by itself; no group has to be at rest before the last
    such break. In simulation only actions break connections.
    """
    over_us = [effect.until_us or 0 for effect in effects]
    there_us = [
        event.t_us
        for event in trace.of_kind(
            EventKind.STARTED, EventKind.LEADER_ELECTED, EventKind.SERVER_STATE
        )
    ]
    calm_us = max(over_us + there_us, default=0)
    if trace.header.world == "live":
        broken_us = max((event.t_us for event in trace.of_kind(EventKind.SUSPENDED)), default=0)
        if broken_us > calm_us:
            return broken_us, "a connection broke by itself"
    return calm_us, "the last action"


class _Watch:
    """Leads every judge through a trace, each to the kinds of event that concern it."""

    def __init__(
        self,
        history: History,
        ownership: OwnershipJudge,
        calm: CalmJudge,
        progress: ProgressJudge,
        trackers: list[RestOf],
        messages: MessageJudges | None,
        control: ControlPlaneJudge | None,
    ) -> None:
        self.history = history
        self.calm = calm
        self.trackers = trackers
        self.due_us = NEVER
        """When the first rest has lasted long enough to be judged."""
        self.failed_turns: dict[str, FailedTurns] = {}
        self.calls: dict[str, list[Callable[[Event], None]]] = {}
        self._add((EventKind.TURN_FAILED,), self._note_failed_turn)
        if control is not None:
            self._add(control.KINDS, control.before)
        self._add((EventKind.APPLIED,), ownership.before)
        for kind, handler in history.handlers.items():
            self._add((kind,), handler)
        for kind, handler in ownership.handlers.items():
            self._add((kind,), handler)
        self._add(RestOf.KINDS, self.look)
        for kind, handler in progress.handlers.items():
            self._add((kind,), handler)
        if messages is not None:
            for kind in EventKind:
                for call in messages.calls(kind):
                    self._add((kind,), call)
        if control is not None:
            self._add(control.KINDS, control.after)

    def follow(self, judge_of: Judge | GroupOffsetsJudge) -> None:
        """Let a judge look at what concerns it, after the history."""
        for kind, handler in judge_of.handlers.items():
            self._add((kind,), handler)

    def _add(self, kinds: Iterable[str], call: Callable[[Event], None]) -> None:
        """Let a judge look at each event of these kinds, after those that were added before."""
        for kind in kinds:
            self.calls.setdefault(kind, []).append(call)

    def all_of(self, trace: Trace) -> None:
        """Look at every event in order."""
        make, calls_for, history = EVENT, self.calls, self.history
        for seq, row in enumerate(trace.rows):
            calls = calls_for.get(row[2])
            if calls is None:
                continue
            if row[0] >= self.due_us:
                self.judge_rests(row[0])
            history.now_us = row[0]
            event = make((seq, *row))
            for call in calls:
                call(event)

    def _note_failed_turn(self, event: Event) -> None:
        failed = self.failed_turns
        number = failed[event.node][0] if event.node in failed else 0
        failed[event.node] = (number + 1, event.t_us, event.detail["error"])

    def look(self, event: Event) -> None:
        """Update which groups are at rest."""
        due_us = NEVER
        for tracker in self.trackers:
            tracker.look(event, self.history)
            if tracker.due_us < due_us:
                due_us = tracker.due_us
        self.due_us = due_us

    def judge_rests(self, now_us: int) -> None:
        """Judge the rests that have lasted long enough, before the next event."""
        for tracker in self.trackers:
            if now_us >= tracker.due_us:
                tracker.due_us = NEVER
                self.calm.look(self.history, tracker.group)
        self.due_us = min(tracker.due_us for tracker in self.trackers)


def _sometimes(wanted: Sometimes, trace: Trace) -> Finding:
    claim = Property(f"sometimes: {wanted}", "sometimes", SOMETIMES.says)
    event = _first(wanted, trace)
    if event is not None:
        return Finding(claim, Verdict.HOLDS, f"first at {seconds(event.t_us)}")
    return Finding(
        claim, Verdict.UNKNOWN, "it never happened, so the run does not show what it is about"
    )


def _never(unwanted: Sometimes, trace: Trace) -> Finding:
    claim = Property(f"never: {unwanted}", "always", NEVER_HAPPENS.says)
    event = _first(unwanted, trace)
    if event is None and (missing := _missing_field(unwanted, trace)):
        return Finding(
            claim,
            Verdict.UNKNOWN,
            f"no event of this kind has a field {missing!r}, so none can be it",
            shape="no event has the field that is compared",
        )
    if event is None:
        return Finding(claim, Verdict.HOLDS, "it did not happen")
    message = f"at {seconds(event.t_us)} it did, at {event.node}"
    about = Subject((event.node,))
    return Finding(claim, Verdict.VIOLATED, message, event.t_us, shape="it occurred", about=about)


def _missing_field(wanted: Sometimes, trace: Trace) -> str:
    """A field that is compared and that no event of this kind has; empty for none."""
    events = list(trace.of_kind(wanted.event)) if wanted.detail else []
    keys = [key for key, _ in wanted.detail]
    if not events or any(event.detail.keys() >= set(keys) for event in events):
        return ""
    lacking = (key for key in keys if all(key not in event.detail for event in events))
    return next(lacking, keys[0])


VERBS = (EventKind.FAULT, EventKind.CHANGE, EventKind.LOAD)
"""The kinds of event that an entry of the timeline writes, with its verb."""


def _first(wanted: Sometimes, trace: Trace) -> Event | None:
    """The first event that is looked for."""
    is_after = not wanted.after
    for event in trace.of_kind(wanted.event, *VERBS):
        verb = event.detail["verb"] if event.kind in VERBS else ""
        if not is_after:
            is_after = verb == wanted.after
        elif wanted.before and verb == wanted.before:
            return None
        elif _matches(wanted, event):
            return event
    return None


def _matches(wanted: Sometimes, event: Event) -> bool:
    if event.kind != wanted.event or (wanted.node and event.node != wanted.node):
        return False
    if wanted.partition and event.place != wanted.partition:
        return False
    return all(event.detail.get(key) == value for key, value in wanted.detail)


def _effects(effects: Sequence[FaultEffect]) -> Finding:
    idle = [
        f"{effect.label} ({effect.missed})" if effect.missed else effect.label
        for effect in effects
        if not effect.is_real
    ]
    if idle:
        verbs = sorted({effect.action.verb.name for effect in effects if not effect.is_real})
        return Finding(
            EFFECTS,
            Verdict.UNKNOWN,
            f"no effect: {', '.join(idle)}",
            shape=f"no effect: {', '.join(verbs)}",
        )
    message = f"{counted(len(effects), 'action')}, each with an effect"
    return Finding(EFFECTS, Verdict.HOLDS, message)


def _partial(end_us: int) -> Finding:
    claim = Property("complete", "end", "the run was not interrupted")
    message = f"the run was interrupted at {end_us / 1e6:.3f} s"
    return Finding(claim, Verdict.UNKNOWN, message, shape="the run was interrupted")


def _stats(
    ownership: OwnershipJudge, progress: ProgressJudge, trackers: list[RestOf], end_us: int
) -> dict[str, Any]:
    return {
        "virtual_us": end_us,
        "zombie_window_us": ownership.longest_zombie_us,
        "zombie_total_us": ownership.zombie_total_us,
        "groups": {
            tracker.group.name: {
                "attempts": progress.work[tracker.group.name].attempts,
                "reads": progress.work[tracker.group.name].reads,
                "operations": progress.work[tracker.group.name].operations,
                "changes": len(progress.work[tracker.group.name].changes),
                "rests": len(tracker.rests),
                "rest_after_us": progress.rest_after_us(tracker, end_us),
            }
            for tracker in trackers
        },
    }
