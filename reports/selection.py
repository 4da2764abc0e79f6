"""What of a large run is drawn, and the sentence that says what is not.

Nothing is ever left out silently: whoever chooses fewer than there are gets a sentence
to put above the picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from model.verdicts import seconds
from reports.labels import counted, listed

T = TypeVar("T")


class Rated(NamedTuple):
    """How much a row of a picture matters, and how many marks it needs."""

    rank: int
    """0: it must be seen; the greater, the sooner it is left out."""
    marks: int


class Chosen(NamedTuple):
    """Which rows are drawn, in their order, and what is to be said of the others."""

    rows: tuple[int, ...]
    left_out: tuple[int, ...]
    """How many rows of each rank are not drawn."""


def choose_rows(rated: Sequence[Rated], *, most_rows: int, most_marks: int) -> Chosen:
    """Choose rows, by rank and then by order, until there is no room for the next one."""
    by_rank = sorted(range(len(rated)), key=lambda at: (rated[at].rank, at))
    kept: list[int] = []
    marks = 0
    for at in by_rank:
        marks += rated[at].marks
        if len(kept) >= most_rows or (marks > most_marks and kept):
            break
        kept.append(at)
    left_out = Counter(rated[at].rank for at in by_rank[len(kept) :])
    ranks = max((one.rank for one in rated), default=0) + 1
    return Chosen(tuple(sorted(kept)), tuple(left_out[rank] for rank in range(ranks)))


def rows_banner(drawn: int, total: int, left_out: Iterable[tuple[int, str]]) -> str:
    """What to say of partitions that are not drawn; nothing when all are.

    `left_out` says how many of what sort are missing.
    """
    if drawn == total:
        return ""
    sorts = [counted(number, sort, sort) for number, sort in left_out if number]
    return (
        f"{drawn:,} of {total:,} partitions are drawn. Not drawn: {listed(sorts)}. "
        "Counts in the heading are of all of them."
    )


def first_items(
    items: Sequence[T], most: int, *, noun: Callable[[T], str], at_us: Callable[[T], int]
) -> tuple[Sequence[T], str]:
    """The first items in order of time, and what to say of the others."""
    if len(items) <= most:
        return items, ""
    missing = Counter(noun(item) for item in items[most:])
    sorts = [counted(number, sort, sort) for sort, number in sorted(missing.items())]
    return items[:most], (
        f"{most:,} of {len(items):,} items are drawn: those that began before "
        f"{seconds(at_us(items[most]))}. Not drawn: {listed(sorts)} from then on."
    )
