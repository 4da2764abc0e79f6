"""Runs the tests of a file in virtual time, and tells what they have shown."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchkeeper.console.exit import (
    HOLDS,
    NOT_DETERMINISTIC,
    UNKNOWN,
    USAGE,
    VIOLATED,
    Stop,
    print_json,
)
from watchkeeper.console.progress import ProgressLine, is_quiet, timed
from watchkeeper.console.signals import INTERRUPTED, INTERRUPTS
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.session import Wanted
from watchkeeper.pipeline.ship_code import OF_VIRTUAL
from watchkeeper.pipeline.sweeps.runners import Pool, Runner
from watchkeeper.pipeline.sweeps.spark import Spark
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.java import find_java
from watchkeeper.virtual.schedule.delay_bounded import DelayBounded
from watchkeeper.virtual.schedule.policies import PolicyChoice, PolicyKind, parse_policy
from watchkeeper.virtual.threads.errors import VirtualTimeError
from watchkeeper.virtual.world.brief import Brief, Part, brief_of, run_part
from watchkeeper.virtual.world.campaign import Campaign
from watchkeeper.virtual.world.folder import write_failure
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.replay import find_case, load_module, play, read_replay
from watchkeeper.virtual.world.report import failure_text
from watchkeeper.virtual.world.run import Case, run_once
from watchkeeper.virtual.world.shrink import shrink
from watchkeeper.virtual.world.simulated import CAMPAIGN

CODES = {Verdict.HOLDS: HOLDS, Verdict.VIOLATED: VIOLATED, Verdict.UNKNOWN: UNKNOWN}
SEEDS_A_PART = 20
SCRATCH = ".spark"
MOST_DELAY_RUNS = 100_000


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line says."""

    seeds: str | None
    policy: str | None
    jobs: int
    master: str | None
    """The master of Spark that distributes the seeds; None for this machine alone."""
    keeps_going: bool
    checks_determinism: bool
    out: Path


@dataclass(frozen=True, slots=True)
class Told:
    """What the runs of one test have shown."""

    test: str
    briefs: tuple[Brief, ...]
    failure: Outcome | None
    folder: Path | None
    text: str
    command: str
    """The command that runs the same seeds again."""
    is_deterministic: bool = True
    is_interrupted: bool = False

    @property
    def code(self) -> int:
        """The exit code."""
        if self.failure is None and self.is_interrupted:
            return UNKNOWN
        if not self.is_deterministic:
            return NOT_DETERMINISTIC
        if self.failure is not None:
            return VIOLATED
        held = any(brief.verdict is Verdict.HOLDS for brief in self.briefs)
        return HOLDS if held else UNKNOWN


def run(target: str | None, wish: Wish, *, as_json: bool) -> int:
    """Run the tests of a file, or one of them; returns the exit code."""
    if target is None:
        raise Stop(USAGE, "name a file of tests, as tests/test_lock.py, or --replay FILE")
    file, _, name = target.partition("::")
    try:
        tests = [name] if name else _tests_of(Path(file))
        told = list(_run_tests(Path(file), tests, wish))
    except (VirtualTimeError, PipelineProblem) as error:
        raise Stop(USAGE, str(error)) from None
    if as_json:
        print_json([_json_of(each) for each in told])
    else:
        for each in told:
            print(each.text.partition("\n")[0] if is_quiet() else each.text)
    return max(each.code for each in told)


def replay(file: Path, out: Path, *, as_json: bool) -> int:
    """Run a failing run again; returns the exit code."""
    try:
        value = read_replay(file)
        case = find_case(Path(value["file"]), value["test"])
        outcome = play(value, case)
    except VirtualTimeError as error:
        raise Stop(USAGE, str(error)) from None
    if as_json:
        print_json(outcome.to_json())
    elif outcome.verdict is Verdict.VIOLATED:
        print(failure_text(outcome, case, write_failure(outcome, case, out)))
        for traceback in outcome.tracebacks:
            print(traceback)
    else:
        print(f"{case.name} does not violate {', '.join(value['violates'])} any more")
    if outcome.fingerprint != value.get("fingerprint") and not as_json:
        print("the run differs from the one that was written: its code or kazoo has changed")
    return CODES[outcome.verdict]


