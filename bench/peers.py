"""Ours beside others that do the same, in one run: the ratio is the figure, not the time.

    python bench/peers.py [--only search,join,...] [--rounds 3] [--tlc JAR] [--json]

  search    two-phase commit with `--managers` managers, every state, one thread: this project's
            search, Stateright (built from crates.io if cargo is there) and TLC (`--tlc JAR`).
            CPU seconds; all have to count the same states
  join      one more member joins a group of 4 with 64 partitions: `hardened` and kazoo's
            SetPartitioner, with a settle time of 0.2 s and of 0, on one server. Wall seconds
            until all are at rest; `bench/live.py` has more sizes, and what a join costs
  events    entries of the calendar a second: the kernel of the simulation and bare SimPy, one
            after the other
  append    a broker of 0.7 receives sets of 200 messages, flushed after 500, and a process
            writes and flushes the same to a file. MB a wall second; `bench/broker.py` has more
  overlaps  ownership overlaps in `--events` events, by Spark and by DuckDB from the same
            Parquet, as many threads. Wall seconds without the start of Spark

Participants take turns, another one first in each round. One that cannot take part is left out,
and the reason stands below the table.
"""

from __future__ import annotations

import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import broker
from bench.beside import checkers
from bench.beside.checkers import NotThere, Searched
from bench.beside.contest import OURS, Contest, Measure, in_turns, report_of
from bench.operations import simpy_rate
from bench.support.report import parser_of

from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.engine.latency_profile import DEFAULT
from watchkeeper.sim.engine.random_streams import Streams

FLUSH_MESSAGES = 500
SIZE = (4, 64)
"""Members and partitions of the group that one more joins."""
RECIPES = {"recipe 0.2": "SetPartitioner, 0.2 s", "recipe 0": "SetPartitioner, 0 s"}


# --- search ----------------------------------------------------------------------------


def search(options: Namespace, folder: Path) -> Contest:
    """Two-phase commit, to the end."""
    contest = Contest(f"search, {options.managers} managers", "CPU s", more_is_better=False)
    counted: dict[str, int] = {}

    def measured(who: str, run: Callable[[], Searched]) -> float:
        found = run()
        counted[who] = found.states
        if len(set(counted.values())) > 1:
            raise SystemExit(f"the states differ: {counted}; nothing is worth measuring")
        return found.cpu_s

    runs: dict[str, Callable[[], Searched]] = {OURS: partial(checkers.ours, options.managers)}
    for who, prepared in (("Stateright", _stateright), ("TLC", _tlc)):
        try:
            runs[who] = prepared(options, folder)
        except (NotThere, EnvironmentProblem) as problem:
            contest.missing[who] = str(problem)
    turns: dict[str, Measure] = {who: partial(measured, who, run) for who, run in runs.items()}
    return in_turns(contest, turns, options.rounds)


def _stateright(options: Namespace, folder: Path) -> Callable[[], Searched]:
    program = checkers.built_stateright(folder)
    return partial(checkers.stateright, program, options.managers)


def _tlc(options: Namespace, folder: Path) -> Callable[[], Searched]:
    if options.tlc is None:
        raise NotThere("give the jar of TLC, tla2tools.jar, with --tlc")
    checkers.tlc(options.tlc, 2)  # a small one says whether it runs at all
    return partial(checkers.tlc, options.tlc, options.managers)


# --- join ------------------------------------------------------------------------------


def join(options: Namespace, folder: Path) -> Contest:
    """One more member joins."""
    members, partitions = SIZE
    contest = Contest(f"join, {members} members, {partitions} partitions", "s", False)
    if find_spec("kazoo") is None:
        return _left_out(contest, RECIPES.values(), "kazoo is not installed; pip install kazoo")
    from bench import live

    names = ("hardened", *RECIPES)
    given = Namespace(
        contenders=names,
        repeat=options.rounds,
        servers=1,
        zookeeper=options.zookeeper,
        fetch_every=0.0,
    )
    try:
        found = live.measure(live.Size(members, partitions), given, lambda line: None)
    except EnvironmentProblem as problem:
        return _left_out(contest, RECIPES.values(), str(problem))
    for measured in found:
        who = RECIPES.get(measured.name, OURS)
        if len(measured.joins) < options.rounds:
            contest.missing[who] = measured.failures[0]
        else:
            contest.values[who] = measured.seconds
    return contest


def _left_out(contest: Contest, others: Any, why: str) -> Contest:
    contest.missing = dict.fromkeys(others, why)
    return contest


# --- events ----------------------------------------------------------------------------


