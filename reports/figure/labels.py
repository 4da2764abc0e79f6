"""Words in pictures: their order, their length, and how they keep out of each other's way."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_DIGITS = re.compile(r"(\d+)")
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=m?s\b)")


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
    """Put flags on levels, so that neither cloths nor poles get in each other's way.

    A flag's pole stands where its place begins and reaches from below up to its level; its
    cloth reaches from there to where the place ends. So a flag has to fly above all whose
    poles stand under its cloth. One that would have to fly too high gets no level (None).
    """
    found: list[int | None] = [None] * len(places)
    for at in sorted(range(len(places)), key=lambda at: (places[at][0], at), reverse=True):
        begins, ends = places[at]
        under = [
            level
            for (pole, _), level in zip(places, found, strict=True)
            if level is not None and begins <= pole < ends
        ]
        level = max(under, default=-1) + 1
        found[at] = level if level < most else None
    return found


def listed(words: Sequence[str]) -> str:
    """Words as a sentence has them: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def free_place(
    begins: float, ends: float, width: float, taken: Sequence[tuple[float, float]]
) -> float | None:
    """Where in a stretch a text of this width stands clear of what is taken, if anywhere.

    What is taken comes in ascending order; a line is a stretch that ends where it begins.
    """
    at = begins
    for first, last in taken:
        if last > at and first < at + width:
            at = last
    return at if at + width <= ends else None


def wrapped(text: str, width: float, width_of: Callable[[str], float]) -> list[str]:
    """A text as lines that are not wider than this, broken between words.

    A number stays with its unit.
    """
    lines = [""]
    for word in _BEFORE_UNIT.sub("\u00a0", text).split(" "):
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and width_of(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
