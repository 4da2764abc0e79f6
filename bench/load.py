"""How many messages a second are loaded from logs into Parquet, on two cores.

    python bench/load.py [--messages 2000000] [--rounds 5] [--only spark,source] [--json]

The logs are of Kafka 0.7, in two partitions, with payloads of 100 bytes: lines of a web
server's log. They are loaded by

  process  this process, into the table that `watchkeeper load` writes
  pool     two processes, into the same
  spark    two tasks of a local Spark, into the same
  source   the data source: `spark.read.format("kafkalog")`, written by Spark as Parquet
  read     the data source alone: Spark takes every row and writes nothing

and beside them `cat` reads the same files. Files are in the pagecache, and a round of each
before the first lets the JVM compile what it needs. A session and a pool are started before
the clock is. Each table is looked at after its round: every message has to be in it.

Wall time is what one waits for; CPU time, of all processes together, is what it costs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow.dataset as dataset
from bench.decode import lines, set_07
from bench.support.report import Bar, Report, Spread, cpu_used, number, parser_of, spread

from watchkeeper.model.log.format.codecs import CODECS_07, Codec
from watchkeeper.pipeline.kafkalog.options import options_of
from watchkeeper.pipeline.kafkalog.source import register
from watchkeeper.pipeline.loading.load import load_logs
from watchkeeper.pipeline.loading.load_task import Loaded, LoadTask, load
from watchkeeper.pipeline.session import Wanted, session
from watchkeeper.pipeline.sweeps.runners import Pool, Process, Runner
from watchkeeper.pipeline.sweeps.spark import Spark

PER_SECOND = 1_000_000.0
CORES = 2
PAYLOAD_BYTES = 100
DIFFERENT = 20_000
"""How many payloads there are; a log has them again and again."""
PATHS = ("process", "pool", "spark", "source", "read")
Load = Callable[[Path, Path], None]
"""From a folder of logs into a table."""


@dataclass(frozen=True, slots=True)
class Took:
    """What one load took."""

    wall_s: float
    cpu_s: float


# --- what is loaded --------------------------------------------------------------------


def make_logs(home: Path, messages: int, codec: Codec) -> None:
    """Write a log for each core, with its share of the messages."""
    share = messages // CORES
    some = lines(min(DIFFERENT, share), PAYLOAD_BYTES)
    data = set_07(some, codec)
    for partition in range(CORES):
        folder = home / f"clicks-{partition}"
        folder.mkdir(parents=True)
        with (folder / f"{0:020d}.kafka").open("wb") as file:
            for _ in range(share // len(some)):
                file.write(data)
            file.write(set_07(some[: share % len(some)], codec))


def cat(home: Path) -> float:
    """How long `cat` takes to read the files."""
    files = [str(path) for path in sorted(home.rglob("*.kafka"))]
    began = time.perf_counter()
    subprocess.run(["cat", *files], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


# --- who loads -------------------------------------------------------------------------


def by_runner(runner: Runner) -> Load:
    """Load as the command does."""

    def run(_: object, tasks: Iterable[LoadTask]) -> Iterator[list[Loaded]]:
        return (done for _, done in runner.each(load, tasks))

    def load_all(home: Path, out: Path) -> None:
        done = load_logs(options_of({"path": str(home)}), out, run, tell=lambda _: None)
        if done.problems:
            raise SystemExit(done.problems[0])

    return load_all


def by_source(spark: Any, *, writes: bool) -> Load:
    """Load through the data source."""

    def load_all(home: Path, out: Path) -> None:
        writer = spark.read.format("kafkalog").load(str(home)).write
        if writes:
            writer.parquet(str(out))
        else:
            writer.format("noop").mode("overwrite").save()

    return load_all


def loaders(only: Sequence[str], scratch: Path, opened: ExitStack) -> dict[str, Load]:
    """Those that are wanted, ready to load."""
    made: dict[str, Load] = {}
    if "process" in only:
        made["process"] = by_runner(opened.enter_context(Process()))
    if "pool" in only:
        made["pool"] = by_runner(opened.enter_context(Pool(CORES)))
    if set(only) & {"spark", "source", "read"}:
        wanted = Wanted(f"local[{CORES}]", "bench", scratch, "jvm", patience_s=600, core_s=600)
        spark = opened.enter_context(session(wanted))
        register(spark)
        made |= {
            "spark": by_runner(opened.enter_context(Spark(wanted))),
            "source": by_source(spark, writes=True),
            "read": by_source(spark, writes=False),
        }
    return {name: made[name] for name in only}


def measured(work: Load, home: Path, out: Path, messages: int, *, is_table: bool) -> Took:
    """Load once, and see that all is there."""
    shutil.rmtree(out, ignore_errors=True)
    cpu, began = cpu_used(), time.perf_counter()
    work(home, out)
    took = Took(time.perf_counter() - began, cpu_used() - cpu)
    if is_table and dataset.dataset(out).count_rows() != messages:
        raise SystemExit(f"{dataset.dataset(out).count_rows()} of {messages} messages are there")
    return took


# --- the report ------------------------------------------------------------------------


def add_rows(
    report: Report,
    codec: str,
    size: int,
    found: dict[str, list[Took]],
    cats: Spread,
    messages: int,
) -> None:
    """A row for each of those that loaded, and the bars."""
    for name, several in found.items():
        rates = spread([messages / run.wall_s for run in several], higher_is_better=True)
        cpu_us = spread([run.cpu_s / messages * 1e6 for run in several])
        ratio = messages / rates.median / cats.median
        row = (
            number(rates.best),
            number(rates.median),
            f"{cpu_us.median:.2f}",
            number(size * rates.median / messages / 1e6),
            number(ratio),
        )
        report.rows.append([codec, name, *row])
        report.data.setdefault("runs", []).append(
            {
                "codec": codec,
                "by": name,
                "per_second": asdict(rates),
                "cpu_us": asdict(cpu_us),
                "times_cat": ratio,
                "bytes": size,
            }
        )
        if name in ("spark", "source"):
            what = f"{name}, {'plain' if codec == 'none' else codec}"
            report.bars.append(Bar(what, "at least", PER_SECOND, "messages/s", rates))


def measure(messages: int, rounds: int, only: Sequence[str]) -> Report:
    """Load everything with every contender, round by round in turn."""
    messages -= messages % CORES
    report = Report(
        f"{messages:,} messages of {PAYLOAD_BYTES} bytes into Parquet on {CORES} cores, "
        f"{rounds} rounds",
        ("codec", "by", "best/s", "median/s", "CPU us", "MB/s", "times cat"),
    )
    with tempfile.TemporaryDirectory(prefix="watchkeeper-load-") as folder, ExitStack() as opened:
        place = Path(folder)
        who = loaders(only, place / "scratch", opened)
        for codec in sorted(CODECS_07):
            home, out = place / codec.name, place / "out"
            make_logs(home, messages, codec)
            size = sum(path.stat().st_size for path in home.rglob("*.kafka"))
            found: dict[str, list[Took]] = {name: [] for name in who}
            cats = []
            for at, name in enumerate(islice(cycle(who), (rounds + 1) * len(who))):
                cats.append(cat(home))
                took = measured(who[name], home, out, messages, is_table=name != "read")
                if at >= len(who):  # the first round warms up
                    found[name].append(took)
            add_rows(report, codec.name.lower(), size, found, spread(cats), messages)
            shutil.rmtree(home)
    report.notes.append(
        "'times cat' is how many times as long as `cat` it took to read the same files."
    )
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--messages", type=int, default=2_000_000, help="in all (2,000,000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run (5)")
    parser.add_argument("--only", default=",".join(PATHS), help=f"of {','.join(PATHS)}")
    options = parser.parse_args(arguments)
    only = options.only.split(",")
    if set(only) - set(PATHS):
        parser.error(f"--only {options.only}: expected some of {','.join(PATHS)}")
    measure(options.messages, options.rounds, only).show(as_json=options.json)


if __name__ == "__main__":
    main()
