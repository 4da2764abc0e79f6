"""Runs of a scenario: plan and run it, fill its folder, and draw its figures again."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic

from watchkeeper.api import folder
from watchkeeper.api.index import write_index
from watchkeeper.api.named_profile import NamedProfile, digest_of
from watchkeeper.api.result import Result
from watchkeeper.api.run_files import Ran, fill
from watchkeeper.api.simulate import first_difference, judged, latencies_of, versions
from watchkeeper.console.exit import NOT_DETERMINISTIC, USAGE, Stop, cannot_write
from watchkeeper.console.progress import ProgressLine, timed
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.actor.program_errors import NotAnEffect, ProgramLoops
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.mutants.by_name import variant_named
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.trace.trace import Event, named_run
from watchkeeper.run.live_run import HERE, Where, abortable, next_in_words, run_plan_live
from watchkeeper.scenarios import Scenario, ScenarioError, from_text, load
from watchkeeper.scenarios.text.document import LARGEST_FILE
from watchkeeper.scenarios.text.errors import expected
from watchkeeper.sim.world import Interrupted
from watchkeeper.sim.world import simulate as simulate_plan

STANDARD_INPUT = "-"
"""In place of a scenario: it is read from standard input."""


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
        if scenario.source == STANDARD_INPUT:  # the command that repeats it reads what is kept
            scenario = replace(scenario, source=str(home / folder.SCENARIO))
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
        raise stopped_by(error) from None


def loaded(name: str) -> Scenario:
    """Return a scenario, of standard input for `-`; raise Stop, with its problems, if invalid."""
    try:
        return _from_standard_input() if name == STANDARD_INPUT else load(name)
    except ScenarioError as error:
        raise stopped_by(error) from None


def _from_standard_input() -> Scenario:
    if sys.stdin.isatty():
        print("type a scenario, and Ctrl-D at its end", file=sys.stderr)
    raw = sys.stdin.buffer.read(LARGEST_FILE + 1)
    return from_text("standard input", raw, source=STANDARD_INPUT)


def read_profile(file: Path | None) -> NamedProfile | None:
    """Return the profile in a file, if one is given; raise Stop for an invalid file."""
    if file is None:
        return None
    from watchkeeper.api.profile import profile_of  # its schema; few runs name a profile

    try:
        return profile_of(file)
    except ScenarioError as error:
        raise stopped_by(error) from None


def stopped_by(error: ScenarioError) -> Stop:
    """Return the end of a command whose scenario has these problems."""
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
    with _Progress(plan.name) as progress:
        try:
            with timed("simulation"):
                done = simulate_plan(
                    plan, seed, versions=versions(), tell=progress.tell, profile=took
                )
        except Interrupted as interrupted:
            done = interrupted.so_far
    with timed("judgement"):
        return judged(scenario, plan, seed, done, profile)


def live(scenario: Scenario, plan: Plan, seed: int, where: Where) -> Result:
    """Run a plan for real, and judge it."""
    with _LiveProgress(plan) as progress, timed("live run"):
        plan, done = run_plan_live(plan, seed, progress.tell, where, waits=progress.waits)
    with timed("judgement"):
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


class _Progress(ProgressLine):
    """The progress of a simulation that takes longer than a second."""

    def __init__(self, name: str) -> None:
        super().__init__(after_s=1.0)
        self.name = name
        self._begun = monotonic()

    def tell(self, now_us: int, end_us: int) -> None:
        """Show the progress of the run."""
        if not self.is_due:
            return
        share = now_us / end_us
        left = (monotonic() - self._begun) * (1 - share) / share
        self.say(
            f"{self.name}: {now_us / 1e6:.1f} of {end_us / 1e6:.0f} virtual seconds, "
            f"{left:.0f} s left"
        )


class _LiveProgress(ProgressLine):
    """The progress of a live run: its seconds, and what it waits for."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    def waits(self, what: str, after: str = "live") -> None:
        """Show what the run waits for, also before its time begins and after its end."""
        self.say(f"{self._plan.name}: {after}, waits for {what}")

    def tell(self, now_us: int, end_us: int) -> None:
        """Show the seconds of the run and the next entry of its timeline."""
        if INTERRUPTS.came:
            # Python drops what is raised while an object is collected, also this.
            raise KeyboardInterrupt
        if self.is_due:
            seconds = f"{now_us / 1e6:.1f} of {end_us / 1e6:.0f} live seconds"
            self.waits(next_in_words(self._plan, now_us), seconds)


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


def draw_again(place: Path, *, moves: bool = False) -> list[str]:
    """Draw the figures of a run from its trace, and return the paths of the files.

    With `moves` the ownership of partitions becomes a film too, a GIF.
    """
    from watchkeeper.reports import write_all
    from watchkeeper.reports.ownership.gif import write_ownership_gif

    INTERRUPTS.raise_from_now_on()
    trace = folder.read_trace(place)
    home = place if place.is_dir() else place.parent
    try:
        names = write_all(trace, home)
        names += [write_ownership_gif(trace, home)] if moves else []
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
