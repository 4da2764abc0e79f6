"""The selection of what is drawn of a large run, and the sentence on the rest.

Nothing is left out silently: a caller that draws less gets a sentence to put above the picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from watchkeeper.model.properties.verdicts import counted, seconds
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


def first_items(
    items: Sequence[T], most: int, *, noun: Callable[[T], str], at_us: Callable[[T], int]
) -> tuple[Sequence[T], str]:
    """The first items in order of time, and the sentence on the others."""
    if len(items) <= most:
        return items, ""
    missing = Counter(noun(item) for item in items[most:])
    sorts = [f"{sort} {number:,}" for sort, number in sorted(missing.items())]
    return items[:most], (
        f"{most:,} of {counted(len(items), 'item')} are drawn: those that begin before "
        f"{seconds(at_us(items[most]))}. Not drawn, from then on: {listed(sorts)}."
    )
