"""Delivery guarantees: how many messages to a group may be lost, and how many repeated."""

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
"""Semantics -> how many may be lost and repeated; None for any number."""


@dataclass(frozen=True, slots=True)
class DeliveryGuarantee:
    """The delivery guarantee of some topics for a group."""

    semantics: Semantics
    topics: tuple[str, ...]
    most_lost: int | None = None
    """The number that may be lost, whatever the semantics."""
    most_repeated: int | None = None
    most_refused: int | None = None
    """The number that may be refused. A refused message is reported to its sender, so it is not
    lost; but without faults none should be refused."""

    @property
    def limits(self) -> tuple[int | None, int | None, int | None]:
        """How many may be lost, how many repeated, and how many refused."""
        lost, repeated = LIMITS[self.semantics]
        return (
            lost if self.most_lost is None else self.most_lost,
            repeated if self.most_repeated is None else self.most_repeated,
            self.most_refused,
        )
