"""The chain of events that led to a violation, as pages and reports show it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from watchkeeper.model.properties.verdicts import Finding, Verdict, seconds
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.why import brokers, members, offsets, wording
from watchkeeper.reports.why.lookup import Lookup, lookup
from watchkeeper.reports.why.walk import Walk, Weight

MOST_LINES = 6


@dataclass(frozen=True, slots=True)
class Line:
    """One event of a chain."""

    seq: int
    t_us: int
    text: str

    def __str__(self) -> str:
        return f"{seconds(self.t_us)}  {self.text}"


@dataclass(frozen=True, slots=True)
class Chain:
    """Why a property is violated."""

    property: str
    at_us: int
    seq: int
    """The event to look at in `spacetime.html`."""
    lines: tuple[Line, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the field `why` of a property in a verdict."""
        return {
            "at_s": self.at_us / 1e6,
            "seq": self.seq,
            "lines": [
                {"at_s": line.t_us / 1e6, "seq": line.seq, "text": line.text}
                for line in self.lines
            ],
        }


def chains(trace: Trace, findings: tuple[Finding, ...]) -> tuple[Chain, ...]:
    """Return the chain of each violated property, in the order of the properties."""
    violated = [one for one in findings if one.verdict is Verdict.VIOLATED]
    if not violated or not len(trace):
        return ()
    found = lookup(trace)
    times = [row[0] for row in trace.rows]
    return tuple(_chain(trace, found, finding, times) for finding in violated)


def _chain(trace: Trace, found: Lookup, finding: Finding, times: list[int]) -> Chain:
    at_us = trace.end_us if finding.at_us is None else finding.at_us
    until = bisect_right(times, at_us)
    walk = Walk(found, finding.about, until)
    _go(walk)
    if not walk.links:
        _go_everywhere(walk)
    lines = tuple(
        Line(link.event.seq, link.event.t_us, link.text) for link in walk.chosen(MOST_LINES)
    )
    return Chain(finding.claim.name, at_us, max(until - 1, 0), lines)


def _go(walk: Walk) -> None:
    """Follow every way that the subject of a violation opens."""
    about = walk.about
    for node in about.nodes:
        brokers.walk_writer(walk, node)
    if about.group and about.partitions and about.offset is not None:
        offsets.walk_offsets(walk)
    elif about.group and about.partitions and about.nodes:
        members.walk_fetches(walk)
    elif about.group and about.partitions:
        members.walk_positions(walk)
    elif about.group and about.topic:
        members.walk_shares(walk)
    elif about.group:
        members.walk_restless(walk)
    elif about.partitions:
        brokers.walk_replica(walk)
    elif not about.nodes:
        for path in about.paths:
            brokers.walk_request(walk, path)


def _go_everywhere(walk: Walk) -> None:
    """Add what struck processes, and what each of them wrote last before it.

    It is what can be said of a violation whose subject leads nowhere.
    """
    nodes = walk.about.nodes or [node for node in walk.found.faults if "/" in node[1:]]
    for node in nodes:
        fault = walk.struck(node, walk.until)
        if fault is None:
            walk.say(walk.found.last(node, walk.until, wording.has_sentence), Weight.ACT)
            continue
        walk.behind(node, walk.until)
        wrote = [write for write in walk.found.writes_of(node) if write.event.seq < fault.seq]
        for write in wrote[-1:]:
            walk.write(write, Weight.CAUSE)
