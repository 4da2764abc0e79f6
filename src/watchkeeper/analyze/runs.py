"""The runs to analyse: the given folders, and the verdicts and plans beside their traces."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from watchkeeper.api.folder import PROFILE, SCENARIO, TRACE, VERDICT
from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.trace.trace import Header
from watchkeeper.pipeline.analysis.facts.events import read_header
from watchkeeper.pipeline.analysis.runs import RecordedVerdict, Run
from watchkeeper.pipeline.sweeps.store import MANIFEST, RUNS, TRACES, Store
from watchkeeper.pipeline.sweeps.summary import rows_of
from watchkeeper.scenarios import ScenarioError, from_text, load, shipped
from watchkeeper.sweep.report import SUMMARY

RUN = "watchkeeper run "
"""How a command begins that repeats a run; a run of an own program has none."""
SWEPT = ["run_id", "verdict", "fingerprint", "properties"]


@dataclass(slots=True)
class Gathered:
    """The runs in the folders."""

    runs: list[Run] = field(default_factory=list)
    signatures: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Run -> its failure signatures."""
    known_limits: dict[str, dict[str, str]] = field(default_factory=dict)
    """Failure signature -> variant -> why no client of it can avoid that failure."""
    sweeps: list[Path] = field(default_factory=list)
    """Folders with the tables of sweeps."""
    without_trace: list[Path] = field(default_factory=list)
    """Folders with a verdict, but without a trace."""


def gathered(places: tuple[Path, ...]) -> Gathered:
    """Look into folders of runs, of sweeps, or of many of these; Stop where there is no run."""
    found = Gathered()
    plans = Plans()
    looked: set[Path] = set()
    for place in places:
        if not place.exists():
            raise Stop(USAGE, f"there is no {place}; expected the folder of a run, or of a sweep")
        if place.resolve() in looked:  # by another name, as runs/* names the latest run twice
            continue
        looked.add(place.resolve())
        for home in sorted({path.parent for path in place.rglob(MANIFEST)}):
            found.sweeps.append(home.resolve() / RUNS)
            _add_limits_of_sweep(home, found)
        _gather(place, found, plans)
    if not found.runs:
        alone = found.without_trace
        more = f"; {_names(alone)}: a verdict alone, as searches leave it" if alone else ""
        raise Stop(
            USAGE,
            f"{_names(list(places))}: no {TRACE} is in there; expected folders of runs, as run "
            f"and sweep leave them{more}",
        )
    return found


def _names(places: list[Path]) -> str:
    return ", ".join(map(str, places[:3])) + (" and others" if len(places) > 3 else "")


def _gather(place: Path, found: Gathered, plans: Plans) -> None:
    taken = {run.name for run in found.runs}
    swept: dict[Path, dict[str, dict[str, Any]]] = {}
    for path in sorted([place] if place.is_file() else place.rglob(TRACE)):
        header = read_header(path)
        name = _free_name(header.run_id, taken)
        sweep = _sweep_of(path)
        if sweep is None:
            recorded = _verdict(path.parent)
            found.runs.append(_run(name, path, header, recorded, plans))
            found.signatures[name] = tuple(recorded.get("signatures", ()))
            if recorded.get("known_limit"):
                for signature in found.signatures[name]:
                    limits = found.known_limits.setdefault(signature, {})
                    limits[header.variant] = recorded["known_limit"]
        else:
            if sweep not in swept:
                swept[sweep] = _rows(sweep)
            row = swept[sweep].get(header.run_id)
            found.runs.append(_swept(name, path, header, row, plans))
    if place.is_dir():
        found.without_trace += sorted(
            path.parent for path in place.rglob(VERDICT) if not (path.parent / TRACE).exists()
        )


