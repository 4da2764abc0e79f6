"""Profiles: from a file to the latencies of a simulation, and from a measurement to a file."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from model.measured import LEVELS, Distribution, Measured
from scenarios.problems import Problem, ScenarioError
from scenarios.profiles import (
    VERSION,
    MeasuredModel,
    ProfileModel,
    SimulationModel,
    ZooKeeperProfileModel,
    load_profile,
)
from scenarios.quantiles import DistributionModel, quantile_name
from sim.fitting import DEFAULTS, Fitted
from sim.profile import DEFAULT, Profile
from sim.streams import quantiles


@dataclass(frozen=True, slots=True)
class NamedProfile:
    """The latencies of a simulation, and the file that they come from."""

    source: str
    latencies: Profile

    @property
    def digest(self) -> str:
        """What tells these latencies from others."""
        return self.latencies.digest

    def to_json(self) -> dict[str, str]:
        """What a verdict says of it."""
        return {"file": self.source, "digest": self.digest}


def digest_of(profile: NamedProfile | None) -> str:
    """What a run's name says of its profile: nothing of the latencies that come along."""
    if profile is None or profile.latencies == DEFAULT:
        return ""
    return profile.digest


def profile_of(source: str | os.PathLike[str]) -> NamedProfile:
    """The profile that a file holds; ScenarioError where it holds none for ZooKeeper."""
    model = load_profile(source)
    name = os.fspath(source)
    if model.zookeeper is None:
        said = "has no section `zookeeper`, so there is nothing to simulate with"
        raise ScenarioError(name, [Problem("", said)])
    return NamedProfile(name, latencies(model.zookeeper.simulation))


def latencies(given: SimulationModel) -> Profile:
    """The default, with what is given in its place."""
    tables: dict[str, Any] = {
        name: quantiles(value) if isinstance(value, tuple) else value
        for name, value in given.given.items()
        if value is not None
    }
    return replace(DEFAULT, **tables)


# --- from a measurement ----------------------------------------------------------------


def profile_model(measured: Measured, fitted: Fitted, where: str, version: str) -> ProfileModel:
    """What a file says of a measurement."""
    section = ZooKeeperProfileModel(
        measured=MeasuredModel(
            at=present(),
            where=where,
            version=version,
            machine=machine(),
            servers=measured.servers,
            tick_us=measured.tick_us,
            session_timeout_us=measured.timeout_us,
            in_flight=measured.in_flight,
            crowd=measured.crowd,
            round_trips={name: told(one) for name, one in measured.round_trips.items()},
            batches={name: told(one) for name, one in measured.batches.items()},
            watch=told(measured.watch),
            write_to_watch=told(measured.write_to_watch),
            expiry=told(measured.expiry),
            after_tick=told(measured.after_tick),
        ),
        simulation=simulation_model(fitted),
        defaults=list(DEFAULTS),
    )
    return ProfileModel(watchkeeper_profile=VERSION, zookeeper=section, disk=None)


def simulation_model(fitted: Fitted) -> SimulationModel:
    """What a file says of the latencies that were found."""
    given = {
        name: named(value) if isinstance(value, tuple) else value
        for name in Fitted.__dataclass_fields__
        for value in [getattr(fitted, name)]
    }
    return SimulationModel.model_validate(given)


def named(anchors: tuple[tuple[float, int], ...]) -> dict[str, int]:
    """Quantiles by their names, as a file has them."""
    return {quantile_name(level): us for level, us in anchors}


def told(one: Distribution) -> DistributionModel:
    """What a file says of a distribution."""
    quantiles_us = named(tuple(zip(LEVELS, one.values_us, strict=True)))
    return DistributionModel.model_validate({"number": one.number, "quantiles": quantiles_us})


def present() -> str:
    """The present moment, as a file has it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def machine() -> str:
    """The machine that measured, in a few words."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {python}"
