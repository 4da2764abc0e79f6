"""What the commands do."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from model.plan import Plan
from model.trace import Event, Trace, named_run
from model.variants import VARIANTS
from model.zoo import variant_named
from reports import pictures_of
from scenarios import Scenario, ScenarioError, load, shipped
from scenarios.problems import expected
from sim.mistakes import NotAnAsk, ProgramLoops
from sim.world import Interrupted
from sim.world import simulate as simulate_plan
from watchkeeper import folder
from watchkeeper.comparing import Parting, compare
from watchkeeper.endings import NOT_DETERMINISTIC, USAGE, Stop
from watchkeeper.interrupts import INTERRUPTED, INTERRUPTS
from watchkeeper.living import HERE, Where, abortable, run_plan_live
from watchkeeper.profiles import NamedProfile, digest_of, profile_of
from watchkeeper.progress_line import ProgressLine
from watchkeeper.result import Result
from watchkeeper.running import first_difference, judged, latencies_of, versions


@dataclass(frozen=True, slots=True)
class Ran:
    """What `run` leaves."""

    result: Result
    home: Path
    files: list[str]
    missing: list[str]
    """The pictures that were not drawn, since the user had enough."""

    @property
    def said_of_missing(self) -> str:
        """What is said of them."""
        names = ", ".join(self.missing)
        again = f"watchkeeper report {shlex.quote(str(self.home))}"
        return f"{INTERRUPTED}: {names} not drawn; draw with: {again}"


def run(
    name: str,
    variant: str | None,
    seed: int,
    out: Path,
    *,
    world: str = "sim",
    pictures: bool,
    twice: bool,
    where: Where = HERE,
    profile: Path | None = None,
) -> Ran:
    """Run a scenario and fill its folder.

    Raises Stop, with a sentence, for whatever the user has to mend.
    """
    INTERRUPTS.raise_from_now_on()
    if twice and world != "sim":
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
        if twice and not result.trace.header.partial:
            _check_determinism(result)
            result = replace(result, is_repeated=True)
        return fill(home, result, pictures=pictures)
    except (folder.CannotWrite, NotAnAsk, ProgramLoops) as error:
        raise Stop(USAGE, str(error)) from None


def planned(name: str, variant: str | None) -> tuple[Scenario, Plan]:
    """A scenario, and what to run of it."""
    if variant is not None and variant_named(variant) is None:
        said = expected(variant, "a variant", VARIANTS)
        raise Stop(USAGE, f"Invalid value for '--variant': {said}")
    scenario = loaded(name)
    try:
        return scenario, scenario.plan(variant)
    except ScenarioError as error:
        raise _stopped_by(error) from None


def loaded(name: str) -> Scenario:
    """A scenario; Stop says what is wrong with its file."""
    try:
        return load(name)
    except ScenarioError as error:
        raise _stopped_by(error) from None


def read_profile(file: Path | None) -> NamedProfile | None:
    """The latencies in a file, if one is named; Stop says what is wrong with it."""
    try:
        return None if file is None else profile_of(file)
    except ScenarioError as error:
        raise _stopped_by(error) from None


def _stopped_by(error: ScenarioError) -> Stop:
    """What is said of a file that is wrong."""
    problems = [
        {"file": error.name, "line": one.line or None, "field": one.field, "said": one.said}
        for one in error.problems
    ]
    return Stop(USAGE, str(error), problems)


def simulate(
    scenario: Scenario, plan: Plan, seed: int, profile: NamedProfile | None = None
) -> Result:
    """Run a plan in simulation, and judge it."""
    took = latencies_of(profile)
    with _Progress(plan.name) as progress:
        try:
            done = simulate_plan(
                plan, seed, versions=versions(), tell=progress.tell, profile=took
            )
        except Interrupted as interrupted:
            done = interrupted.so_far
    return judged(scenario, plan, seed, done, profile)


def live(scenario: Scenario, plan: Plan, seed: int, where: Where) -> Result:
    """Run a plan for real, and judge it."""
    with _Progress(plan.name) as progress:
        plan, done = run_plan_live(plan, seed, progress.tell, where)
    return replace(judged(scenario, plan, seed, done), options=where.options)


def _check_determinism(result: Result) -> None:
    plan = result.scenario.plan(result.plan.variant)
    took = latencies_of(result.profile)
    try:
        again = simulate_plan(plan, result.seed, versions=versions(), profile=took).trace
    except Interrupted:
        raise KeyboardInterrupt from None
    difference = first_difference(result.trace, again)
    if difference is not None:
        first, second = difference
        raise Stop(
            NOT_DETERMINISTIC,
            "the two runs of one seed differ, so something draws on more than the seed "
            "(an order of a set, a clock, a global)\n"
            f"  first run   {_told(first)}\n  second run  {_told(second)}",
        )


def _told(event: Event | None) -> str:
    if event is None:
        return "had ended"
    what = f"{event.node} {event.kind} {dict(event.detail)}"
    return f"at {event.t_us / 1e6:.6f} s, event {event.seq}: {what}"


def fill(home: Path, result: Result, *, pictures: bool) -> Ran:
    """Write trace and verdict; then draw, and say in the verdict what was drawn."""
    folder.clear(home)
    folder.write_trace(home, result.trace)
    kept = [str(home / name) for name in (folder.VERDICT, folder.TRACE)]
    folder.write_verdict(home, result.to_json(kept))
    if not pictures:
        return Ran(result, home, kept, [])
    _draw(home, result.trace)
    drawn = [name for name in folder.PICTURES if (home / name).exists()]
    files = [*kept, *(str(home / name) for name in drawn)]
    folder.write_verdict(home, result.to_json(files))
    return Ran(
        result, home, files, [name for name in pictures_of(result.trace) if name not in drawn]
    )


def _draw(home: Path, trace: Trace) -> None:
    """Draw all pictures, or as many as the user has the patience for."""
    try:
        from reports import write_all

        write_all(trace, home)
    except OSError as error:
        raise Stop(
            USAGE,
            f"the pictures cannot be written to {home}: {error.strerror or error}; the verdict "
            f"is in {home / folder.VERDICT}",
        ) from None
    except KeyboardInterrupt:
        return
    except Exception:
        if not INTERRUPTS.came:
            raise


class _Progress(ProgressLine):
    """Says on a terminal how far a long run has come, once it has taken a second."""

    def __init__(self, name: str) -> None:
        super().__init__(after_s=1.0)
        self.name = name
        self._begun = monotonic()

    def tell(self, now_us: int, end_us: int) -> None:
        """Say how far the run has come."""
        if not self.is_due:
            return
        share = now_us / end_us
        left = (monotonic() - self._begun) * (1 - share) / share
        self.say(
            f"{self.name}: {now_us / 1e6:.1f} of {end_us / 1e6:.0f} virtual seconds, "
            f"{left:.0f} s left"
        )


# --- looking around --------------------------------------------------------------------


def scenarios() -> list[dict[str, Any]]:
    """The shipped scenarios: name, what each shows, what is expected of whom."""
    rows = []
    for name in shipped():
        scenario = load(name)
        rows.append(
            {
                "name": name,
                "about": scenario.about,
                "expect": {
                    variant: wanted if isinstance(wanted, str) else wanted.model_dump()
                    for variant, wanted in scenario.expectations.items()
                },
            }
        )
    return rows


def variants() -> list[dict[str, Any]]:
    """The variants, with every column of their table."""
    return [{field: getattr(row, field) for field in row.__slots__} for row in VARIANTS.values()]


# --- runs that have been made ----------------------------------------------------------


def draw_again(place: Path) -> list[str]:
    """Draw the pictures of a run from its trace; the paths of the files."""
    from reports import write_all

    INTERRUPTS.raise_from_now_on()
    trace = _trace(place)
    home = place if place.is_dir() else place.parent
    try:
        return [str(home / name) for name in write_all(trace, home)]
    except OSError as error:
        raise Stop(USAGE, f"{home} cannot be written: {error.strerror or error}") from None


def diff(one: Path, other: Path) -> Parting | None:
    """Where two runs part."""
    return compare(_trace(one), _trace(other))


def _trace(place: Path) -> Trace:
    try:
        return folder.read_trace(place)
    except folder.CannotRead as error:
        raise Stop(USAGE, str(error)) from None


def parting_json(parting: Parting | None) -> dict[str, Any]:
    """What `diff --json` prints."""
    if parting is None:
        return {"same": True}
    return {
        "same": False,
        "exact": parting.exact,
        **_sides_json(parting),
        "member": None if parting.member is None else _sides_json(parting.member),
        "parted": list(parting.parted),
        "only_in_one": list(parting.alone[0]),
        "only_in_other": list(parting.alone[1]),
    }


def _sides_json(parting: Parting) -> dict[str, Any]:
    return {
        "node": parting.node,
        "one": _event_json(parting.left),
        "other": _event_json(parting.right),
        "one_after": [_event_json(event) for event in parting.left_after],
        "other_after": [_event_json(event) for event in parting.right_after],
    }


def _event_json(event: Event | None) -> dict[str, Any] | None:
    if event is None:
        return None
    return {**event._asdict(), "detail": dict(event.detail)}
