"""The disk's part of a profile: from a file to a simulated machine, and from a measurement."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from watchkeeper.api.profile import distribution_model, machine, named, present
from watchkeeper.model.calibration.disk import MeasuredDisk
from watchkeeper.scenarios.profiles.disk import (
    DiskProfileModel,
    DiskSimulationModel,
    MeasuredDiskModel,
)
from watchkeeper.scenarios.profiles.profile import PROFILE, VERSION, ProfileModel, load_profile
from watchkeeper.scenarios.schema.validation import checked
from watchkeeper.scenarios.text.document import read_document
from watchkeeper.scenarios.text.errors import Problem, ScenarioError
from watchkeeper.sim.calibration.fit_disk import (
    OF_DEVICE,
    OF_MACHINE,
    FittedDisk,
    fit_disk,
    machine_with,
)
from watchkeeper.sim.disk.host_costs import MachineProfile


def machine_of_profile(source: str | os.PathLike[str]) -> MachineProfile:
    """The machine that a profile file describes; ScenarioError where it has no disk."""
    model = load_profile(source)
    name = os.fspath(source)
    if model.disk is None:
        message = "has no section `disk`; `watchkeeper calibrate --disk DIR` writes one"
        raise ScenarioError(name, [Problem("", message)])
    return machine_with(model.disk.simulation.given, name)


def machine_with_settings(usual: MachineProfile, settings: Sequence[str]) -> MachineProfile:
    """A machine with figures that are given as `FIGURE=VALUE`; ScenarioError names a mistake."""
    for text in settings:
        if "=" not in text:
            raise ScenarioError(
                "--set", [Problem("", f"{text!r} has no `=`; write FIGURE=VALUE")]
            )
    lines = "".join(f"{text.replace('=', ': ', 1)}\n" for text in settings)
    figures = checked(read_document("--set", lines.encode(), PROFILE), DiskSimulationModel)
    name = f"{usual.name} with {', '.join(settings)}"
    return machine_with(figures.given, name, usual=usual)


def disk_section(measured: MeasuredDisk, folder: Path) -> DiskProfileModel:
    """Return the fields of a profile file for a measurement and its fit."""
    figures = asdict(fit_disk(measured))
    given = {
        name: named(value) if isinstance(value, tuple) else value
        for name, value in figures.items()
    }
    taken_over = [
        name
        for name in MeasuredDiskModel.model_fields
        if isinstance(getattr(measured, name, None), int)
    ]
    return DiskProfileModel(
        measured=MeasuredDiskModel(
            at=present(),
            folder=str(folder),
            machine=machine(),
            **{name: getattr(measured, name) for name in taken_over},
            read=distribution_model(measured.read),
            write=distribution_model(measured.write),
            sync=distribution_model(measured.sync),
        ),
        simulation=DiskSimulationModel.model_validate(given),
        defaults=sorted((OF_DEVICE | OF_MACHINE) - set(FittedDisk.__dataclass_fields__)),
    )


def together(new: ProfileModel, before: ProfileModel | None) -> ProfileModel:
    """The new measurements, with the other sections of an older file."""
    if before is None:
        return new
    return ProfileModel(
        watchkeeper_profile=VERSION,
        zookeeper=new.zookeeper or before.zookeeper,
        disk=new.disk or before.disk,
        codecs=new.codecs or before.codecs,
    )
