"""Which logs and offsets a query wants, from the filters that Spark pushes down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from pipeline.kafkalog.folders import LogFolder

OF_LOGS = ("topic", "broker", "partition")
"""Columns that are the same in all rows of a log."""
NEVER_NULL = (*OF_LOGS, "offset", "next_offset", "crc_ok")


class Wish(Struct, frozen=True):
    """What is wanted of the logs."""

    values: tuple[tuple[str, frozenset[Any]], ...] = ()
    """Columns of logs, and the values that each may have."""
    low: int | None = None
    high: int | None = None
    """From which offset on, and up to which, that one excluded."""

    def has(self, log: LogFolder) -> bool:
        """Whether rows of this log are wanted."""
        return all(getattr(log, column) in values for column, values in self.values)

    def narrowed(self, low: int | None = None, high: int | None = None) -> Wish:
        """The same, of fewer offsets."""
        if low is not None and self.low is not None:
            low = max(low, self.low)
        if high is not None and self.high is not None:
            high = min(high, self.high)
        return Wish(
            self.values,
            self.low if low is None else low,
            self.high if high is None else high,
        )


class Pushed(Struct, frozen=True):
    """What could be made of the filters."""

    wish: Wish
    left: tuple[Filter, ...]
    """Those that Spark has to apply itself, to what is read."""


def pushed(filters: Iterable[Filter]) -> Pushed:
    """Make a wish of filters, all of which have to hold.

    A filter on an offset decides which entries are read. In a wrapper there are messages
    with other offsets, so Spark applies it once more.
    """
    wish = Wish()
    left = []
    for one in filters:
        column = ".".join(getattr(one, "attribute", ()))
        if isinstance(one, IsNotNull) and column in NEVER_NULL:
            continue
        values = _values(one)
        if column in OF_LOGS and values is not None:
            wish = Wish((*wish.values, (column, values)), wish.low, wish.high)
            continue
        left.append(one)
        if column == "offset":
            wish = wish.narrowed(*_range(one))
    return Pushed(wish, tuple(left))


def _values(one: Filter) -> frozenset[Any] | None:
    """The values that a filter allows; None if it is of another kind."""
    if isinstance(one, EqualTo | EqualNullSafe):
        return frozenset([one.value])
    return frozenset(one.value) if isinstance(one, In) else None


def _range(one: Filter) -> tuple[int | None, int | None]:
    """From which offset on a filter wants messages, and up to which."""
    if isinstance(one, GreaterThanOrEqual):
        return one.value, None
    if isinstance(one, GreaterThan):
        return one.value + 1, None
    if isinstance(one, LessThan):
        return None, one.value
    if isinstance(one, LessThanOrEqual):
        return None, one.value + 1
    values = _values(one)
    if values and None not in values:
        return min(values), max(values) + 1
    return None, None