def events(options: Namespace, folder: Path) -> Contest:
    """Entries of a calendar, one after the other."""
    contest = Contest("events, one after the other", "/s", more_is_better=True)
    runs = {
        OURS: partial(kernel_rate, options.entries),
        "SimPy": partial(simpy_rate, options.entries, time.process_time),
    }
    return in_turns(contest, runs, options.rounds)


def kernel_rate(entries: int) -> float:
    """Entries a second of the kernel of a simulation."""
    kernel = Kernel(Streams(0), DEFAULT)

    def next_one(left: int) -> None:
        if left:
            kernel.after(1, next_one, left - 1)

    kernel.after(1, next_one, entries - 1)
    began = time.process_time()
    kernel.run_until(entries + 1)
    return entries / (time.process_time() - began)


# --- append ----------------------------------------------------------------------------


def append(options: Namespace, folder: Path) -> Contest:
    """Message sets to a broker, and to a file."""
    contest = Contest(f"append, flushed after {FLUSH_MESSAGES}", "MB/s", more_is_better=True)
    messages = broker.set_of(broker.SET_MESSAGES["200 messages"], is_mixed=True)
    times = max(options.megabytes * 1_000_000 // len(messages), 1)
    settings = (
        *("--set", f"log.flush.interval={FLUSH_MESSAGES}"),
        *("--set", "log.default.flush.scheduler.interval.ms=3600000"),
    )
    logs = str(folder / "logs")
    command = ("-P", "-m", "watchkeeper", "broker", "--port", "0", "--log-dir", logs)
    with broker.serving(*command, *settings) as served:
        broker.append(served, "clicks", messages, 1)
        runs: dict[str, Measure] = {
            OURS: lambda: broker.append(served, "clicks", messages, times).megabytes_s,
            "plain writes": lambda: (
                broker.write(folder / "plain", messages, times, FLUSH_MESSAGES).megabytes_s
            ),
        }
        return in_turns(contest, runs, options.rounds)


# --- overlaps --------------------------------------------------------------------------


def overlaps(options: Namespace, folder: Path) -> Contest:
    """Who fetched a partition while another did: a window over all events."""
    contest = Contest(f"overlaps, {options.events:,} events", "s", more_is_better=False)
    for name, extra in (("pyspark", "spark"), ("duckdb", "bench")):
        if find_spec(name) is None:
            why = f"{name} is not installed; pip install 'watchkeeper[{extra}]'"
            return _left_out(contest, ["DuckDB"], why)
    from bench import analysis

    home = folder / "events"
    _, read = analysis.multiplied(analysis.simulated(), options.events, home)
    answers: set[tuple[int, int]] = set()

    def measured(run: Callable[[], tuple[float, tuple[int, int]]]) -> float:
        found = run()
        answers.add(found[1])
        if len(answers) > 1:
            raise SystemExit(f"the overlaps differ: {answers}; nothing is worth measuring")
        return found[0]

    with analysis.started("spark", folder) as (engine, _):
        engine.prepare(sum(part.events for part in read))
        analysis.overlaps(engine, home)  # the JVM compiles its code in the first run
        runs: dict[str, Measure] = {
            OURS: lambda: measured(lambda: analysis.overlaps(engine, home)),
            "DuckDB": lambda: measured(lambda: analysis.overlaps_by_hand(home)),
        }
        return in_turns(contest, runs, options.rounds)


CONTESTS: dict[str, Callable[[Namespace, Path], Contest]] = {
    "search": search,
    "join": join,
    "events": events,
    "append": append,
    "overlaps": overlaps,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--only", default=",".join(CONTESTS), help="some of them (all)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each runs (3)")
    parser.add_argument("--managers", type=int, default=8, help="of two-phase commit (8)")
    parser.add_argument("--tlc", type=Path, help="tla2tools.jar; without it TLC is left out")
    parser.add_argument("--entries", type=int, default=300_000, help="of the calendar (300,000)")
    parser.add_argument("--megabytes", type=int, default=32, help="to append in a run (32)")
    parser.add_argument("--events", type=int, default=200_000, help="for overlaps (200,000)")
    parser.add_argument(
        "--zookeeper", choices=("java", "python"), default="python", help="for joins (python)"
    )
    parser.add_argument("--folder", help="where to write; on the disk to measure")
    options = parser.parse_args(arguments)
    wanted = options.only.split(",")
    if unknown := [name for name in wanted if name not in CONTESTS]:
        parser.error(f"--only {unknown[0]}: expected some of {', '.join(CONTESTS)}")
    contests = []
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="peers-", dir=options.folder) as folder:
            contests.append(CONTESTS[name](options, Path(folder)))
    report_of(contests).show(as_json=options.json)


if __name__ == "__main__":
    main()
