"""What is counted in a run, by its trace."""

from __future__ import annotations

from collections import Counter
from typing import Any

from model.trace import Trace


def operations_in(trace: Trace) -> Counter[str]:
    """How often each kind of operation was asked for; a batch counts by its parts."""
    counts: Counter[str] = Counter()
    for event in trace.of_kind("asks"):
        detail: Any = event.detail
        if detail["op"] != "pipelined":
            counts[detail["op"]] += 1
            continue
        shown = Counter(word for word, _ in detail["parts"])
        (usual, _), *_ = shown.most_common()
        counts.update(shown)
        counts[usual] += detail["number"] - len(detail["parts"])  # a trace shows the first ones
    return counts


def moves_in(trace: Trace) -> int:
    """How often a partition went over to another member than the one that had fetched it last."""
    last: dict[tuple[str, str, str], str] = {}
    moves = 0
    for event in trace.of_kind("fetching"):
        if event.detail["does"] == "begins":
            place = (event.group, event.topic, event.partition)
            moves += last.get(place, event.node) != event.node
            last[place] = event.node
    return moves
