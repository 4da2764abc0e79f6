"""Profiles: from a file to the latencies of a simulation, and from a measurement to a file."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from watchkeeper.api.named_profile import NamedProfile
from watchkeeper.model.calibration.latency import LEVELS, Distribution, Measured
from watchkeeper.scenarios.profiles.codecs import CodecsModel
from watchkeeper.scenarios.profiles.profile import (
    VERSION,
    MeasuredModel,
    ProfileModel,
    SimulationModel,
    ZooKeeperProfileModel,
    load_profile,
)
from watchkeeper.scenarios.profiles.quantiles import DistributionModel, quantile_name
from watchkeeper.scenarios.text.errors import Problem, ScenarioError
from watchkeeper.sim.calibration.fit_latency import DEFAULTS, Fitted
from watchkeeper.sim.engine.latency_profile import DEFAULT, CodecProfile, Profile
from watchkeeper.sim.engine.random_streams import quantiles


def profile_of(source: str | os.PathLike[str]) -> NamedProfile:
    """Return the profile in a file; raise ScenarioError if a simulation takes nothing from it."""
    model = load_profile(source)
    name = os.fspath(source)
    if model.zookeeper is None and model.codecs is None:
        message = "has no section `zookeeper` or `codecs`, so there is nothing to simulate with"
        raise ScenarioError(name, [Problem("", message)])
    text = Path(name).read_text(encoding="utf-8")
    found = latencies(model.zookeeper.simulation) if model.zookeeper is not None else DEFAULT
    return NamedProfile(name, with_codecs(found, model.codecs), text)


def with_codecs(profile: Profile, given: CodecsModel | None) -> Profile:
    """Return a profile with the given codecs in place of its own."""
    fields = {} if given is None else given.model_dump(exclude_none=True)
    codecs: dict[str, Any] = {name: CodecProfile(**codec) for name, codec in fields.items()}
    return replace(profile, **codecs)


def latencies(given: SimulationModel) -> Profile:
    """Return the default latencies with the given ones in their place."""
    tables: dict[str, Any] = {
        name: quantiles(value) if isinstance(value, tuple) else value
        for name, value in given.given.items()
        if value is not None
    }
    return replace(DEFAULT, **tables)


# --- from a measurement ----------------------------------------------------------------


def profile_model(measured: Measured, fitted: Fitted, where: str, version: str) -> ProfileModel:
    """Return the fields of a file for a measurement."""
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
            round_trips={
                name: distribution_model(distribution)
                for name, distribution in measured.round_trips.items()
            },
            batches={
                name: distribution_model(distribution)
                for name, distribution in measured.batches.items()
            },
            watch=distribution_model(measured.watch),
            write_to_watch=distribution_model(measured.write_to_watch),
            expiry=distribution_model(measured.expiry),
            after_tick=distribution_model(measured.after_tick),
        ),
        simulation=simulation_model(fitted),
        defaults=list(DEFAULTS),
    )
    return ProfileModel(watchkeeper_profile=VERSION, zookeeper=section, disk=None, codecs=None)


def simulation_model(fitted: Fitted) -> SimulationModel:
    """Return the fields of a file for the fitted latencies."""
    given = {
        name: named(value) if isinstance(value, tuple) else value
        for name in Fitted.__dataclass_fields__
        for value in [getattr(fitted, name)]
    }
    return SimulationModel.model_validate(given)


def named(anchors: tuple[tuple[float, int], ...]) -> dict[str, int]:
    """Return the quantiles by their names, as in a file."""
    return {quantile_name(level): us for level, us in anchors}


def distribution_model(distribution: Distribution) -> DistributionModel:
    """Return the fields of a file for a distribution."""
    quantiles_us = named(tuple(zip(LEVELS, distribution.values_us, strict=True)))
    return DistributionModel.model_validate(
        {"number": distribution.number, "quantiles": quantiles_us}
    )


def present() -> str:
    """Return the present time in the form of a file."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def machine() -> str:
    """Return a few words on the measuring machine."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {python}"
