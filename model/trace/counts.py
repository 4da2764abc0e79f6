"""Counts of a run, by its trace."""

from __future__ import annotations

from collections import Counter
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace


def operations_in(trace: Trace) -> Counter[str]:
    """The number of requests of each kind of operation; a batch counts by its parts."""
    counts: Counter[str] = Counter()
    for event in trace.of_kind(EventKind.REQUEST):
        detail: Any = event.detail
        if detail["op"] != "pipelined":
            counts[detail["op"]] += 1
            continue
        shown = Counter(word for word, _ in detail["parts"])
        (usual, _), *_ = shown.most_common()
        counts.update(shown)
        counts[usual] += detail["number"] - len(
            detail["parts"]
        )  # a trace shows only the first operations of a batch
    return counts


def moves_in(trace: Trace) -> int:
    """How often a partition moved to another member than the one that fetched it last."""
    last: dict[tuple[str, str, str], str] = {}
    moves = 0
    for event in trace.of_kind(EventKind.FETCHING):
        if event.detail["does"] == "begins":
            place = (event.group, event.topic, event.partition)
            moves += last.get(place, event.node) != event.node
            last[place] = event.node
    return moves
