"""Problems of a scenario file, as sentences from which its author can fix them."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

MOST_SHOWN = 10
LONGEST_VALUE = 60
MOST_COMPARED = 2_000
MOST_LISTED = 12


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: where it is, what stands there, and what was expected."""

    field: str
    message: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ScenarioError(ValueError):
    """A scenario cannot be used. Its text has a line for each problem."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.name = name
        self.problems = sorted(dict.fromkeys(problems), key=lambda problem: problem.line)
        lines = [
            f"{name}:{problem.line}: {problem}" if problem.line else f"{name}: {problem}"
            for problem in self.problems[:MOST_SHOWN]
        ]
        if len(self.problems) > MOST_SHOWN:
            lines.append(f"{name}: and {len(self.problems) - MOST_SHOWN} more problems")
        super().__init__("\n".join(lines))


def shown(value: Any) -> str:
    """A value as it stands in a sentence."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = repr(value[:LONGEST_VALUE]) if isinstance(value, str) else reprlib.repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def expected(value: Any, what: str, words: Iterable[str] = ()) -> str:
    """The sentence for a wrong value, with the nearest valid word."""
    return f"{shown(value)} is not {what}{nearest(value, words)}"


def not_just_one(**given: Any) -> str:
    """The problem unless exactly one of two fields is given; empty if there is none."""
    one, other = (f"`{name}`" for name in given)
    number = sum(value is not None for value in given.values())
    if number == 2:
        return f"has both {one} and {other}; expected only one of the two"
    return "" if number else f"needs either {one} or {other}"


def either(words: Iterable[str]) -> str:
    """Words as a sentence lists alternatives: this, that or the other."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def nearest(value: Any, words: Iterable[str]) -> str:
    """A hint at the word that was probably meant, or at all there are."""
    known = list(islice(words, MOST_COMPARED))
    hint = did_you_mean(value, known)
    if hint or not known:
        return hint
    more = ", …" if len(known) > MOST_LISTED else ""
    return f"; expected one of: {', '.join(known[:MOST_LISTED])}{more}"


def did_you_mean(value: Any, words: Iterable[str]) -> str:
    """A hint at the nearest valid word, if one is close."""
    near = get_close_matches(str(value)[:LONGEST_VALUE], words, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
