"""What analysis measures, counted in plain Python from a run: event by event, without tables."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest

from watchkeeper.api.result import Result
from watchkeeper.model.delivery.counts import DeliveryCounts
from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.properties.at_quiescence import CalmJudge
from watchkeeper.model.properties.messages import message_judges
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.lags import Steps, lags

Span = tuple[int, int]
Claim = tuple[str, str, str]


def claim_of(event: Event) -> Claim:
    return event.group, event.topic, event.partition


# --- ownership -------------------------------------------------------------------------


def intervals(trace: Trace) -> set[tuple[Any, ...]]:
    """Who fetched which partition from when to when."""
    found, since = set(), {}
    for event in trace.of_kind(EventKind.FETCHING):
        key = (*claim_of(event), event.node)
        if key in since:
            found.add((*key, since.pop(key), event.t_us))
        if event.detail["does"] == "begins":
            since[key] = event.t_us
    return found | {(*key, begun, trace.end_us) for key, begun in since.items()}


def overlaps_and_gaps(trace: Trace) -> dict[tuple[str, bool], int]:
    """How long partitions of a group had several who fetched them, and how long none."""
    lasted: Counter[tuple[str, bool]] = Counter()
    now: dict[Claim, tuple[int, set[str]]] = {}

    def passed(claim: Claim, at_us: int) -> set[str]:
        since, nodes = now.get(claim, (at_us, set()))
        if len(nodes) != 1:
            lasted[claim[0], len(nodes) > 1] += at_us - since
        return nodes

    for event in trace.of_kind(EventKind.FETCHING):
        nodes = passed(claim_of(event), event.t_us)
        begins = event.detail["does"] == "begins"
        others = nodes | {event.node} if begins else nodes - {event.node}
        now[claim_of(event)] = event.t_us, others
    for claim in now:
        passed(claim, trace.end_us)
    return lasted


def moves(result: Result, patch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """By group: how often partitions went over from rest to rest, and how often they had to."""
    looks: dict[str, list[dict[Any, str]]] = defaultdict(list)

    def look(_: CalmJudge, history: Any, group: Any) -> None:
        owners = {
            partition: min(nodes)
            for (whose, partition), nodes in history.fetchers.items()
            if whose == group.name and nodes
        }
        looks[group.name].append(owners)

    with patch.context() as patched:
        patched.setattr(CalmJudge, "look", look)
        judge(result.plan, result.trace, ())
    found = {}
    for group, owners in looks.items():
        made = least = 0
        for was, now in pairwise(owners):
            both = was.keys() & now.keys()
            made += sum(was[process] != now[process] for process in both)
            gain = Counter(now[process] for process in both)
            gain.subtract(was[process] for process in both)
            least += sum(number for number in gain.values() if number > 0)
        found[group] = made, least
    return found


# --- the herd --------------------------------------------------------------------------


def herd(result: Result) -> dict[tuple[str, int], tuple[int, int, int, int | None]]:
    """By group and moment of a change: attempts, reads and members woken until the next one,
    and how long until the group was at rest."""
    found = {}
    for group in result.plan.groups:
        changes = _changes(result, group.name)
        rests = {
            change.at_us: change.rest_after_us
            for change in result.judgement.changes
            if change.group == group.name
        }
        events = [event for event in result.trace if event.group == group.name]
        for (seq, at_us), (until, _) in pairwise([*changes, (1 << 40, 0)]):
            actions = [event for event in events if seq < event.seq < until]
            found[group.name, at_us] = (
                sum(event.kind == EventKind.REBALANCE_STARTED for event in actions),
                sum(map(_reads, actions)),
                len(
                    {
                        action.node
                        for action in actions
                        if action.kind == EventKind.NOTIFIED and "path" in action.detail
                    }
                ),
                rests[at_us],
            )
    return found


def _changes(result: Result, group: str) -> list[tuple[int, int]]:
    """The events that changed the members of a group, its cluster's brokers, or topics."""
    cluster = next(item.cluster for item in result.plan.groups if item.name == group)
    prefix = f"{cluster}:" if len(result.plan.clusters) > 1 else ""
    found = []
    for event in result.trace.of_kind(
        EventKind.APPLIED, EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED
    ):
        for what, path, *_ in event.detail["did"]:
            of_member = re.match(f"/consumers/{group}/ids/[^/]+$", path) and what != "changed"
            of_all = path.startswith(("/brokers/ids/", "/brokers/topics/"))
            here = event.node.startswith(f"{prefix}zookeeper")
            if of_member or (of_all and here):
                found.append((event.seq, event.t_us))
    return sorted(set(found))


def _reads(event: Event) -> int:
    """How many reads of a registry an event asks for."""
    reads = ("get", "children", "exists", "ephemerals")
    if event.kind != EventKind.REQUEST or event.detail["purpose"] == "commit":
        return 0
    if event.detail["op"] == "pipelined":
        return event.detail["number"] if event.detail["parts"][0][0] in reads else 0
    return int(event.detail["op"] in reads)


# --- messages --------------------------------------------------------------------------


def accounts(result: Result) -> dict[str, DeliveryCounts]:
    """What became of the messages of each group, by the judge that follows them."""
    judges = message_judges(result.plan)
    if judges is None:
        return {}
    for event in result.trace:
        for call in judges.calls(event.kind):
            call(event)
    found = judges.delivery
    return {
        group: found._account(group, guarantee.topics)
        for group, guarantee in found.guarantees.items()
    }


def throughput(trace: Trace) -> int:
    """How many messages members were handed, or how far their offsets were moved on."""
    moved = sum(
        end - first
        for event in trace.of_kind(EventKind.FETCHED)
        for first, end, *_ in event.detail.get("moved", {}).values()
    )
    return moved + sum(
        message_range[2] - message_range[1]
        for event in trace.of_kind(EventKind.CONSUMED)
        for message_range in event.detail["ranges"]
    )


def cache_hits(trace: Trace) -> float | None:
    """Which part of what brokers read was in the pagecache."""
    hit = missed = 0
    was: dict[str, tuple[int, int]] = {}
    for event in trace.of_kind(EventKind.HOST_METRICS):
        now = event.detail["hit"], event.detail["missed"]
        before = was.get(event.node, (0, 0))
        if now[0] < before[0] or now[1] < before[1]:
            before = 0, 0
        hit, missed = hit + now[0] - before[0], missed + now[1] - before[1]
        was[event.node] = now
    return hit / (hit + missed) if hit + missed else None


def changing(steps: Steps) -> list[Span]:
    """Steps without those that change nothing."""
    return [step for at, step in enumerate(steps) if not at or steps[at - 1][1] != step[1]]


def lags_of(trace: Trace) -> dict[Claim, list[Span]]:
    """How far groups are behind by the report of one run."""
    return {
        (place.group, place.partition.topic, place.partition.name): changing(steps)
        for place, steps in lags(trace).items()
    }


def lag_together(trace: Trace, group: str) -> tuple[int, int] | None:
    """The greatest and the last lag of a group, all its partitions added up."""
    mine = [steps for (whose, *_), steps in lags_of(trace).items() if whose == group]
    if not mine:
        return None
    moments = sorted({at_us for steps in mine for at_us, _ in steps})
    sums = [
        sum(([lag for at_us, lag in steps if at_us <= now] or [0])[-1] for steps in mine)
        for now in moments
    ]
    return max(sums), sums[-1]
