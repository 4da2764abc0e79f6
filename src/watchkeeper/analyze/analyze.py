"""The analysis of runs from their traces: `watchkeeper analyze` without its printed text."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from watchkeeper.analyze.engines import EngineName, chosen, started
from watchkeeper.analyze.runs import RUN, Gathered, gathered
from watchkeeper.api.folder import PROFILE
from watchkeeper.api.named_profile import digest_of
from watchkeeper.api.simulate import latencies_of
from watchkeeper.console.exit import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop
from watchkeeper.console.progress import ProgressLine, timed
from watchkeeper.console.signals import INTERRUPTED, INTERRUPTS
from watchkeeper.pipeline.analysis.inevitability import Inevitable, inevitable
from watchkeeper.pipeline.analysis.run import Analysed, analyse
from watchkeeper.pipeline.analysis.runs import Run
from watchkeeper.pipeline.analysis.store import replacing
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.sweeps.grid import Cell
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.run.run import read_profile
from watchkeeper.sim.engine.latency_profile import DEFAULT, Profile

CANNOT = "cannot be run again up to some event"


@dataclass(frozen=True, slots=True)
class Request:
    """The runs to analyse, and the folder of the results."""

    places: tuple[Path, ...]
    out: Path
    master: str | None = None
    inevitable: str | None = None
    """The failing run whose point of no return is searched."""
    branches: int = 100
    engine: EngineName = EngineName.AUTO

    @property
    def command(self) -> str:
        """The command that repeats the analysis; the engine is left out: it changes no result."""
        words = ["watchkeeper", "analyze", *map(str, self.places), "--out", str(self.out)]
        words += ["--inevitable", self.inevitable] if self.inevitable else []
        words += ["--branches", str(self.branches)] if self.inevitable else []
        return shlex.join(words)


@dataclass(frozen=True, slots=True)
class Done:
    """A finished analysis."""

    request: Request
    gathered: Gathered
    found: Analysed
    inevitable: Inevitable | None = None

    @property
    def exit_code(self) -> int:
        """0 if both computations agree, 1 if they differ, 2 if nothing was compared."""
        if self.found.differences:
            return VIOLATED
        return HOLDS if self.found.agreed else UNKNOWN


def analyze(request: Request, finish: Callable[[Done, Path], None]) -> Done:
    """Analyse runs; `finish` writes the last files before the folder moves to its place.

    Raises Stop, with a sentence, for everything that the user has to mend.
    """
    INTERRUPTS.raise_from_now_on()
    try:
        given = gathered(request.places)
    except PipelineProblem as problem:
        raise Stop(USAGE, str(problem)) from None
    wanted = request.inevitable
    failing = None if wanted is None else failing_run(given.runs, wanted)
    cell = None if failing is None else cell_of(failing)
    try:
        return _analyzed(request, given, failing, cell, finish)
    except (PipelineProblem, EnvironmentProblem) as problem:
        raise Stop(USAGE, str(problem)) from None
    except KeyboardInterrupt:
        raise _interrupted(request) from None
    except Exception:  # DuckDB makes an error of its own of an interrupt
        if not INTERRUPTS.came:
            raise
        raise _interrupted(request) from None


def _interrupted(request: Request) -> Stop:
    return Stop(UNKNOWN, f"{INTERRUPTED}: nothing was written, and {request.out} is as it was")


def failing_run(runs: list[Run], name: str) -> Run:
    """Return the run of this name; raise Stop unless it fails and can be simulated again."""
    run = next((run for run in runs if run.name == name), None)
    if run is None:
        names = ", ".join(run.name for run in runs[:5])
        raise Stop(USAGE, f"there is no run {name}; expected one of those given, such as {names}")
    if not run.violated:
        raise Stop(USAGE, f"{name} was not judged violated; name a run that fails")
    is_own = bool(run.command) and not run.command.startswith(RUN)
    if run.header.world != "sim" or run.plan is None or is_own:
        why = run.why_no_plan or "only simulated runs of a variant can be run again"
        raise Stop(USAGE, f"{name} {CANNOT}: {why}")
    return run


def cell_of(run: Run) -> Cell:
    """Return the plan of a run with the latencies that it was simulated with."""
    assert run.plan is not None, "a run without a plan was refused"
    return Cell(0, (), run.plan, None, kept_profile(run))


def kept_profile(run: Run) -> Profile:
    """Return the latencies that a run was simulated with; Stop where its folder has others."""
    if not run.header.profile:
        return DEFAULT
    path = Path(run.path).parent / PROFILE
    if not path.exists():
        raise Stop(
            USAGE,
            f"{run.name} {CANNOT}: it was simulated with a latency profile, and {PROFILE} is not "
            "beside its trace",
        )
    found = read_profile(path)
    if digest_of(found) != run.header.profile:
        raise Stop(
            USAGE,
            f"{run.name} {CANNOT}: it was simulated with the profile {run.header.profile}, and "
            f"{path} is the profile {digest_of(found) or 'of the default latencies'}",
        )
    return latencies_of(found)


def _analyzed(
    request: Request,
    given: Gathered,
    failing: Run | None,
    cell: Cell | None,
    finish: Callable[[Done, Path], None],
) -> Done:
    size = sum(Path(run.path).stat().st_size for run in given.runs)
    name = chosen(request.engine, request.master, size)
    with replacing(request.out) as home, ProgressLine() as line:
        with started(name, request.master, home, size, line.say) as means:
            engine = means.engine
            with timed("second judgement, measures and coverage"):
                found = analyse(
                    engine, given.runs, given.signatures, given.sweeps, home, line.say
                )
            turned = None
            if failing is not None and cell is not None:
                with timed("branches"), means.runner() as runner:
                    turned = inevitable(
                        engine, runner, home, failing, cell, request.branches, line.say
                    )
        done = Done(request, given, found, turned)
        finish(done, home)
    return done
