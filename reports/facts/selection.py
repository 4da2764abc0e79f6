"""The selection of what is drawn of a large run, and the sentence on the rest.

Nothing is left out silently: a caller that draws less gets a sentence to put above the picture.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from watchkeeper.model.properties.verdicts import counted, duration
from watchkeeper.reports.facts.names import listed

T = TypeVar("T")


class Weight(NamedTuple):
    """The urgency of a row of a picture, and its cost."""

    urgency: tuple[int, ...]
    """Compared as tuples are; the greatest is drawn first."""
    marks: int
    """The number of marks in it."""


def choose_rows(weights: Sequence[Weight], *, most_rows: int, most_marks: int) -> list[int]:
    """Choose the most urgent rows that fit, and return them in their order.

    Rows of equal urgency are taken from the top. At least one row is chosen.
    """
    by_urgency = sorted(range(len(weights)), key=lambda at: weights[at].urgency, reverse=True)
    kept: list[int] = []
    marks = 0
    for at in by_urgency[:most_rows]:
        marks += weights[at].marks
        if kept and marks > most_marks:
            break
        kept.append(at)
    return sorted(kept)


def nearest_items(
    items: Sequence[T],
    most: int,
    *,
    moments_us: Sequence[int],
    noun: Callable[[T], str],
    at_us: Callable[[T], int],
) -> tuple[Sequence[T], str]:
    """The items nearest to some moments, in their order, and the sentence on the others.

    Moments come in ascending order; without any, the begin of the run is the only one.
    """
    if len(items) <= most:
        return items, ""
    moments = moments_us or (0,)
    away = [_away(at_us(item), moments) for item in items]
    by_distance = sorted(range(len(items)), key=lambda at: away[at])
    kept, left_out = by_distance[:most], by_distance[most:]
    missing = Counter(noun(items[at]) for at in left_out)
    sorts = [f"{sort} {number:,}" for sort, number in sorted(missing.items())]
    nearest = duration(max((away[at] for at in kept), default=0))
    what = "a violation or an entry of the timeline" if moments_us else "the begin"
    return [items[at] for at in sorted(kept)], (
        f"{most:,} of {counted(len(items), 'item')} are drawn: those within {nearest} of {what}. "
        f"Not drawn, farther away: {listed(sorts)}."
    )


def _away(at_us: int, moments_us: Sequence[int]) -> int:
    """Return how far a moment is from the nearest one of some."""
    following = bisect_left(moments_us, at_us)
    return min(abs(at_us - near) for near in moments_us[max(following - 1, 0) : following + 1])
