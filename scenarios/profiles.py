"""Profile files: how long things take somewhere, measured or written by hand.

    watchkeeper_profile: 1
    zookeeper:
      measured: {...}       # what was measured, for people and for later comparison
      simulation: {...}     # what the simulation is to take for it
      defaults: [...]       # what was not measured, and stays as it is

A file may say no more than what is to differ from the default. All times are microseconds.
Quantiles are a mapping from `p0`, the least, to `p100`, the most, with whatever is known in
between; between two of them, values are equally likely.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from scenarios.checking import checked
from scenarios.fields import Model, Word
from scenarios.problems import Problem, ScenarioError, shown
from scenarios.reading import LARGEST_FILE, Kind, read_document

VERSION: Literal[1] = 1
PROFILE = Kind("profile", "watchkeeper_profile, zookeeper", "watchkeeper_profile and zookeeper")
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


class MeasuredModel(Model):
    """What was measured, where and when."""

    at: Word = Field(description="when, in UTC")
    where: Word = Field(description="`embedded`, or the addresses")
    version: Word = Field(description="the server's")
    machine: Word = Field(description="where it was measured from")
    servers: int = Field(ge=1, description="how many")
    tick_us: Duration = Field(description="ZooKeeper's tickTime")
    session_timeout_us: Duration = Field(description="of the sessions that expired")
    in_flight: int = Field(ge=1, description="requests of a pipelined batch")
    crowd: int = Field(ge=1, description="operations of a multi that fires watches")
    round_trips: dict[Word, DistributionModel] = Field(description="one at a time")
    batches: dict[Word, DistributionModel] = Field(description="many at once")
    watch: DistributionModel = Field(description="from the answer of a write to the event")
    write_to_watch: DistributionModel = Field(description="from asking for it to the event")
    expiry: DistributionModel = Field(description="from the end of the timeout")
    after_tick: DistributionModel = Field(description="from the end of the tick after that")


class SimulationModel(Model):
    """The latencies of a simulated ensemble, as far as they differ from the default."""

    hop: Quantiles | None = Field(None, description="from one process to another, one way")
    sync: Quantiles | None = Field(None, description="until a server's log is on its disk")
    read_us: Duration | None = Field(None, description="what a server spends on a read")
    write_us: Duration | None = Field(None, description="on a write")
    fire_us: Duration | None = Field(None, description="on firing a watch")
    reconnect: Quantiles | None = Field(
        None, description="until a client that lost its connection tries again"
    )
    break_spreads: Quantiles | None = Field(
        None, description="until everyone has noticed that the leader is gone"
    )
    election: Quantiles | None = Field(None, description="an election")
    restart: Quantiles | None = Field(
        None, description="until a server that was started can take part in one"
    )
    expiry_lateness: Quantiles | None = Field(
        None, description="from the end of a tick to the end of the sessions that were due"
    )
    wake_lag: Quantiles | None = Field(
        None, description="after a pause, how long a process believes what it believed"
    )
    stale_service: Quantiles | None = Field(
        None, description="how long a leader that was deposed while it stood still answers"
    )
    fetch: Quantiles | None = Field(None, description="a fetch, there and back, without its data")
    bytes_per_ms: int | None = Field(None, ge=1, le=10**9, description="of what is fetched")

    @property
    def given(self) -> dict[str, Any]:
        """What differs from the default."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class ZooKeeperProfileModel(Model):
    """How long ZooKeeper takes."""

    measured: MeasuredModel | None = Field(None, description="what was measured")
    simulation: SimulationModel = Field(description="what the simulation is to take for it")
    defaults: list[Word] = Field(
        default_factory=list, description="what was not measured and stays as it is"
    )

    @model_validator(mode="after")
    def _defaults_are_not_given(self) -> ZooKeeperProfileModel:
        given = self.simulation.model_fields_set
        for name in self.defaults:
            if name not in SimulationModel.model_fields:
                raise ValueError(f"has {shown(name)} among its defaults, which is no latency")
            if name in given:
                raise ValueError(f"gives {name} and says that it stays as it is")
        return self


def _of_this_version(value: object) -> object:
    if value != VERSION:
        raise ValueError(f"is not a version that can be read here; expected {VERSION}")
    return value


class ProfileModel(Model):
    """A profile file."""

    watchkeeper_profile: Annotated[Literal[1], BeforeValidator(_of_this_version)] = Field(
        description="the version of this form"
    )
    zookeeper: ZooKeeperProfileModel | None = Field(None, description="how long ZooKeeper takes")


def load_profile(name: str | os.PathLike[str]) -> ProfileModel:
    """Read a profile file; ScenarioError names the line of whatever is wrong."""
    name = os.fspath(name)
    try:
        with open(name, "rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        said = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise ScenarioError(name or "the name of a profile", [Problem("", said)]) from None
    return checked(read_document(name, raw, PROFILE), ProfileModel)


def profile_text(model: ProfileModel) -> str:
    """The text of a profile file."""
    plain = model.model_dump(mode="python", exclude_none=True)
    return str(yaml.safe_dump(_plain(plain), sort_keys=False, default_flow_style=None, width=98))


def _plain(value: Any) -> Any:
    """The same in the words of YAML: quantiles as a mapping."""
    if isinstance(value, tuple):
        return {quantile_name(level): us for level, us in value}
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return value


def save_profile(model: ProfileModel, path: Path) -> None:
    """Write a profile file, whole or not at all; OSError where that cannot be."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        fresh.write_text(profile_text(model), encoding="utf-8")
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
