"""What a row of the table says: an action of a client has passed, has failed, or was skipped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


class Rows(ABC):
    """Rows on servers that the first row starts; without them the others are skipped."""

    client = "Kafka"
    """The first column of the rows."""
    _has_started = False

    @abstractmethod
    def actions(self) -> Iterator[Action]:
        """What is done, in this order."""

    @abstractmethod
    def end(self) -> None:
        """End every process."""

    @contextmanager
    def ending(self) -> Iterator[None]:
        """End every process after the block."""
        try:
            yield
        finally:
            self.end()

    def first_action(self, name: str, start: Callable[[], str]) -> Action:
        """The row that starts the servers."""

        def starting() -> str:
            said = start()
            self._has_started = True
            return said

        return Action(self.client, name, starting)

    def action(self, name: str, run: Callable[..., str], *arguments: object) -> Action:
        """A row that needs the servers."""

        def running() -> str:
            if not self._has_started:
                raise Skipped("its servers have not started")
            return run(*arguments)

        return Action(self.client, name, running)


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
