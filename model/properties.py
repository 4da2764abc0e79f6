"""Every property, judged from the trace of a run alone.

Reading order: `verdicts` (what a verdict is), `history` (what was true when), `ownership`
(always), `rest` and `calm` (at rest), `progress` (eventually, and at what cost).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from model.calm import BALANCE, CONSENSUS, COVER, CalmJudge
from model.faults import Effect
from model.history import History
from model.ownership import MONOTONE, OWN_NODES, SINGLE, STRICT, TRUTHFUL, OwnershipJudge
from model.plan import Plan, Sometimes
from model.progress import PROGRESS, WORK, ChangeSeen, ProgressJudge
from model.rest import RestOf, rests_of
from model.trace import Event, Trace
from model.verdicts import Finding, Property, Verdict, overall

PROPERTIES: tuple[Property, ...] = (
    SINGLE,
    STRICT,
    TRUTHFUL,
    OWN_NODES,
    MONOTONE,
    COVER,
    CONSENSUS,
    BALANCE,
    PROGRESS,
    WORK,
)

SOMETIMES = Property("sometimes", "sometimes", "what the scenario is about has really happened")
EFFECTS = Property("faults struck", "sometimes", "every action of the timeline had an effect")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be said of a run."""

    findings: tuple[Finding, ...]
    changes: tuple[ChangeSeen, ...]
    stats: dict[str, Any]

    @property
    def verdict(self) -> Verdict:
        """The verdict of the run."""
        return overall(self.findings)

    def violated(self) -> list[str]:
        """The names of the properties that count and are violated."""
        return [
            one.claim.name
            for one in self.findings
            if one.counts and one.verdict is Verdict.VIOLATED
        ]

    def finding(self, name: str) -> Finding:
        """The finding for a property."""
        return next(one for one in self.findings if one.claim.name == name)


def judge(plan: Plan, trace: Trace, effects: Sequence[Effect]) -> Judgement:
    """Judge a run."""
    calm_us = max((effect.until_us or 0 for effect in effects), default=0)
    end_us = trace.end_us
    history = History(plan)
    ownership = OwnershipJudge()
    calm = CalmJudge(plan)
    progress = ProgressJudge(plan, calm_us)
    trackers = rests_of(plan)
    make = Event._make
    for seq, row in enumerate(trace.rows):
        kind = row[2]
        moves, counts = history.handles(kind), progress.handles(kind)
        if not moves and not counts:
            continue
        event = make((seq, *row))
        if counts:
            progress.after(event)
        if moves:
            _move_on(event, history, ownership, calm, trackers)
    history.now_us = end_us
    for tracker in trackers:
        if tracker.is_due(end_us):
            calm.look(history, tracker.group)
        tracker.close(end_us)
    findings = [
        *ownership.findings(end_us, strict_counts=plan.strict_ownership),
        *calm.findings(),
        progress.progress(trackers, end_us),
        progress.work_bound(),
        *(_sometimes(one, trace) for one in plan.sometimes),
    ]
    if effects:
        findings.append(_effects(effects))
    if trace.header.partial:
        findings.append(_partial(end_us))
    changes = progress.changes_seen(trackers)
    return Judgement(
        tuple(findings), tuple(changes), _stats(ownership, progress, trackers, end_us)
    )


def _move_on(
    event: Event,
    history: History,
    ownership: OwnershipJudge,
    calm: CalmJudge,
    trackers: list[RestOf],
) -> None:
    """Take an event into account, with a look before it and one after."""
    for tracker in trackers:
        if tracker.is_due(event.t_us):
            tracker.is_judged = True
            calm.look(history, tracker.group)
    ownership.before(event, history)
    history.move_on(event)
    ownership.after(event, history)
    for tracker in trackers:
        tracker.look(event, history)


def _sometimes(wanted: Sometimes, trace: Trace) -> Finding:
    claim = Property(f"sometimes: {wanted}", "sometimes", SOMETIMES.says)
    is_after = not wanted.after
    for event in trace:
        if not is_after:
            is_after = (
                event.kind in ("fault", "change", "load") and event.detail["verb"] == wanted.after
            )
        elif _matches(wanted, event):
            return Finding(claim, Verdict.HOLDS, f"first at {event.t_us / 1e6:.3f} s")
    return Finding(
        claim, Verdict.UNKNOWN, "it never happened, so the run does not show what it is about"
    )


def _matches(wanted: Sometimes, event: Event) -> bool:
    if event.kind != wanted.event or (wanted.node and event.node != wanted.node):
        return False
    return all(event.detail.get(key) == value for key, value in wanted.detail)


def _effects(effects: Sequence[Effect]) -> Finding:
    idle = [effect.action.label for effect in effects if not effect.is_real]
    if idle:
        return Finding(EFFECTS, Verdict.UNKNOWN, f"no effect: {', '.join(idle)}")
    number = len(effects)
    return Finding(
        EFFECTS, Verdict.HOLDS, f"{number} action{'s' if number > 1 else ''}, each with an effect"
    )


def _partial(end_us: int) -> Finding:
    claim = Property("complete", "end", "the run was not interrupted")
    return Finding(claim, Verdict.UNKNOWN, f"the run was interrupted at {end_us / 1e6:.3f} s")


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
            }
            for tracker in trackers
        },
    }
