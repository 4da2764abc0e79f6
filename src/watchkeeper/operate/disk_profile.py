"""The disk's part of a profile: from a file to a simulated machine, and from a measurement."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

from model.measured_disk import MeasuredDisk
from scenarios.disk_profiles import DiskProfileModel, DiskSimulationModel, MeasuredDiskModel
from scenarios.problems import Problem, ScenarioError
from scenarios.profiles import VERSION, ProfileModel, load_profile
from sim.disk_fitting import OF_DEVICE, OF_MACHINE, FittedDisk, fit_disk, machine_with
from sim.machine import MachineProfile
from watchkeeper.profiles import machine, named, present, told


def machine_of_profile(source: str | os.PathLike[str]) -> MachineProfile:
    """The machine that a profile file describes; ScenarioError where it has no disk."""
    model = load_profile(source)
    name = os.fspath(source)
    if model.disk is None:
        said = "has no section `disk`; `watchkeeper calibrate --disk DIR` writes one"
        raise ScenarioError(name, [Problem("", said)])
    return machine_with(model.disk.simulation.given, name)


def disk_section(measured: MeasuredDisk, folder: Path) -> DiskProfileModel:
    """What a file says of a measurement, and of what follows from it."""
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
            read=told(measured.read),
            write=told(measured.write),
            sync=told(measured.sync),
        ),
        simulation=DiskSimulationModel.model_validate(given),
        defaults=sorted((OF_DEVICE | OF_MACHINE) - set(FittedDisk.__dataclass_fields__)),
    )


def together(new: ProfileModel, before: ProfileModel | None) -> ProfileModel:
    """What was measured now, with what a file said before of anything else."""
    if before is None:
        return new
    return ProfileModel(
        watchkeeper_profile=VERSION,
        zookeeper=new.zookeeper or before.zookeeper,
        disk=new.disk or before.disk,
    )
