"""What may be promised of the messages to a group: how many are lost, how many are repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Semantics = Literal["at most once", "at least once", "exactly once", "measured"]
LIMITS: dict[Semantics, tuple[int | None, int | None]] = {
    "at most once": (None, 0),
    "at least once": (0, None),
    "exactly once": (0, 0),
    "measured": (None, None),
}
"""How many may be lost, and how many repeated; None: however many."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised of the messages of some topics to a group."""

    semantics: Semantics
    topics: tuple[str, ...]
    most_lost: int | None = None
    """So many may be lost, whatever the semantics say."""
    most_repeated: int | None = None
    most_refused: int | None = None
    """So many may be refused. Whoever is refused knows it, so it is no loss; but where all is
    well it should not happen."""

    @property
    def limits(self) -> tuple[int | None, int | None, int | None]:
        """How many may be lost, how many repeated, and how many refused."""
        lost, repeated = LIMITS[self.semantics]
        return (
            lost if self.most_lost is None else self.most_lost,
            repeated if self.most_repeated is None else self.most_repeated,
            self.most_refused,
        )