def _free_name(name: str, taken: set[str]) -> str:
    """The name of a run; with a number where another folder holds a run of that name."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name}~{number}", number + 1
    taken.add(free)
    return free


# --- runs that were judged by themselves -----------------------------------------------


def _verdict(home: Path) -> dict[str, Any]:
    """Return the verdict beside a trace; empty if there is none."""
    path = home / VERDICT
    try:
        recorded: dict[str, Any] = json.loads(path.read_text())
        if not isinstance(recorded["properties"], list):
            raise ValueError("its properties are no list")
        return recorded
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Stop(
            USAGE, f"{path} is not the verdict of a run ({error}); remove it, or run that again"
        ) from None


def _run(name: str, path: Path, header: Header, recorded: dict[str, Any], plans: Plans) -> Run:
    command = recorded.get("command", "")
    plan, why = plans.of(header, path.parent)
    is_repeatable = header.world == "sim" and (not command or command.startswith(RUN))
    return Run(
        name,
        str(path.resolve()),
        header,
        recorded.get("fingerprint"),
        recorded.get("verdict"),
        tuple(
            RecordedVerdict(
                fields["name"], fields["verdict"], fields["counts"], fields["evidence"]
            )
            for fields in recorded.get("properties", ())
        ),
        command_of(header, path.parent) if plan is not None and is_repeatable else command,
        False,
        plan,
        why,
    )


def command_of(header: Header, home: Path) -> str:
    """The command that simulates a run again from what its folder holds, from anywhere."""
    kept, profile = home / SCENARIO, home / PROFILE
    source = header.scenario
    if kept.exists() and not _is_shipped(source, kept.read_text(encoding="utf-8")):
        source = str(kept.resolve())
    words = ["watchkeeper", "run", source, "--variant", header.variant]
    words += ["--seed", str(header.seed)]
    words += ["--profile", str(profile.resolve())] if profile.exists() else []
    return shlex.join(words)


def _is_shipped(name: str, text: str) -> bool:
    return name in shipped() and load(name).text == text


# --- runs of sweeps --------------------------------------------------------------------


def _sweep_of(path: Path) -> Path | None:
    """The folder of the sweep that kept a trace, if one did."""
    home = path.parent.parent
    return home.parent if home.name == TRACES and (home.parent / MANIFEST).exists() else None


def _add_limits_of_sweep(sweep: Path, found: Gathered) -> None:
    """Add the known limits in the summary of a sweep; a sweep under way has none yet."""
    path = sweep / SUMMARY
    if not path.exists():
        return
    try:
        failures = json.loads(path.read_text(encoding="utf-8"))["failures"]
        limits = {one["signature"]: dict(one["known_limits"]) for one in failures}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Stop(
            USAGE, f"{path} is not the summary of a sweep ({error}); run the sweep again"
        ) from None
    for signature, of_variants in limits.items():
        if of_variants:
            found.known_limits.setdefault(signature, {}).update(of_variants)


def _rows(sweep: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a sweep's tables for the runs whose traces it kept."""
    store = Store(sweep)
    manifest = store.manifest()
    assert manifest is not None, "there is one, or the folder would not be a sweep's"
    kept = {path.parent.name for path in (sweep / TRACES).glob(f"*/{TRACE}")}
    return {
        row["run_id"]: row
        for table in store.tables(manifest, SWEPT)
        for row in rows_of(table)
        if row["run_id"] in kept
    }


def _swept(
    name: str,
    path: Path,
    header: Header,
    row: dict[str, Any] | None,
    plans: Plans,
) -> Run:
    plan, why = plans.of(header, path.parent)
    recorded = [] if row is None else row["properties"]
    return Run(
        name,
        str(path.resolve()),
        header,
        None if row is None else row["fingerprint"],
        None if row is None else row["verdict"],
        tuple(
            RecordedVerdict(
                claim,
                fields["verdict"],
                fields["counts"],
                fields["evidence"] or "",
                fields["at_us"],
            )
            for claim, fields in recorded
        ),
        command_of(header, path.parent),
        True,
        plan,
        why,
    )


# --- plans -----------------------------------------------------------------------------


class Plans:
    """The plans of runs; each scenario is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], tuple[Plan | None, str]] = {}

    def of(self, header: Header, home: Path) -> tuple[Plan | None, str]:
        """The plan that was run, or why it is not known.

        A run's folder holds its scenario; a trace alone may be of one that is shipped.
        """
        kept = home / SCENARIO
        try:
            text = kept.read_text(encoding="utf-8")
        except FileNotFoundError:
            if header.scenario not in shipped():
                return None, f"{SCENARIO} is not beside its trace"
            text = load(header.scenario).text
        except (OSError, ValueError) as error:
            return None, f"{kept} cannot be read ({error})"
        key = (text, header.scenario, header.variant)
        if key not in self._known:
            self._known[key] = _plan(str(kept), *key)
        return self._known[key]


def _plan(place: str, text: str, name: str, variant: str) -> tuple[Plan | None, str]:
    try:
        plan = from_text(place, text).plan(variant)
    except ScenarioError as error:
        return None, f"its scenario {place} cannot be read ({error.problems[0].message})"
    if plan.name != name:
        return None, f"{place} is the scenario {plan.name}"
    return plan, ""
