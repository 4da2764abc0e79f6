"""Of which run it can be asked when its failure became inevitable."""

from __future__ import annotations

from pipeline.analysis.runs import Run
from watchkeeper.endings import USAGE, Stop


def checked(runs: list[Run], name: str) -> Run:
    """The run of this name; Stop where it cannot be simulated again, or does not fail."""
    run = next((one for one in runs if one.name == name), None)
    if run is None:
        names = ", ".join(one.name for one in runs[:5])
        raise Stop(USAGE, f"there is no run {name}; expected one of those given, such as {names}")
    if not run.violated:
        raise Stop(USAGE, f"{name} was not judged violated; name a run that fails")
    if run.header.world != "sim" or run.header.profile or run.plan is None:
        why = run.why_no_plan or "only simulated runs, without --profile, can be run again"
        raise Stop(USAGE, f"{name} cannot be run again up to some event: {why}")
    return run
