"""Words in pictures: their order, their length, and how they keep out of each other's way."""

from __future__ import annotations

import re
from collections.abc import Sequence

_DIGITS = re.compile(r"(\d+)")


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts names with numbers in them as people do: 2 before 10."""
    parts = _DIGITS.split(text)
    return tuple(
        (0, int(part), part) if at % 2 else (1, 0, part) for at, part in enumerate(parts) if part
    )


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters; what is cut shows as an ellipsis."""
    return text if len(text) <= most else text[: max(most - 1, 0)] + "…"


def levels(places: Sequence[tuple[float, float]], most: int) -> list[int | None]:
    """Put labels on levels so that none covers another: for each its level, from 0.

    A place is where a label begins and ends. Labels come in the order of their beginnings;
    one that finds no level free within `most` is left out (None).
    """
    free_from = [float("-inf")] * most
    found: list[int | None] = []
    for begins, ends in places:
        level = next((at for at in range(most) if free_from[at] <= begins), None)
        if level is not None:
            free_from[level] = ends
        found.append(level)
    return found


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: 1 gap, 2 gaps, 1,000 gaps."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[str]) -> str:
    """Words as a sentence has them: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
