"""Distributions of durations in files, as quantiles.

A distribution is a mapping from `p0`, the minimum, to `p100`, the maximum, with any
quantiles between them. All values are whole microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from watchkeeper.scenarios.schema.fields import Model
from watchkeeper.scenarios.text.errors import shown

LONGEST_US = 3_600_000_000
MOST_ANCHORS = 257
_LEVEL = re.compile(r"p([0-9]{1,3}(?:\.[0-9]{1,3})?)")

Anchors = tuple[tuple[float, int], ...]
"""Per cent and value, from 0 to 100."""


def quantile_name(level: float) -> str:
    """A quantile as a file names it: `p50`, `p99.9`."""
    return f"p{level:g}"


def parse_quantiles(value: object, least_us: int = 0) -> Anchors:
    """Read a mapping of quantiles; ValueError otherwise."""
    if not isinstance(value, Mapping):
        raise ValueError("is not a mapping of quantiles, such as {p0: 50, p50: 75, p100: 400}")
    if not 2 <= len(value) <= MOST_ANCHORS:
        raise ValueError(f"has {len(value)} quantiles; expected 2 to {MOST_ANCHORS}, p0 and p100")
    anchors = sorted((_level(name), _value(name, us, least_us)) for name, us in value.items())
    if anchors[0][0] != 0 or anchors[-1][0] != 100:
        raise ValueError("does not go from p0, the least, to p100, the most")
    for (low, low_us), (high, high_us) in pairwise(anchors):
        if low == high:
            raise ValueError(f"has {quantile_name(low)} twice")
        if low_us > high_us:
            raise ValueError(
                f"falls from {low_us} at {quantile_name(low)} to {high_us} at "
                f"{quantile_name(high)}; quantiles never fall"
            )
    return tuple(anchors)


def _level(name: object) -> float:
    found = _LEVEL.fullmatch(name) if isinstance(name, str) else None
    if found is None or float(found[1]) > 100:
        raise ValueError(f"has the quantile {shown(name)}; expected names from p0 to p100")
    return float(found[1])


def _value(name: object, us: object, least_us: int) -> int:
    if type(us) is not int or not least_us <= us <= LONGEST_US:
        raise ValueError(
            f"has {shown(us)} at {name}; expected whole microseconds, {least_us} to {LONGEST_US}"
        )
    return us


def _of_either_sign(value: object) -> Anchors:
    return parse_quantiles(value, -LONGEST_US)


_SCHEMA = WithJsonSchema({"type": "object", "additionalProperties": {"type": "integer"}})
Quantiles = Annotated[Anchors, BeforeValidator(parse_quantiles), _SCHEMA]
Differences = Annotated[Anchors, BeforeValidator(_of_either_sign), _SCHEMA]
Duration = Annotated[int, Field(ge=0, le=LONGEST_US)]


class DistributionModel(Model):
    """How long something took."""

    number: int = Field(ge=1, description="how often it was measured")
    quantiles: Differences = Field(description="how long it took; before or after, if negative")


def check_defaults(defaults: Iterable[str], simulation: Model, what: str) -> None:
    """Check that each name in `defaults` is a field, and absent; ValueError otherwise."""
    for name in defaults:
        if name not in type(simulation).model_fields:
            raise ValueError(f"has {shown(name)} among its defaults, which is no {what}")
        if name in simulation.model_fields_set:
            raise ValueError(f"gives {name} and says that it stays as it is")
