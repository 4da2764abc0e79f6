"""Runs of a scenario: plan and run it, fill its folder, and draw its figures again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from watchkeeper.api.named_profile import NamedProfile, digest_of
from watchkeeper.api.result import Result
from watchkeeper.api.simulate import first_difference, judged, latencies_of, versions
from watchkeeper.console.exit import NOT_DETERMINISTIC, USAGE, Stop, cannot_write
from watchkeeper.console.progress import ProgressLine
from watchkeeper.console.signals import INTERRUPTED, INTERRUPTS
from watchkeeper.model.actor.program_errors import NotAnEffect, ProgramLoops
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.mutants.catalogue import variant_named
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.trace.trace import Event, Trace, named_run
from watchkeeper.reports import pictures_of
from watchkeeper.run import folder
from watchkeeper.run.index import write_index
from watchkeeper.run.live_run import HERE, Where, abortable, run_plan_live
from watchkeeper.scenarios import Scenario, ScenarioError, load
from watchkeeper.scenarios.overrides import changed
from watchkeeper.scenarios.text.errors import expected
from watchkeeper.scenarios.text.units import duration_text
from watchkeeper.sim.world import Interrupted
from watchkeeper.sim.world import simulate as simulate_plan


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished run, and the files in its folder."""

    result: Result
    home: Path
    files: list[str]
    missing: list[str]
    """The figures that were not drawn because of an interrupt."""

    @property
    def missing_text(self) -> str:
        """A message that names the missing figures and the command that draws them."""
        names = ", ".join(self.missing)
        command = f"watchkeeper report {shlex.quote(str(self.home))}"
        return f"{INTERRUPTED}: {names} not drawn; draw with: {command}"


def run(
    name: str,
    variant: str | None,
    seed: int,
    out: Path,
    *,
    world: str = "sim",
    pictures: bool,
    checks_determinism: bool,
    where: Where = HERE,
    profile: Path | None = None,
) -> Ran:
    """Run a scenario and fill its folder.

    Raises Stop, with a sentence, for every error of the user.
    """
    INTERRUPTS.raise_from_now_on()
    if checks_determinism and world != "sim":
        raise Stop(
            USAGE, "--check-determinism is for simulated runs: no two live runs are the same"
        )
    if profile is not None and world != "sim":
        raise Stop(USAGE, "--profile is for simulated runs: a live run takes as long as it takes")
    scenario, plan = planned(name, variant)
    named = read_profile(profile)
    run_id = named_run(plan.name, plan.variant, world, seed, digest_of(named))
    try:
        home = folder.prepare(out, run_id)
        if world == "sim":
            result = simulate(scenario, plan, seed, named)
        else:
            with folder.held(home):
                result = live(scenario, plan, seed, abortable(where, home))
        if checks_determinism and not result.trace.header.partial:
            _check_determinism(result)
            result = replace(result, is_repeated=True)
        ran = fill(home, result, pictures=pictures)
        folder.point_to_latest(home)
        return ran
    except (NotAnEffect, ProgramLoops) as error:
        raise Stop(USAGE, str(error)) from None


def planned(name: str, variant: str | None) -> tuple[Scenario, Plan]:
    """Return a scenario and the plan of one of its variants."""
    if variant is not None and variant_named(variant) is None:
        reason = expected(variant, "a variant", VARIANTS)
        raise Stop(USAGE, f"Invalid value for '--variant': {reason}")
    scenario = loaded(name)
    try:
        return scenario, scenario.plan(variant)
    except ScenarioError as error:
        raise _stopped_by(error) from None


def loaded(name: str) -> Scenario:
    """Return a scenario; raise Stop, with the problems, for an invalid file."""
    try:
        return load(name)
    except ScenarioError as error:
        raise _stopped_by(error) from None


def read_profile(file: Path | None) -> NamedProfile | None:
    """Return the profile in a file, if one is given; raise Stop for an invalid file."""
    if file is None:
        return None
    from watchkeeper.api.profile import profile_of  # its schema; few runs name a profile

    try:
        return profile_of(file)
    except ScenarioError as error:
        raise _stopped_by(error) from None


def _stopped_by(error: ScenarioError) -> Stop:
    problems = [
        {
            "file": error.name,
            "line": problem.line or None,
            "field": problem.field,
            "message": problem.message,
        }
        for problem in error.problems
    ]
    return Stop(USAGE, str(error), problems)


def simulate(
    scenario: Scenario, plan: Plan, seed: int, profile: NamedProfile | None = None
) -> Result:
    """Run a plan in simulation, and judge it."""
    took = latencies_of(profile)
    with _Progress(plan.name, seconds="virtual seconds") as progress:
        try:
            done = simulate_plan(
                plan, seed, versions=versions(), tell=progress.tell, profile=took
            )
        except Interrupted as interrupted:
            done = interrupted.so_far
    return judged(scenario, plan, seed, done, profile)


def live(scenario: Scenario, plan: Plan, seed: int, where: Where) -> Result:
    """Run a plan for real, and judge it."""
    with _Progress(plan.name, seconds="seconds") as progress:
        plan, done = run_plan_live(plan, seed, progress.tell, where)
    result = judged(scenario, plan, seed, done)
    return replace(result, options=where.options, zookeeper=where.in_words)


