"""What of a large run is drawn, and the sentence that says what is not.

Nothing is ever left out silently: whoever chooses fewer than there are gets a sentence
to put above the picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from model.verdicts import counted, seconds
from reports.labels import listed

T = TypeVar("T")


class Weight(NamedTuple):
    """What speaks for a row of a picture, and what it costs."""

    urgency: tuple[int, ...]
    """Compared as tuples are; the greatest is drawn first."""
    marks: int
    """How many things have to be drawn for it."""


def choose_rows(weights: Sequence[Weight], *, most_rows: int, most_marks: int) -> list[int]:
    """Choose rows, the most urgent first, until there is no room; they come in their order.

    Rows of equal urgency are taken from the top. One row is always taken.
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
    """The first items in order of time, and what to say of the others."""
    if len(items) <= most:
        return items, ""
    missing = Counter(noun(item) for item in items[most:])
    sorts = [f"{sort} {number:,}" for sort, number in sorted(missing.items())]
    return items[:most], (
        f"{most:,} of {counted(len(items), 'item')} are drawn: those that begin before "
        f"{seconds(at_us(items[most]))}. Not drawn, from then on: {listed(sorts)}."
    )
