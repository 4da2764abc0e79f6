"""A fault that a test has injected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic, sleep
from typing import Any

POLL_S = 0.01
WAIT_S = 10.0

Do = Callable[[str, Mapping[str, Any]], Any]
"""Carries out a verb of `model.ensemble.control`."""


class Fault:
    """What a fault has struck, and how to end it.

        with zookeeper.delay(0.5) as slow:
            ...
        assert slow.effects["messages delayed"] > 3

    A fault that has struck nothing has no effects: then the test says nothing about it.
    """

    def __init__(self, do: Do, verb: str, number: int) -> None:
        self._do = do
        self._verb = verb
        self._number = number

    def __repr__(self) -> str:
        return f"<{self._verb}: {self.effects or 'no effect'}>"

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def effects(self) -> dict[str, int]:
        """What it has struck until now, in words, and how often."""
        found: dict[str, int] = self._do("effects", {"fault": self._number})
        return found

    def wait(self, effect: str | None = None, *, timeout_s: float = WAIT_S) -> dict[str, int]:
        """Wait until it has struck, with this effect or any; returns its effects.

        Raises TimeoutError if that does not happen within `timeout_s`.
        """
        ends = monotonic() + timeout_s
        while not _has(effects := self.effects, effect):
            if monotonic() > ends:
                raise TimeoutError(
                    f"{self._verb} should have {effect or 'an effect'} within {timeout_s:g} s, "
                    f"but has {effects or 'none'}; let a client do what it is aimed at"
                )
            sleep(POLL_S)
        return effects

    def end(self) -> dict[str, int]:
        """End it: disarm, heal, resume or start what it struck; returns its effects."""
        effects: dict[str, int] = self._do("end", {"fault": self._number})
        return effects


def _has(effects: Mapping[str, int], effect: str | None) -> bool:
    """Whether there is this effect; any one for None."""
    return bool(effects) if effect is None else effect in effects
