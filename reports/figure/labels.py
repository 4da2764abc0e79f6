"""Labels in pictures: their length, their lines, and where they do not overlap."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=m?s\b)")


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters; an ellipsis marks the cut."""
    return text if len(text) <= most else text[: max(most - 1, 0)] + "…"


def levels(places: Sequence[tuple[float, float]], most: int) -> list[int | None]:
    """Put flags on levels so that they do not overlap.

    A flag's pole stands at the start of its place and reaches up to its level; its cloth reaches
    from there to the end of the place. So a flag flies above every flag whose pole stands under
    its cloth. One that would fly too high gets no level (None).
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


def free_place(
    begins: float, ends: float, width: float, taken: Sequence[tuple[float, float]]
) -> float | None:
    """A free position for a text of this width within an interval; None if there is none.

    Taken intervals come in ascending order; a line is an interval of no length.
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
