"""Which runs are analysed: the folders that are named, and what stands in them beside traces."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model.plan import Plan
from model.signatures import signature_of
from model.trace import Header
from model.verdicts import Finding, Property, Verdict
from pipeline.analysis.events import read_header
from pipeline.analysis.runs import Run, Said
from pipeline.sweeps.store import MANIFEST, RUNS, TRACES, Store
from pipeline.sweeps.summing import rows_of
from scenarios import ScenarioError, load, shipped
from watchkeeper.endings import USAGE, Stop
from watchkeeper.folder import TRACE, VERDICT
from watchkeeper.sweep_grid import SCENARIOS

SWEPT = ["run_id", "verdict", "fingerprint", "properties"]


@dataclass(slots=True)
class Gathered:
    """What was found in the folders."""

    runs: list[Run] = field(default_factory=list)
    signatures: dict[str, str] = field(default_factory=dict)
    """Run -> in which way it failed."""
    sweeps: list[Path] = field(default_factory=list)
    """Folders with the tables of sweeps."""
    without_trace: list[Path] = field(default_factory=list)
    """Folders with a verdict, but without a trace."""


def gathered(places: tuple[Path, ...]) -> Gathered:
    """Look into folders of runs, of sweeps, or of many of these; Stop where there is no run."""
    found = Gathered()
    plans = Plans()
    for place in places:
        if not place.exists():
            raise Stop(USAGE, f"there is no {place}; expected the folder of a run, or of a sweep")
        for home in sorted({one.parent for one in place.rglob(MANIFEST)}):
            found.sweeps.append(home.resolve() / RUNS)
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
            said = _verdict(path.parent)
            found.runs.append(_run(name, path, header, said, plans))
            found.signatures[name] = signature_of(_findings(said))
        else:
            if sweep not in swept:
                swept[sweep] = _rows(sweep)
            row = swept[sweep].get(header.run_id)
            found.runs.append(_swept(name, path, header, row, sweep, plans))
    if place.is_dir():
        found.without_trace += sorted(
            one.parent for one in place.rglob(VERDICT) if not (one.parent / TRACE).exists()
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
    """What stands in the verdict beside a trace; nothing where there is none."""
    path = home / VERDICT
    try:
        said: dict[str, Any] = json.loads(path.read_text())
        if not isinstance(said["properties"], list):
            raise ValueError("its properties are no list")
        return said
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Stop(
            USAGE, f"{path} is not the verdict of a run ({error}); remove it, or run that again"
        ) from None


def _run(name: str, path: Path, header: Header, said: dict[str, Any], plans: Plans) -> Run:
    command = said.get("command", "")
    plan, why = plans.of(header, _source(command, header))
    return Run(
        name,
        str(path.resolve()),
        header,
        said.get("fingerprint"),
        said.get("verdict"),
        tuple(
            Said(one["name"], one["verdict"], one["counts"], one["evidence"])
            for one in said.get("properties", ())
        ),
        command,
        False,
        plan,
        why,
    )


def _findings(said: dict[str, Any]) -> Iterator[Finding]:
    for one in said.get("properties", ()):
        claim = Property(one["name"], one["kind"], "")
        yield Finding(claim, Verdict(one["verdict"]), one["evidence"], counts=one["counts"])


def _source(command: str, header: Header) -> str:
    """The scenario of a run, by the command that runs it again."""
    words = shlex.split(command)
    if "--zookeeper" in words or not command.startswith("watchkeeper run "):
        return "" if command else header.scenario
    return words[2]


# --- runs of sweeps --------------------------------------------------------------------


def _sweep_of(path: Path) -> Path | None:
    """The folder of the sweep that kept a trace, if one did."""
    home = path.parent.parent
    return home.parent if home.name == TRACES and (home.parent / MANIFEST).exists() else None


def _rows(sweep: Path) -> dict[str, dict[str, Any]]:
    """What the tables of a sweep say of the runs whose traces it kept."""
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
    sweep: Path,
    plans: Plans,
) -> Run:
    changed = sweep / SCENARIOS / f"{header.scenario}.yaml"
    source = str(changed) if changed.exists() else header.scenario
    plan, why = plans.of(header, source)
    said = [] if row is None else row["properties"]
    return Run(
        name,
        str(path.resolve()),
        header,
        None if row is None else row["fingerprint"],
        None if row is None else row["verdict"],
        tuple(
            Said(claim, one["verdict"], one["counts"], one["evidence"] or "", one["at_us"])
            for claim, one in said
        ),
        f"watchkeeper run {shlex.quote(source)} --variant {header.variant} --seed {header.seed}",
        True,
        plan,
        why,
    )


# --- plans -----------------------------------------------------------------------------


class Plans:
    """The plans of runs, each read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], tuple[Plan | None, str]] = {}

    def of(self, header: Header, source: str) -> tuple[Plan | None, str]:
        """The plan that was run, or why it is not known."""
        key = (source, header.scenario, header.variant)
        if key not in self._known:
            self._known[key] = _plan(*key)
        return self._known[key]


def _plan(source: str, name: str, variant: str) -> tuple[Plan | None, str]:
    if not source:
        return None, "what it ran cannot be run again by a command"
    if source not in shipped() and not Path(source).is_file():
        return None, f"its scenario {source} is not here"
    try:
        plan = load(source).plan(variant)
    except ScenarioError as error:
        return None, f"its scenario {source} cannot be read ({error.problems[0].said})"
    if plan.name != name:
        return None, f"{source} is now the scenario {plan.name}"
    return plan, ""