def _check_determinism(result: Result) -> None:
    plan = result.scenario.plan(result.plan.variant)
    took = latencies_of(result.profile)
    try:
        second_trace = simulate_plan(plan, result.seed, versions=versions(), profile=took).trace
    except Interrupted:
        raise KeyboardInterrupt from None
    difference = first_difference(result.trace, second_trace)
    if difference is not None:
        first, second = difference
        raise Stop(
            NOT_DETERMINISTIC,
            "the two runs of one seed differ, so the program depends on more than the seed "
            "(the order of a set, a clock, a global)\n"
            f"  first run   {_event_text(first)}\n  second run  {_event_text(second)}",
        )


def _event_text(event: Event | None) -> str:
    if event is None:
        return "had ended"
    what = f"{event.node} {event.kind} {dict(event.detail)}"
    return f"at {event.t_us / 1e6:.6f} s, event {event.seq}: {what}"


def fill(home: Path, result: Result, *, pictures: bool) -> Ran:
    """Write trace, scenario and verdict; then draw, and list the figures in the verdict."""
    folder.clear(home)
    folder.write_trace(home, result.trace)
    folder.write_text(home / folder.SCENARIO, scenario_text(result))
    if result.profile is not None:
        folder.write_text(home / folder.PROFILE, result.profile.text)
    judged_from = [name for name in folder.JUDGED if (home / name).exists()]
    kept = [str(home / name) for name in (folder.VERDICT, *judged_from)]
    folder.write_verdict(home, result.to_json(kept))
    if not pictures:
        return Ran(result, home, kept, [])
    _draw(home, result.trace)
    drawn = [name for name in folder.PICTURES if (home / name).exists()]
    files = [*kept, *(str(home / name) for name in (folder.INDEX, *drawn))]
    verdict = result.to_json(files)
    write_index(home, verdict, result.trace)
    folder.write_verdict(home, verdict)
    return Ran(
        result, home, files, [name for name in pictures_of(result.trace) if name not in drawn]
    )


def scenario_text(result: Result) -> str:
    """The scenario as it was run: a live run takes the tick of the ZooKeeper it finds."""
    scenario, ran = result.scenario, result.plan.clusters
    planned_clusters = scenario.plan(result.plan.variant).clusters
    ticks = [
        (f"clusters.{cluster.name}.zookeeper.tick", duration_text(cluster.zookeeper.tick_us))
        for cluster, planned_cluster in zip(ran, planned_clusters, strict=True)
        if cluster.zookeeper.tick_us != planned_cluster.zookeeper.tick_us
    ]
    return changed(scenario.document, ticks, scenario.name) if ticks else scenario.text


def _draw(home: Path, trace: Trace) -> None:
    """Draw all figures, or as many as there are before an interrupt."""
    try:
        from watchkeeper.reports import write_all

        write_all(trace, home)
    except OSError as error:
        advice = f"the verdict is in {home / folder.VERDICT}"
        raise cannot_write(f"the figures: {home}", error, advice) from None
    except KeyboardInterrupt:
        return
    except Exception:
        if not INTERRUPTS.came:
            raise


class _Progress(ProgressLine):
    """The progress of a run that takes longer than a second, on a terminal."""

    def __init__(self, name: str, *, seconds: str) -> None:
        """`seconds` says which seconds a run counts."""
        super().__init__(after_s=1.0)
        self.name = name
        self._seconds = seconds
        self._begun = monotonic()

    def tell(self, now_us: int, end_us: int) -> None:
        """Show the progress of the run."""
        if not self.is_due:
            return
        share = now_us / end_us
        left = (monotonic() - self._begun) * (1 - share) / share
        self.say(
            f"{self.name}: {now_us / 1e6:.1f} of {end_us / 1e6:.0f} {self._seconds}, "
            f"{left:.0f} s left"
        )


# --- recorded runs ---------------------------------------------------------------------


def export_trace(place: Path, viewer: str, out: Path | None) -> str:
    """Write the trace of a run in another format, and return the path of the file."""
    from watchkeeper.reports.exports import perfetto, shiviz, transcript

    trace = folder.read_trace(place)
    home = place if place.is_dir() else place.parent
    write, name = {
        "perfetto": (perfetto.trace_events, "perfetto.json"),
        "shiviz": (shiviz.log, "shiviz.log"),
        "transcript": (transcript.transcript, "transcript.txt"),
    }[viewer]
    path = home / name if out is None else out
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None
    folder.write_text(path, write(trace))
    return str(path)


def draw_again(place: Path) -> list[str]:
    """Draw the figures of a run from its trace, and return the paths of the files."""
    from watchkeeper.reports import write_all

    INTERRUPTS.raise_from_now_on()
    trace = folder.read_trace(place)
    home = place if place.is_dir() else place.parent
    try:
        names = write_all(trace, home)
        verdict = folder.read_verdict(home)
        if verdict is not None:
            names.insert(0, write_index(home, verdict, trace))
        return [str(home / name) for name in names]
    except OSError as error:
        raise cannot_write(home, error) from None


def first_page(place: Path) -> Path:
    """Return the first page of a run, and write it where it is missing.

    Raises Stop where there is no run.
    """
    home = place if (place / folder.VERDICT).exists() else folder.latest(place)
    page = home / folder.INDEX
    verdict = folder.read_verdict(home)
    if verdict is None:
        raise Stop(USAGE, f"{home / folder.VERDICT} cannot be read; run the scenario again")
    if not page.exists():
        write_index(home, verdict, folder.read_trace(home))
    return page
