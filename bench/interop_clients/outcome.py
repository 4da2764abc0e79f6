"""What a row of the table says: an action of a client has passed, has failed, or was skipped."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple


class Skipped(Exception):
    """What an action needs is missing here."""


class Action(NamedTuple):
    """One row: a client, what it does, and the function that does it and says what came of it."""

    client: str
    name: str
    run: Callable[[], str]


class Outcome(NamedTuple):
    """An action that was run."""

    client: str
    action: str
    word: str
    """passed, failed or skipped."""
    detail: str
    took_s: float


def run(action: Action) -> Outcome:
    """Run an action. An error of it fails that row only."""
    began_s = perf_counter()
    try:
        word, detail = "passed", action.run()
    except Skipped as why:
        word, detail = "skipped", str(why)
    except Exception as error:
        word, detail = "failed", f"{type(error).__name__}: {error}"
    first_line = " ".join(detail.split())[:160]
    return Outcome(action.client, action.name, word, first_line, perf_counter() - began_s)


def expect(found: object, expected: object, what: str) -> None:
    """Fail unless what was found is what was expected."""
    if found != expected:
        raise AssertionError(f"{what}: {found}; expected {expected}")
