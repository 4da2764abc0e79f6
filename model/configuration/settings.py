"""Tables of settings of brokers: keys of Kafka, their ranges, and the fields that they set."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

INT32_MAX = 2**31 - 1
TRUTHS = {"true": True, "false": False}


class Setting(NamedTuple):
    """A setting: its key, the field that it sets, its range, and its meaning."""

    key: str
    field: str
    least: int
    most: int
    about: str
    unit: int = 1
    """The value of one unit of the key in the unit of the field."""


def number_of(row: Setting, value: Any) -> int:
    """Return the number of a setting; ValueError if it is none, or out of its range."""
    text = str(value)
    if not text.isdecimal() or not row.least <= int(text) <= row.most:
        raise ValueError(
            f"{row.key} is {value!r}; expected a whole number from {row.least} to {row.most}"
        )
    return int(text) * row.unit


def taken(rest: dict[str, Any], rows: Iterable[Setting]) -> dict[str, int]:
    """Take the settings of a table out of given ones; return the fields that they set.

    Raises ValueError, in a sentence, for an invalid value.
    """
    return {row.field: number_of(row, rest.pop(row.key)) for row in rows if row.key in rest}


def truth_taken(rest: dict[str, Any], key: str) -> bool:
    """Take a truth value out of given settings; ValueError if it is none."""
    value = rest.pop(key)
    found = TRUTHS.get(value, value)
    if type(found) is not bool:
        raise ValueError(f"{key} is {value!r}; expected true or false")
    return found


def ratio_taken(rest: dict[str, Any], key: str) -> float:
    """Take a number from 0 to 1 out of given settings; ValueError if it is none."""
    value = rest.pop(key)
    with suppress(ValueError, TypeError):
        found = float(value)
        if 0 <= found <= 1:
            return found
    raise ValueError(f"{key} is {value!r}; expected a number from 0 to 1, as in 0.5")
