"""Sweeps a scenario: every seed of every choice of variants and values.

Before anything else a sweep runs a self-test: a run of a known mutant that has to come out as
violated. If it does not, the sweep is invalid, since nothing it reports of other runs can be
trusted.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from watchkeeper.api.folder import PROFILE, SCENARIO
from watchkeeper.api.simulate import versions
from watchkeeper.console.exit import HOLDS, NOT_DETERMINISTIC, UNKNOWN, USAGE, VIOLATED, Stop
from watchkeeper.console.progress import ProgressLine, timed
from watchkeeper.console.signals import INTERRUPTED, INTERRUPTS
from watchkeeper.model.mutants.catalogue import MUTANTS
from watchkeeper.model.mutants.mutant import scenario_of
from watchkeeper.model.sweep_summary import NOT_AS_EXPECTED, OPEN, Example, SweepSummary
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.session import Wanted
from watchkeeper.pipeline.sweeps import runner_choice
from watchkeeper.pipeline.sweeps.grid import Cell
from watchkeeper.pipeline.sweeps.rows import check_libraries
from watchkeeper.pipeline.sweeps.run import (
    Progress,
    SelfTest,
    SelfTestFailed,
    check_self_test,
    keep_traces,
    run_left,
)
from watchkeeper.pipeline.sweeps.runner_choice import Choice
from watchkeeper.pipeline.sweeps.runners import Pool, Process, Runner
from watchkeeper.pipeline.sweeps.spark import Spark
from watchkeeper.pipeline.sweeps.store import SCRATCH, Manifest, Store, opened
from watchkeeper.pipeline.sweeps.summary import summed
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.java import find_java
from watchkeeper.scenarios import from_text
from watchkeeper.sweep.grid import Choice as Values
from watchkeeper.sweep.grid import Planned, Request, planned
from watchkeeper.sweep.shrink import Smallest, all_smallest

LOCAL = "local[{}]"
MUTANT = MUTANTS["stale-memory"]
"""After an expiry it goes on with the claims of the session before."""
TIMELINE = "timeline: [{at: 5s, expire: group/0}]\nsettle: 5s\n"
SELF_TEST_SEED = 1


@dataclass(frozen=True, slots=True)
class Means:
    """The execution of a sweep; its results do not depend on it."""

    runner: str = "auto"
    master: str | None = None
    jobs: int | None = None
    traces: int = 100
    """At most so many traces of failures are kept."""
    shrink_s: float | None = 60.0
    """How long to look for the smallest scenarios of all failures; None for not at all."""
    chunk_s: float = runner_choice.LEAST_CHUNK_S


@dataclass(frozen=True, slots=True)
class Swept:
    """A finished sweep."""

    planned: Planned
    sum: SweepSummary
    choice: Choice
    self_test: str
    """The run that had to fail, and did."""
    differing: tuple[Example, ...]
    """Runs that came out differently when they were repeated."""
    traces: int
    smallest: tuple[Smallest, ...]
    means: Means
    is_interrupted: bool = False
    """Whether an interrupt ended the search for the smallest scenarios."""

    @property
    def command(self) -> str:
        """The command that continues the sweep, or shows its results again."""
        return command_of(self.planned, self.means)

    @property
    def exit_code(self) -> int:
        """0 all as expected or holds, 1 not, 2 unknown, 3 not deterministic, 4 a defect."""
        if self.is_interrupted:
            return UNKNOWN
        found = self.sum
        unmet = found.met(NOT_AS_EXPECTED) + self._plain("violated")
        if found.shown("failed"):
            return USAGE
        if self.differing:
            return NOT_DETERMINISTIC
        if unmet:
            return VIOLATED
        return UNKNOWN if found.met(OPEN) + self._plain("unknown") else HOLDS

    def _plain(self, verdict: str) -> int:
        """Runs that came to a verdict where nothing is expected."""
        return sum(cell.verdicts.get(verdict, 0) for cell in self.sum.cells if not cell.met)


def sweep(request: Request, means: Means, say: Callable[[str], None]) -> Swept:
    """Sweep a scenario, or continue its sweep; `say` receives lines about its execution.

    Raises Stop, with a sentence, for every error of the user.
    """
    INTERRUPTS.raise_from_now_on()
    plan = planned(request)
    try:
        check_libraries()
        with opened(request.out) as store:
            return _swept(store, plan, means, say)
    except PipelineProblem as problem:
        raise Stop(USAGE, str(problem)) from None
    except SelfTestFailed as failed:
        raise Stop(VIOLATED, str(failed)) from None


def self_test() -> SelfTest:
    """Return the run of a mutant that every sweep has to find."""
    text = "\n".join((*scenario_of(MUTANT), TIMELINE))
    named = text.replace(f"name: {MUTANT.name}", "name: self-test", 1)
    plan = from_text("self-test.yaml", named).plan()
    return SelfTest(Cell(-1, (), plan, None), SELF_TEST_SEED, MUTANT.caught_by.name)


def _swept(store: Store, plan: Planned, means: Means, say: Callable[[str], None]) -> Swept:
    manifest = _manifest(store, plan, means.chunk_s)
    _write_scenarios(store, plan)
    grid, known = plan.grid, self_test()
    left = grid.chunks(manifest.chunk_runs) - len(store.finished())
    seconds = runner_choice.work_s(left * manifest.chunk_runs, manifest.run_seconds)
    jobs = means.jobs or runner_choice.cores()
    choice = runner_choice.chosen(means.runner, seconds, jobs=jobs, has_master=bool(means.master))
    say(f"runner  {choice.name}: {choice.why}")
    with ProgressLine(every_s=0.5) as line:
        with _kept(store, manifest, plan, means), _runner(choice, means, jobs, store) as runner:
            with timed("self-test"):
                check_self_test(store, manifest, runner, known)
            with timed("runs"):
                run_left(store, manifest, grid, runner, _teller(plan, line))
            line.say(f"{plan.scenario.name}: keeping traces")
            with timed("traces"):
                traces, differing = keep_traces(
                    *(store, manifest, grid, runner),
                    most=means.traces,
                    versions=versions(),
                    beside={one.scenario.name: _beside(plan, one) for one in plan.choices},
                )
        found = summed(store, manifest, grid)
        with timed("smaller scenarios"):
            smallest = (
                ()
                if means.shrink_s is None
                else all_smallest(store, plan, found.ways, means.shrink_s, line, say)
            )
    return Swept(
        plan,
        found,
        choice,
        known.cell.run_id(known.seed),
        tuple(dict.fromkeys((*found.differing, *differing))),
        len(traces),
        smallest,
        means,
        INTERRUPTS.came,
    )


# --- the folder ------------------------------------------------------------------------

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
"""Pinned value -> how an error message describes it."""


def _manifest(store: Store, plan: Planned, chunk_s: float) -> Manifest:
    """Return the manifest of the folder; Stop where it belongs to another sweep."""
    pinned = plan.pinned()
    known = store.manifest()
    if known is None:
        cost = runner_choice.look(plan.grid)
        size = runner_choice.chunk_runs(plan.grid.runs, cost, chunk_s)
        known = Manifest(pinned, size, cost.mean_s)
        store.begin(known)
    differs = [name for name in NAMES if known.pinned.get(name) != pinned[name]]
    if differs:
        was = known.pinned.get(differs[0])
        value = was if isinstance(was, str) else json.dumps(was)
        raise Stop(
            USAGE,
            f"{store.home} holds another sweep: one {NAMES[differs[0]].format(value or 'none')}; "
            "choose another folder with --out, or give the command that began it",
        )
    return known


def _beside(plan: Planned, choice: Values) -> dict[str, bytes]:
    """The files beside a trace: with them the run can be judged again anywhere."""
    files = {SCENARIO: choice.scenario.text.encode()}
    return files | ({PROFILE: plan.profile.text.encode()} if plan.profile else {})


def _write_scenarios(store: Store, plan: Planned) -> None:
    """Write the scenarios that this sweep has made, so that their runs can be reproduced."""
    for choice in plan.choices if plan.is_changed else ():
        file = plan.file_of(choice)
        if not file.exists():
            values = "".join(f"# {path}={value}\n" for path, value in choice.parameters)
            store.write(file, f"{values}{choice.scenario.text}".encode())


# --- the runner ------------------------------------------------------------------------


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
def _kept(store: Store, manifest: Manifest, plan: Planned, means: Means) -> Iterator[None]:
    """Say after an interrupt which runs are kept, what they show, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        verdicts = Counter(
            verdict
            for table in store.tables(manifest, ["verdict"])
            for verdict in table.column("verdict").to_pylist()
        )
        kept, runs = verdicts.total(), plan.grid.runs
        shown = ", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.items())
        left = (
            f"nothing is known of the other {runs - kept:,}"
            if kept < runs
            else "their traces are not all kept, and there is no report yet"
        )
        raise Stop(
            UNKNOWN,
            f"{INTERRUPTED}: {kept:,} of {runs:,} runs are kept in {store.home}"
            f"{f' ({shown})' if shown else ''}; {left}\n"
            f"continue with: {command_of(plan, means)}",
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


# --- the command -----------------------------------------------------------------------


def command_of(plan: Planned, means: Means) -> str:
    """Return the command that continues a sweep, or shows its results again.

    How the runs are distributed is left out: the results do not depend on it.
    """
    request, default = plan.request, Means()
    words = ["watchkeeper", "sweep", request.scenario]
    words += ["--seeds", request.seeds] if request.seeds else []
    words += ["--variants", request.variants] if request.variants else []
    for change in request.changes:
        words += ["--set", change]
    words += ["--profile", str(request.profile)] if request.profile else []
    words += ["--traces", str(means.traces)] if means.traces != default.traces else []
    words += ["--chunk", f"{means.chunk_s:g}"] if means.chunk_s != default.chunk_s else []
    if means.shrink_s is None:
        words += ["--no-shrink"]
    elif means.shrink_s != default.shrink_s:
        words += ["--shrink-time", f"{means.shrink_s:g}"]
    return shlex.join([*words, "--out", str(request.out)])
