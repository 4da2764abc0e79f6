"""Replays a run from its file."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from watchkeeper.virtual.schedule.recorded import Recorded
from watchkeeper.virtual.threads.errors import VirtualTimeError
from watchkeeper.virtual.world.folder import read_plan, read_schedule
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.report import failure_text
from watchkeeper.virtual.world.run import Case, run_once
from watchkeeper.virtual.world.simulated import CAMPAIGN, Violation


def replay(file: Path | str) -> Outcome:
    """Run a failing run again, and raise what it violates.

    Raises Violation as the run did, and VirtualTimeError for a file that cannot be read, for a
    test that is not there any more, and for a run that does not violate the property any more.
    """
    place = Path(file)
    value = read_replay(place)
    outcome = play(value, find_case(Path(value["file"]), value["test"]))
    violated = [finding.claim.name for finding in outcome.violated]
    if set(value["violates"]) & set(violated):
        case = find_case(Path(value["file"]), value["test"])
        raise Violation(failure_text(outcome, case, place.parent), outcome)
    raise VirtualTimeError(
        f"{place} violated {', '.join(value['violates'])} when it was written, and does not now: "
        "the program, kazoo or watchkeeper has changed since; run the test with all its seeds"
    )


def play(value: dict[str, Any], case: Case) -> Outcome:
    """Run what a replay file holds."""
    return run_once(
        case.until(value["until_s"]),
        Recorded(read_schedule(value["schedule"])),
        value["policy"],
        seed=value["seed"],
        plan=read_plan(value["plan"]),
    )


def read_replay(file: Path) -> dict[str, Any]:
    """The value of a replay file; raises VirtualTimeError for anything else."""
    try:
        value = json.loads(file.read_text())
        read_schedule(value["schedule"])
        read_plan(value["plan"])
        numbers = {"seed": int(value["seed"]), "until_s": float(value["until_s"])}
        return {**value, **numbers, "test": str(value["test"])}
    except OSError as error:
        raise VirtualTimeError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise VirtualTimeError(
            f"{file} is not a replay file of watchkeeper ({error}); a failing run writes one, "
            "named replay.json, into its folder"
        ) from None


def find_case(file: Path, name: str) -> Case:
    """The case of a decorated test; raises VirtualTimeError if there is none of that name."""
    module = load_module(file)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    campaign = getattr(found, CAMPAIGN, None)
    if campaign is None:
        tests = ", ".join(sorted(_tests_of(module))) or "no test"
        raise VirtualTimeError(
            f"{file} has no test {name!r} that is decorated by @simulated; it has {tests}"
        )
    case: Case = campaign[0]
    return case


def _tests_of(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if hasattr(value, CAMPAIGN)]


def load_module(file: Path) -> ModuleType:
    """Import a file of tests by its path; raises VirtualTimeError if it cannot be."""
    path = file.resolve()
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(path):
            return module
    if path.is_dir():
        raise VirtualTimeError(f"{file} is a folder; name a file of tests in it, as test_lock.py")
    if not path.is_file():
        raise VirtualTimeError(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise VirtualTimeError(f"{file} is no Python file; name a file of tests, as test_lock.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    # As for a script: the test may import what stands beside it.
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[path.stem]
        raise VirtualTimeError(
            f"{file} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module