def _tests_of(file: Path) -> list[str]:
    module = load_module(file)
    found = [name for name, value in vars(module).items() if hasattr(value, CAMPAIGN)]
    if not found:
        raise VirtualTimeError(f"{file} has no test that is decorated by @simulated")
    return found


def _run_tests(file: Path, names: Sequence[str], wish: Wish) -> Iterator[Told]:
    """Run each test, up to the one in which an interrupt comes."""
    for name in names:
        with timed(f"runs of {name}"):
            yield _run_test(file, name, wish)
        if INTERRUPTS.came:
            return


def _run_test(file: Path, name: str, wish: Wish) -> Told:
    case = find_case(file, name)
    decorated: Any = load_module(file)
    for part in name.split("."):
        decorated = getattr(decorated, part)
    _, choice, default_seeds = getattr(decorated, CAMPAIGN)
    policy = parse_policy(wish.policy) if wish.policy else choice
    command = command_of(file, name, wish)
    if policy.kind is PolicyKind.DELAY:
        return _run_delays(case, policy, wish, command)
    seeds = _seeds(wish.seeds) if wish.seeds else default_seeds
    campaign = Campaign(case, policy)
    briefs, failing = [], None
    baseline = campaign.measure()
    if baseline.verdict is Verdict.VIOLATED:
        return _told(case, (), baseline, wish, command)
    with ProgressLine() as progress, INTERRUPTS.noted():
        for brief in _briefs(file, name, campaign, seeds, wish):
            briefs.append(brief)
            progress.say(f"{case.name}: {len(briefs):,} of {len(seeds):,} seeds")
            if brief.verdict is Verdict.VIOLATED:
                failing = failing or brief
                if not wish.keeps_going:
                    break
            if wish.checks_determinism:
                again = campaign.run(brief.seed)
                if again.fingerprint != brief.fingerprint:
                    text = f"{_difference(campaign, brief.seed)}\n  again: {command}"
                    return Told(case.name, tuple(briefs), None, None, text, command, False)
            if INTERRUPTS.came:
                break
    outcome = None if failing is None else campaign.run(failing.seed)
    left = len(seeds) - len(briefs) if INTERRUPTS.came else 0
    return _told(case, tuple(briefs), outcome, wish, command, left)


def command_of(file: Path, test: str, wish: Wish) -> str:
    """Return the command that runs the same seeds again; on how many processes is left out."""
    words = ["watchkeeper", "virtual", f"{file}::{test}"]
    words += ["--seeds", wish.seeds] if wish.seeds else []
    words += ["--policy", wish.policy] if wish.policy else []
    words += ["--keep-going"] if wish.keeps_going else []
    words += ["--check-determinism"] if wish.checks_determinism else []
    return shlex.join(words)


def _briefs(
    file: Path, name: str, campaign: Campaign, seeds: Sequence[int], wish: Wish
) -> Iterator[Brief]:
    """What each seed has shown, in the order of seeds."""
    runner = _runner(wish)
    if runner is None:
        for seed in seeds:
            yield brief_of(campaign.run(seed))
        return
    place, policy = str(file.resolve()), campaign.policy.name
    parts = [
        Part(number, place, name, policy, seeds[first : first + SEEDS_A_PART])
        for number, first in enumerate(range(0, len(seeds), SEEDS_A_PART))
    ]
    arrived: dict[int, list[Brief]] = {}
    expected = 0
    with runner:
        for part, briefs in runner.each(run_part, parts):
            arrived[part.number] = briefs
            while expected in arrived:
                yield from arrived.pop(expected)
                expected += 1


def _runner(wish: Wish) -> Runner | None:
    """Who runs the seeds; None for this process alone."""
    if wish.master is None:
        return None if wish.jobs == 1 else Pool(wish.jobs)
    try:
        find_java()
    except EnvironmentProblem as problem:
        raise PipelineProblem(f"{problem}; or leave --master out") from None
    scratch = wish.out / SCRATCH
    return Spark(
        Wanted(wish.master, "watchkeeper virtual", scratch, "python", libraries=OF_VIRTUAL)
    )


