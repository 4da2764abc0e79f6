"""What is wrong with a scenario file, said so that its author can mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

MOST_SHOWN = 10
LONGEST_VALUE = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what stands there, and what was expected."""

    field: str
    said: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.field}: {self.said}" if self.field else self.said


class ScenarioError(ValueError):
    """A scenario cannot be used. Its text has a line for each problem."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.name = name
        self.problems = sorted(problems, key=lambda problem: problem.line)
        lines = [
            f"{name}:{problem.line}: {problem}" if problem.line else f"{name}: {problem}"
            for problem in self.problems[:MOST_SHOWN]
        ]
        if len(self.problems) > MOST_SHOWN:
            lines.append(f"{name}: and {len(self.problems) - MOST_SHOWN} more problems")
        super().__init__("\n".join(lines))


def shown(value: Any) -> str:
    """A value as it can stand in a sentence."""
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def expected(value: Any, what: str, words: Iterable[str] = ()) -> str:
    """The sentence for a value that is not what it should be, with the nearest word."""
    return f"{shown(value)} is not {what}{nearest(value, words)}"


def nearest(value: Any, words: Iterable[str]) -> str:
    """A hint at the word that was probably meant, or at all there are."""
    known = list(words)
    if not known:
        return ""
    near = get_close_matches(str(value), known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    listed = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return f"; expected one of: {listed}"
