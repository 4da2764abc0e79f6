"""Profile files: latencies of a ZooKeeper and a disk, and what codecs do; measured or by hand.

    watchkeeper_profile: 1
    zookeeper:
      measured: {...}       # the measurements, for people and for later comparison
      simulation: {...}     # the values that the simulation uses
      defaults: [...]       # what was not measured, and keeps its default
    disk:                   # the same for a disk and the way to it
    codecs: {gzip: {...}}   # how large compressed message sets are, and how fast codecs work

Each section may be absent. A file may state only what differs from the default. All times
are in microseconds, except where a name ends in `_ns`. Between two quantiles, values are
distributed uniformly.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, model_validator

from watchkeeper.scenarios.profiles.codecs import CodecsModel
from watchkeeper.scenarios.profiles.disk import DiskProfileModel
from watchkeeper.scenarios.profiles.quantiles import (
    DistributionModel,
    Duration,
    Quantiles,
    check_defaults,
    quantile_name,
)
from watchkeeper.scenarios.schema.fields import Model, Word
from watchkeeper.scenarios.schema.validation import checked
from watchkeeper.scenarios.text.document import LARGEST_FILE, Kind, read_document
from watchkeeper.scenarios.text.errors import Problem, ScenarioError

VERSION: Literal[1] = 1
PROFILE = Kind(
    "profile", "watchkeeper_profile, zookeeper, disk, codecs", "watchkeeper_profile and zookeeper"
)


class MeasuredModel(Model):
    """The measurements, with place and time."""

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
    write_to_watch: DistributionModel = Field(description="from its request to the event")
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
        """The fields that differ from the default."""
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
        check_defaults(self.defaults, self.simulation, "latency")
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
    disk: DiskProfileModel | None = Field(None, description="how long a disk takes")
    codecs: CodecsModel | None = Field(None, description="what codecs make of message sets")


def load_profile(name: str | os.PathLike[str]) -> ProfileModel:
    """Read a profile file; ScenarioError names the line of each mistake."""
    name = os.fspath(name)
    try:
        with open(name, "rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        message = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        if isinstance(error, IsADirectoryError):
            message = "is a folder; name a profile file"
        raise ScenarioError(name or "the name of a profile", [Problem("", message)]) from None
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
        return {key: _plain(item) for key, item in value.items()}
    return value


def save_profile(model: ProfileModel, path: Path) -> None:
    """Write a profile file atomically; OSError if that fails."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        fresh.write_text(profile_text(model), encoding="utf-8")
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
