"""Policies by name: `random`, `pct:3`, `delay:2`, `fifo`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.schedule.pct import Pct
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.threads.errors import VirtualTimeError
from watchkeeper.virtual.threads.task import Policy


class PolicyKind(StrEnum):
    """How it is decided which thread runs."""

    FIFO = "fifo"
    RANDOM = "random"
    PCT = "pct"
    DELAY = "delay"


NUMBERS = {PolicyKind.PCT: ("depth", 3), PolicyKind.DELAY: ("bound", 1)}
"""Kind -> what its number is, and its default."""


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy, before it has a seed."""

    kind: PolicyKind
    number: int = 0

    @property
    def name(self) -> str:
        """As it is written on the command line."""
        return f"{self.kind}:{self.number}" if self.kind in NUMBERS else str(self.kind)

    def make(self, seed: int, *, steps: int) -> Policy:
        """The policy of a run with about so many steps."""
        if self.kind is PolicyKind.PCT:
            return Pct(seed, depth=self.number, steps=steps)
        if self.kind is PolicyKind.RANDOM:
            return RandomPolicy(seed)
        return FirstInFirstOut()


def parse_policy(text: str) -> PolicyChoice:
    """Read a policy's name; raises VirtualTimeError for anything else."""
    word, colon, number = text.partition(":")
    known = ", ".join(kind.value for kind in PolicyKind)
    try:
        kind = PolicyKind(word)
    except ValueError:
        raise VirtualTimeError(
            f"{text!r} is no policy; name one of {known}, as 'random' or 'pct:3'"
        ) from None
    if kind not in NUMBERS:
        if colon:
            raise VirtualTimeError(f"the policy {word!r} has no number, but here is {text!r}")
        return PolicyChoice(kind)
    what, default = NUMBERS[kind]
    if colon and (not number.isdigit() or int(number) < 1):
        raise VirtualTimeError(
            f"the {what} of {word!r} is a whole number from 1 on, not {number!r}"
        )
    return PolicyChoice(kind, int(number) if colon else default)
