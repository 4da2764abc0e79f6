"""Where an application keeps its results together with its place: both or neither.

The pages' way to handle each message exactly once: the offset is stored with the result, in
one transaction. Whoever stores says where it believes the group stands; if somebody else has
come further meanwhile, nothing is stored. So a member that is out of date does no harm.
"""

from __future__ import annotations

from model.asks import Partition
from model.delivery import Lot
from model.operations import Ask


class PlaceOf(Ask[int | None], frozen=True):
    """Where a group stands in a partition, by its results; None if there are none."""

    group: str
    partition: Partition


class StoreResult(Ask[bool], frozen=True):
    """Store what was made of messages together with the place behind them, in one step.

    False, and nothing is stored, if the group does not stand at `expected` (None: nowhere).
    """

    group: str
    partition: Partition
    expected: int | None
    place: int
    lots: tuple[Lot, ...]
    """The messages; the result here is that they were counted."""
