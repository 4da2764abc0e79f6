"""The load of brokers' logs into a table, and the progress of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from watchkeeper.console.exit import HOLDS, UNKNOWN, USAGE, Stop
from watchkeeper.console.progress import ProgressLine
from watchkeeper.console.signals import INTERRUPTED, INTERRUPTS
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.brokers.broker_log import BrokerLog
from watchkeeper.pipeline.kafkalog.logs import Log
from watchkeeper.pipeline.kafkalog.options import Options, options_of
from watchkeeper.pipeline.kafkalog.scan.folders import PROPERTIES, IdFrom
from watchkeeper.pipeline.loading.commits import Held, LogKey, held
from watchkeeper.pipeline.loading.load import Progress, Sum, load_logs
from watchkeeper.pipeline.loading.load_task import Loaded, LoadTask, load
from watchkeeper.pipeline.loading.table import LOADING, commits_in
from watchkeeper.pipeline.session import Wanted
from watchkeeper.pipeline.sweeps.runner_choice import POOL_FROM_S, cores
from watchkeeper.pipeline.sweeps.runners import Pool, Process, Runner
from watchkeeper.pipeline.sweeps.spark import Spark
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.java import find_java

BYTES_PER_S = 50e6
"""The approximate load rate of one core, in bytes a second."""
SCRATCH = f"{LOADING}/spark"
BY = {
    IdFrom.CALLER: "as --broker says",
    IdFrom.PROPERTIES: f"by the file {PROPERTIES}; --broker ID names another",
    IdFrom.FOLDER: "by the name of the folder; --broker ID names another",
    IdFrom.NOTHING: "since nothing names one; --broker ID names another",
}
"""Where the id of a broker comes from, in words."""


@dataclass(frozen=True, slots=True)
class Means:
    """The resources of a load; the table does not depend on them."""

    runner: str = "auto"
    master: str | None = None
    jobs: int | None = None
    compression: str = "snappy"


@dataclass(frozen=True, slots=True)
class Done:
    """A load that has come to its end."""

    out: Path
    sum: Sum
    seconds: float

    @property
    def exit_code(self) -> int:
        """4 if something could not be loaded."""
        return USAGE if self.sum.problems else HOLDS


def options(given: dict[str, str | None]) -> Options:
    """Return the options of the data source; raise Stop for invalid ones."""
    try:
        return options_of({name: value for name, value in given.items() if value is not None})
    except PipelineProblem as problem:
        raise Stop(USAGE, str(problem)) from None


def run(asked: Options, out: Path, means: Means, say: Callable[[str], None]) -> Done:
    """Load logs into a table, or go on with it; `say` gets lines about brokers and runner.

    Raises Stop, with a sentence, where nothing could be begun.
    """
    INTERRUPTS.raise_from_now_on()
    began = monotonic()
    try:
        with ProgressLine(every_s=0.5) as line:
            found = load_logs(
                asked,
                out,
                lambda logs, tasks: _run(logs, list(tasks), means, out, say),
                compression=means.compression,
                tell=_teller(line, began),
            )
    except PipelineProblem as problem:
        raise Stop(USAGE, str(problem)) from None
    except KeyboardInterrupt:
        raise Stop(
            UNKNOWN,
            f"{INTERRUPTED}: what was loaded is kept in {out}; the same command goes on",
        ) from None
    return Done(out, found, monotonic() - began)


def _teller(line: ProgressLine, began: float) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        if line.is_due:
            rate = progress.done_bytes / max(monotonic() - began, 0.001)
            left_s = (progress.all_bytes - progress.done_bytes) / max(rate, 1)
            line.say(
                f"{progress.messages:,} messages, {progress.done_bytes / 1e6:,.0f} of "
                f"{progress.all_bytes / 1e6:,.0f} MB, {left_s:.0f} s left"
            )

    return tell


# --- who does it -----------------------------------------------------------------------


def _run(
    logs: list[Log],
    tasks: list[LoadTask],
    means: Means,
    out: Path,
    say: Callable[[str], None],
) -> Iterator[list[Loaded]]:
    for line in sorted(set(map(_of_broker, logs))):
        say(line)
    if not tasks:
        say("runner  process: there is nothing new")
        return
    runner, why = _runner(tasks, means, out)
    with runner:
        say(f"runner  {runner.name}: {why}")
        for _, done in runner.each(load, tasks):
            yield done


def _of_broker(log: Log) -> str:
    """The line that says from which broker a log is, and why."""
    if isinstance(log, BrokerLog):
        return f"broker  {log.broker} at {log.address}, of Kafka {log.format}"
    where = f"{log.broker} for the logs in {_seen_from_here(log.home)}"
    return f"broker  {where}, {BY[log.id_from]}"


def _seen_from_here(folder: Path) -> Path:
    """A folder as one would type it: relative, if it is below the current folder."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _runner(tasks: Iterable[LoadTask], means: Means, out: Path) -> tuple[Runner, str]:
    """Who loads, and why."""
    size_bytes = sum(split.size_bytes for task in tasks for split in task.splits)
    jobs = means.jobs or cores()
    about = f"{size_bytes / 1e6:,.0f} MB"
    if means.runner == "process":
        return Process(), f"{about}, as requested"
    if means.runner == "pool":
        return Pool(jobs), f"{about}, as requested"
    is_small = size_bytes / BYTES_PER_S < POOL_FROM_S
    if means.runner == "auto" and means.master is None and is_small:
        return Process(), f"{about}, not worth starting others"
    try:
        find_java()
    except EnvironmentProblem as problem:
        raise PipelineProblem(f"{problem}; or choose --runner pool") from None
    master = means.master or f"local[{jobs}]"
    wanted = Wanted(master, "watchkeeper load", out / SCRATCH, "python", cores=means.jobs)
    return Spark(wanted), f"{about} by {master}"


# --- how far it has come ---------------------------------------------------------------


def reached(out: Path) -> dict[LogKey, Held]:
    """Return the table's part of each log; raise Stop if there is no table."""
    try:
        found = held(commits_in(out))
    except PipelineProblem as problem:
        raise Stop(USAGE, str(problem)) from None
    if not found:
        raise Stop(USAGE, f"{out} holds nothing yet; name the folder that logs were loaded into")
    return found
