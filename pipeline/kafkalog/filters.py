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

from watchkeeper.pipeline.kafkalog.logs import Log

OF_LOGS = ("topic", "broker", "partition")
"""Columns that are the same in all rows of a log."""
NEVER_NULL = (*OF_LOGS, "offset", "next_offset", "crc_ok")


class Wish(Struct, frozen=True):
    """The messages that a query wants."""

    values: tuple[tuple[str, frozenset[Any]], ...] = ()
    """Columns of logs, and the values that each may have."""
    low: int | None = None
    high: int | None = None
    """The first offset, and one past the last."""

    def has(self, log: Log) -> bool:
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
    """The result of pushing filters down."""

    wish: Wish
    left: tuple[Filter, ...]
    """The filters that Spark has to apply itself."""


def pushed(filters: Iterable[Filter]) -> Pushed:
    """Turn filters, all of which have to hold, into a selection.

    A filter on an offset selects entries. A wrapper holds messages with other offsets, so Spark
    applies the filter once more.
    """
    wish = Wish()
    left = []
    for condition in filters:
        column = ".".join(getattr(condition, "attribute", ()))
        if isinstance(condition, IsNotNull) and column in NEVER_NULL:
            continue
        values = _values(condition)
        if column in OF_LOGS and values is not None:
            wish = Wish((*wish.values, (column, values)), wish.low, wish.high)
            continue
        left.append(condition)
        if column == "offset":
            wish = wish.narrowed(*_range(condition))
    return Pushed(wish, tuple(left))


def _values(condition: Filter) -> frozenset[Any] | None:
    """The values that a filter allows; None for another kind of filter."""
    if isinstance(condition, EqualTo | EqualNullSafe):
        return frozenset([condition.value])
    return frozenset(condition.value) if isinstance(condition, In) else None


def _range(condition: Filter) -> tuple[int | None, int | None]:
    """From which offset on a filter wants messages, and up to which."""
    if isinstance(condition, GreaterThanOrEqual):
        return condition.value, None
    if isinstance(condition, GreaterThan):
        return condition.value + 1, None
    if isinstance(condition, LessThan):
        return None, condition.value
    if isinstance(condition, LessThanOrEqual):
        return None, condition.value + 1
    values = _values(condition)
    if values and None not in values:
        return min(values), max(values) + 1
    return None, None