def _run_delays(case: Case, policy: PolicyChoice, wish: Wish, command: str) -> Told:
    """Run every schedule within a number of delays, without faults."""
    search = DelayBounded(policy.number)
    failing = None
    with ProgressLine() as progress, INTERRUPTS.noted():
        while search.runs < MOST_DELAY_RUNS and (recorded := search.next()) is not None:
            outcome = run_once(case, recorded, policy.name, seed=0)
            search.finished()
            progress.say(f"{case.name}: {search.runs:,} schedules")
            if outcome.verdict is Verdict.VIOLATED:
                failing = outcome
            if failing is not None or INTERRUPTS.came:
                break
    if failing is not None:
        return _told(case, (), failing, wish, command)
    what = "every schedule" if search.is_complete else "the search was cut short: each schedule"
    text = (
        f"{case.name}: {what} of {search.runs:,} with at most {_delays(policy.number)} holds; "
        "without faults"
    )
    verdict = Verdict.HOLDS if search.is_complete else Verdict.UNKNOWN
    brief = Brief(0, verdict, (), (), "", (), ())
    text += f"\n  again: {command}"
    return Told(
        *(case.name, (brief,), None, None, text, command),
        is_interrupted=INTERRUPTS.came and not search.is_complete,
    )


def _told(
    case: Case,
    briefs: tuple[Brief, ...],
    failing: Outcome | None,
    wish: Wish,
    command: str,
    left: int = 0,
) -> Told:
    """`left` is how many seeds an interrupt has left."""
    counts = Counter(brief.verdict for brief in briefs)
    seeds = "1 seed" if len(briefs) == 1 else f"{len(briefs):,} seeds"
    head = f"{case.name}: {seeds}, " + ", ".join(
        f"{number:,} {verdict.value}" for verdict, number in counts.items()
    )
    if failing is not None:
        smaller = shrink(case, failing)
        folder = write_failure(smaller, case, wish.out)
        text = failure_text(smaller, case, folder)
        text = f"{head}\n{text}" if briefs else text
        return Told(case.name, briefs, smaller, folder, text, command)
    lines = [head, *_fault_lines(briefs)]
    if counts[Verdict.UNKNOWN]:
        lines.append(f"  unknown: {next(b.unknown[0] for b in briefs if b.unknown)}")
    if left:
        lines.append(f"  {INTERRUPTED}: nothing is known of the other {left:,} seeds")
    lines.append(f"  again: {command}")
    text = "\n".join(lines)
    return Told(case.name, briefs, None, None, text, command, is_interrupted=left > 0)


def _fault_lines(briefs: Sequence[Brief]) -> Iterator[str]:
    drawn = Counter(kind for brief in briefs for kind in brief.drawn)
    struck = Counter(kind for brief in briefs for kind in brief.struck)
    for kind in sorted(drawn):
        yield f"  {kind}: {struck[kind]:,} of {drawn[kind]:,} had an effect"


def _difference(campaign: Campaign, seed: int) -> str:
    """The first event in which two runs of one seed differ."""
    one, other = campaign.run(seed).trace.rows, campaign.run(seed).trace.rows
    for at, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return (
                f"{campaign.case.name} is not deterministic: seed {seed} gives {mine} as event "
                f"{at} once and {theirs} another time; look for sets that are iterated, "
                "addresses of objects, and what one run leaves in a module"
            )
    return (
        f"{campaign.case.name} is not deterministic: two runs of seed {seed} take other turns, "
        f"or end after {len(one)} and {len(other)} events; what does one leave in a module?"
    )


def _seeds(text: str) -> Sequence[int]:
    first, dots, last = text.partition("..")
    try:
        found = range(int(first), int(last) + 1) if dots else range(int(first))
    except ValueError:
        raise VirtualTimeError(
            f"--seeds is a number, as 300, or a range, as 100..199, not {text!r}"
        ) from None
    if not found:
        raise VirtualTimeError(f"--seeds {text} names no seed")
    return found


def _json_of(told: Told) -> dict[str, Any]:
    return {
        "test": told.test,
        "seeds": len(told.briefs),
        "verdicts": dict(Counter(brief.verdict.value for brief in told.briefs)),
        "violated": dict(Counter(name for brief in told.briefs for name in brief.violated)),
        "faults": {
            "drawn": dict(Counter(kind for brief in told.briefs for kind in brief.drawn)),
            "struck": dict(Counter(kind for brief in told.briefs for kind in brief.struck)),
        },
        "failure": None if told.failure is None else told.failure.to_json(),
        "folder": None if told.folder is None else os.fspath(told.folder),
        "deterministic": told.is_deterministic,
        "command": told.command,
    }


def _delays(number: int) -> str:
    return "one delay" if number == 1 else f"{number} delays"
