"""What an experiment shows: what the design page says, beside what the simulation gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from watchkeeper.sim.disk.host_costs import MachineProfile

ABOUT = 1.5
"""By which factor a number may miss one that the page gives as about so much."""


@dataclass(frozen=True, slots=True)
class Said:
    """A number that the design page states, or that its statement amounts to."""

    how: Literal["about", "at least", "at most"]
    value: float

    def agrees(self, value: float) -> bool:
        """Whether a number is what was said."""
        if self.how == "at least":
            return value >= self.value
        if self.how == "at most":
            return value <= self.value
        return self.value / ABOUT <= value <= self.value * ABOUT


@dataclass(frozen=True, slots=True)
class Row:
    """One number."""

    what: str
    value: float
    unit: str
    said: Said | None = None
    """None where the page states nothing."""

    @property
    def agrees(self) -> bool | None:
        """Whether it is what the page says; None where that says nothing."""
        return None if self.said is None else self.said.agrees(self.value)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment has shown on one machine."""

    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """A statement of the design page, and what measures it."""

    name: str
    states: str
    """What the page says, in our words."""
    how: str
    """What is done."""
    measure: Callable[[MachineProfile], Outcome]


def about(value: float) -> Said:
    """The page says that it is about so much."""
    return Said("about", value)


def at_least(value: float) -> Said:
    """The page says that it is so much or more."""
    return Said("at least", value)


def at_most(value: float) -> Said:
    """The page says that it is no more than so much."""
    return Said("at most", value)


UNCHANGED = about(1)
"""The page says that something makes no difference."""


def shown(value: float) -> str:
    """A number with three digits that say something."""
    if abs(value) >= 999.5:
        digits = len(str(round(abs(value)))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}"


def shown_said(claimed: Said | None) -> str:
    """What the page says, in a cell; nothing where it says nothing."""
    if claimed is None:
        return ""
    word = {"about": "", "at least": "at least ", "at most": "at most "}[claimed.how]
    return word + shown(claimed.value)
