"""Sweeps a scenario: every seed of every choice of variants and values, and what came of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from model.sweeps import Example, SweepSum
from pipeline.problems import PipelineProblem
from pipeline.session import Wanted
from pipeline.sweeps import choosing
from pipeline.sweeps.choosing import Choice
from pipeline.sweeps.conduct import (
    CanaryLives,
    Progress,
    check_canary,
    keep_traces,
    run_left,
)
from pipeline.sweeps.rows import check_libraries
from pipeline.sweeps.runners import Pool, Process, Runner
from pipeline.sweeps.spark import Spark
from pipeline.sweeps.store import SCRATCH, Manifest, Store, opened
from pipeline.sweeps.summing import summed
from real.java import find_java
from real.problems import EnvironmentProblem
from watchkeeper.canary import canary
from watchkeeper.endings import HOLDS, NOT_DETERMINISTIC, UNKNOWN, USAGE, VIOLATED, Stop
from watchkeeper.interrupts import INTERRUPTED, INTERRUPTS
from watchkeeper.progress_line import ProgressLine
from watchkeeper.running import versions
from watchkeeper.shrinking import Smallest, smallest_of
from watchkeeper.sweep_grid import Planned, Request, planned

LOCAL = "local[{}]"


@dataclass(frozen=True, slots=True)
class Means:
    """By which means a sweep is done; its results do not depend on them."""

    runner: str = "auto"
    master: str | None = None
    jobs: int | None = None
    traces: int = 100
    """At most so many traces of failures are kept."""
    shrinks: bool = True
    chunk_s: float = choosing.LEAST_CHUNK_S


@dataclass(frozen=True, slots=True)
class Swept:
    """A sweep that has come to its end."""

    planned: Planned
    sum: SweepSum
    choice: Choice
    canary: str
    """The name of the run that had to fail, and did."""
    differing: tuple[Example, ...]
    """Runs that were another when they were run again."""
    traces: int
    smallest: tuple[Smallest, ...]

    @property
    def exit_code(self) -> int:
        """0 all holds or is as expected, 1 not, 2 unknown, 3 not deterministic, 4 a defect."""
        found = self.sum
        unmet = found.met("not as expected") + self._plain("violated")
        if found.counted("failed"):
            return USAGE
        if self.differing:
            return NOT_DETERMINISTIC
        if unmet:
            return VIOLATED
        return UNKNOWN if found.met("open") + self._plain("unknown") else HOLDS

    def _plain(self, verdict: str) -> int:
        """Runs that came to a verdict where nothing is expected."""
        return sum(one.verdicts.get(verdict, 0) for one in self.sum.cells if not one.met)


def sweep(request: Request, means: Means, say: Callable[[str], None]) -> Swept:
    """Sweep a scenario, or go on with it; `say` hears who does the work.

    Raises Stop, with a sentence, for whatever the user has to mend.
    """
    INTERRUPTS.raise_from_now_on()
    plan = planned(request)
    try:
        check_libraries()
        with opened(request.out) as store:
            return _swept(store, plan, means, say)
    except PipelineProblem as problem:
        raise Stop(USAGE, str(problem)) from None
    except CanaryLives as lives:
        raise Stop(VIOLATED, str(lives)) from None


def _swept(store: Store, plan: Planned, means: Means, say: Callable[[str], None]) -> Swept:
    manifest = _manifest(store, plan, means.chunk_s)
    _write_scenarios(store, plan)
    grid, bird = plan.grid, canary()
    left = grid.chunks(manifest.chunk_runs) - len(store.finished())
    seconds = choosing.work_s(left * manifest.chunk_runs, manifest.run_seconds)
    jobs = means.jobs or choosing.cores()
    choice = choosing.chosen(means.runner, seconds, jobs=jobs, has_master=bool(means.master))
    say(f"{choice.name}: {choice.why}")
    with ProgressLine(every_s=0.5) as line:
        with _kept(store, manifest, plan), _runner(choice, means, jobs, store) as runner:
            check_canary(store, manifest, runner, bird)
            run_left(store, manifest, grid, runner, _teller(plan, line))
            line.say(f"{plan.scenario.name}: keeping traces")
            traces, differing = keep_traces(
                store, manifest, grid, runner, most=means.traces, versions=versions()
            )
        found = summed(store, manifest, grid)
        smallest = []
        for at, way in enumerate(found.ways if means.shrinks else (), 1):
            line.say(f"{plan.scenario.name}: shrinking failure {at} of {len(found.ways)}")
            smallest.append(smallest_of(store, plan, way))
    return Swept(
        plan,
        found,
        choice,
        bird.cell.run_id(bird.seed),
        tuple(dict.fromkeys((*found.differing, *differing))),
        len(traces),
        tuple(smallest),
    )


# --- what the folder is for ------------------------------------------------------------

NAMES = {
    "scenario": "of the scenario {}",
    "source": "of that scenario, before it was changed",
    "variants": "of the variants {}",
    "set": "with the values {}",
    "seeds": "of the seeds {}",
    "profile": "with the profile {}",
    "version": "by watchkeeper {}",
    "code": "by another state of the code of watchkeeper",
}
"""What is pinned, and how it is told."""


def _manifest(store: Store, plan: Planned, chunk_s: float) -> Manifest:
    """What the folder says of itself; Stop where that is another sweep."""
    pinned = plan.pinned()
    known = store.manifest()
    if known is None:
        cost = choosing.look(plan.grid)
        size = choosing.chunk_runs(plan.grid.runs, cost, chunk_s)
        known = Manifest(pinned, size, cost.mean_s)
        store.begin(known)
    differs = [name for name in NAMES if known.pinned.get(name) != pinned[name]]
    if differs:
        was = known.pinned.get(differs[0])
        told = was if isinstance(was, str) else json.dumps(was)
        raise Stop(
            USAGE,
            f"{store.home} holds another sweep: one {NAMES[differs[0]].format(told or 'none')}; "
            "choose another folder with --out, or give the command that began it",
        )
    return known


def _write_scenarios(store: Store, plan: Planned) -> None:
    """Write the scenarios that only this sweep has, so that their runs can be run again."""
    for choice in plan.choices if plan.is_changed else ():
        file = plan.file_of(choice)
        if not file.exists():
            values = "".join(f"# {path}={value}\n" for path, value in choice.parameters)
            store.write(file, f"{values}{choice.scenario.text}".encode())


# --- who does it -----------------------------------------------------------------------


def _runner(choice: Choice, means: Means, jobs: int, store: Store) -> Runner:
    if choice.name == "process":
        return Process()
    if choice.name == "pool":
        return Pool(jobs)
    try:
        find_java()
    except EnvironmentProblem as problem:
        raise PipelineProblem(str(problem)) from None
    wanted = Wanted(
        means.master or LOCAL.format(jobs),
        "watchkeeper sweep",
        store.home / SCRATCH,
        "python",
        cores=means.jobs,
    )
    return Spark(wanted)


@contextmanager
def _kept(store: Store, manifest: Manifest, plan: Planned) -> Iterator[None]:
    """Say, when the user has had enough, that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        number = len(store.finished())
        of = plan.grid.chunks(manifest.chunk_runs)
        raise Stop(
            UNKNOWN,
            f"{INTERRUPTED}: {number} of {of} chunks are kept in {store.home}; the same command "
            "goes on with the others",
        ) from None


def _teller(plan: Planned, line: ProgressLine) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        if line.is_due:
            failed = f", {progress.violated:,} violated" if progress.violated else ""
            line.say(
                f"{plan.scenario.name}: {progress.done:,} of {progress.runs:,} runs, "
                f"{progress.rate:.0f} a second, {progress.left_s:.0f} s left{failed}"
            )

    return tell


# --- the command again -----------------------------------------------------------------


def command_of(plan: Planned) -> str:
    """The command that goes on with a sweep, or shows it again."""
    request = plan.request
    words = ["watchkeeper", "sweep", request.scenario]
    words += ["--seeds", request.seeds] if request.seeds else []
    words += ["--variants", request.variants] if request.variants else []
    for change in request.changes:
        words += ["--set", change]
    words += ["--profile", str(request.profile)] if request.profile else []
    return shlex.join([*words, "--out", str(request.out)])
