"""Compares shown output with real output, and takes real output over into a page.

A line `...` stands for what is left out. Spaces at the end of a line do not count, since
editors remove them, nor do the few things that differ between machines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher, unified_diff

LEFT_OUT = "..."

DIFFERS = (
    (re.compile(r"\bin \d+\.\d+s\b"), "in 0.00s"),
    (re.compile(r'("python": ?)"\d+\.\d+\.\d+"'), r'\1"3.x.y"'),
)
"""The wall clock of pytest, and the version of Python in the header of a trace."""


def normal(text: str) -> list[str]:
    """The lines of an output, without what differs between machines."""
    for pattern, instead in DIFFERS:
        text = pattern.sub(instead, text)
    return [line.rstrip() for line in text.rstrip().splitlines()]


def parts_of(shown: Sequence[str]) -> list[list[str]]:
    """What is shown between the lines that leave something out."""
    parts: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def is_same(shown: Sequence[str], real: Sequence[str]) -> bool:
    """Whether a page shows this output, perhaps with parts left out."""
    first, *others = parts_of(shown)
    if not others:
        return first == list(real)
    if list(real[: len(first)]) != first:
        return False
    at = len(first)
    *middle, last = others
    for part in middle:
        found = _find(part, real, at)
        if found is None:
            return False
        at = found + len(part)
    return len(real) - len(last) >= at and list(real[len(real) - len(last) :]) == last


def _find(part: Sequence[str], real: Sequence[str], at: int) -> int | None:
    for begins in range(at, len(real) - len(part) + 1):
        if list(real[begins : begins + len(part)]) == list(part):
            return begins
    return None


def difference(shown: Sequence[str], real: Sequence[str]) -> str:
    """How a page and an output differ."""
    return "\n".join(unified_diff(shown, real, "the page shows", "what comes out", lineterm=""))


def renewed(shown: Sequence[str], real: Sequence[str]) -> list[str]:
    """The same parts of a new output: each part at the place that is most like it."""
    first, *others = parts_of(shown)
    if not others:
        return list(real)
    lines = list(real[: len(first)])
    at = len(first)
    *middle, last = others
    for part in middle:
        places = range(at, max(len(real) - len(part) - len(last), at) + 1)
        begins = max(places, key=lambda place: (_likeness(part, real[place:]), -place))
        lines += [LEFT_OUT, *real[begins : begins + len(part)]]
        at = begins + len(part)
    return [*lines, LEFT_OUT, *real[len(real) - len(last) :]] if last else [*lines, LEFT_OUT]


def _likeness(part: Sequence[str], there: Sequence[str]) -> float:
    return sum(
        SequenceMatcher(None, expected, found, autojunk=False).ratio()
        for expected, found in zip(part, there, strict=False)
    )
