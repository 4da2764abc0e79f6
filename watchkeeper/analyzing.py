"""Analyses runs from their traces: `watchkeeper analyze`, but for what is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.analysis.conduct import Analysed, analyse
from pipeline.analysis.runs import Run
from pipeline.analysis.store import SCRATCH, replacing
from pipeline.analysis.turning import Inevitable, inevitable
from pipeline.problems import PipelineProblem
from pipeline.session import Wanted, session
from pipeline.sweeps.choosing import cores
from real.java import find_java
from real.problems import EnvironmentProblem
from watchkeeper.analysis_runs import Gathered, gathered
from watchkeeper.endings import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop
from watchkeeper.inevitable import checked
from watchkeeper.interrupts import INTERRUPTED, INTERRUPTS
from watchkeeper.progress_line import ProgressLine

LOCAL = "local[{}]"
LARGE_BYTES = 100_000_000
"""From so much of traces on a JVM is worth what it takes to make it fast."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is analysed, and where it is written."""

    places: tuple[Path, ...]
    out: Path
    master: str | None = None
    inevitable: str | None = None
    """The failing run of which is asked when that became inevitable."""
    branches: int = 100


@dataclass(frozen=True, slots=True)
class Done:
    """An analysis that has come to its end."""

    request: Request
    gathered: Gathered
    found: Analysed
    inevitable: Inevitable | None = None

    @property
    def exit_code(self) -> int:
        """0 if both computations come to the same, 1 if not, 2 if nothing was compared."""
        if self.found.differences:
            return VIOLATED
        return HOLDS if self.found.agreed else UNKNOWN


def analyze(request: Request, finish: Callable[[Done, Path], None]) -> Done:
    """Analyse runs; `finish` writes the last files into the folder before it takes its place.

    Raises Stop, with a sentence, for whatever the user has to mend.
    """
    INTERRUPTS.raise_from_now_on()
    given = gathered(request.places)
    wanted = request.inevitable
    failing = None if wanted is None else checked(given.runs, wanted)
    try:
        find_java()
        return _analyzed(request, given, failing, finish)
    except (PipelineProblem, EnvironmentProblem) as problem:
        raise Stop(USAGE, str(problem)) from None
    except KeyboardInterrupt:
        raise Stop(
            UNKNOWN, f"{INTERRUPTED}: nothing was written, and {request.out} is as it was"
        ) from None


def _analyzed(
    request: Request, given: Gathered, failing: Run | None, finish: Callable[[Done, Path], None]
) -> Done:
    with replacing(request.out) as home, ProgressLine() as line:
        size = sum(Path(run.path).stat().st_size for run in given.runs)
        wanted = Wanted(
            request.master or LOCAL.format(cores()),
            "watchkeeper analyze",
            home / SCRATCH,
            "jvm" if size > LARGE_BYTES else "python",
        )
        line.say("starting Spark")
        with session(wanted) as spark:
            found = analyse(spark, given.runs, given.signatures, given.sweeps, home, line.say)
            turned = (
                None
                if failing is None
                else inevitable(spark, wanted, home, failing, request.branches, line.say)
            )
        done = Done(request, given, found, turned)
        finish(done, home)
    return done
