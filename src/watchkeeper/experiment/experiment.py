"""Which experiments run, and on which machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.console.suggestion import did_you_mean
from watchkeeper.experiment.apparatus.rows import Experiment
from watchkeeper.experiment.catalogue import EXPERIMENTS
from watchkeeper.operate.disk_profile import machine_of_profile, machine_with_settings
from watchkeeper.scenarios import ScenarioError
from watchkeeper.sim.disk.host_costs import MACHINES, MachineProfile


def chosen(names: Sequence[str]) -> Mapping[str, Experiment]:
    """Return the experiments of these names, or all; raises Stop for a name that is none."""
    for name in names:
        if name not in EXPERIMENTS:
            meant = did_you_mean(name, EXPERIMENTS)
            known = ", ".join(EXPERIMENTS)
            raise Stop(USAGE, f"no experiment has the name {name!r}.{meant} There are: {known}")
    return {name: EXPERIMENTS[name] for name in names or EXPERIMENTS}


def machine_of(*, machine: str, profile: Path | None, settings: Sequence[str]) -> MachineProfile:
    """Return the machine that the options describe; raises Stop for what no machine has."""
    try:
        found = MACHINES[machine] if profile is None else machine_of_profile(profile)
        return machine_with_settings(found, settings) if settings else found
    except ScenarioError as error:
        raise Stop(USAGE, str(error)) from None
