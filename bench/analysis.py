"""Analysis: every property over millions of events, on each engine, and ownership overlaps.

    python bench/analysis.py [--millions 1,20] [--engines duckdb,spark] [--folder DIR] [--json]
    python bench/analysis.py --runs 32

Some runs are simulated, and their traces are multiplied, each copy under a name of its own,
until there are so many events. All properties are then computed a second time and compared
with the verdicts; whatever differs ends the bench. The overlaps of ownership alone are also
computed by a query that was written for DuckDB, from the same Parquet; all have to find the same.
Starting an engine is not part of what is timed. Memory is the most that this process and the JVM
held. With `--runs` the whole command is timed instead, for run folders.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of

from watchkeeper import simulate
from watchkeeper.api.folder import prepare
from watchkeeper.api.run_files import fill
from watchkeeper.model.trace.trace import Trace
from watchkeeper.pipeline.analysis.control_plane.plans import plans
from watchkeeper.pipeline.analysis.cross_check import compared, differences, second
from watchkeeper.pipeline.analysis.engine.api import sql, using
from watchkeeper.pipeline.analysis.engine.duck import duck
from watchkeeper.pipeline.analysis.engine.engine import Engine
from watchkeeper.pipeline.analysis.engine.spark import SparkEngine
from watchkeeper.pipeline.analysis.facts.events import Read, events
from watchkeeper.pipeline.analysis.facts.intervals import facts, fetches
from watchkeeper.pipeline.analysis.facts.plan_facts import terms
from watchkeeper.pipeline.analysis.facts.tables import Tables
from watchkeeper.pipeline.analysis.properties.ownership import number_of, together
from watchkeeper.pipeline.analysis.runs import RecordedVerdict, Run, recorded_table, runs_table
from watchkeeper.pipeline.session import Wanted, session
from watchkeeper.pipeline.sweeps.runner_choice import cores

if TYPE_CHECKING:
    import pyarrow as pa

SEEDED = (
    *(("consumer-crash", "documented"), ("session-expiry", "kafka_07")),
    *(("gc-pause-zombie", "kafka_08"), ("broker-crash", "hardened")),
    *(("rebalance-duplicates", "hardened"), ("mirror-crash", "hardened")),
)
SEEDS = range(3)
A_FILE = 1_000_000
"""Events in a file of Parquet, and no more than a run besides."""
ENGINES = ("duckdb", "spark")
TIMES = 25.0
MOST_GB = 6.0
OVERLAPS = """
WITH steps AS (
  SELECT run, "group", topic, partition, node, seq,
         json_extract_string(detail, '$.does') AS does
  FROM read_parquet('{files}') WHERE kind = 'fetching'
), spans AS (
  SELECT *, lead(seq) OVER (
    PARTITION BY run, "group", topic, partition, node ORDER BY seq) AS until FROM steps
), points AS (
  SELECT run, "group", topic, partition, seq, 1 AS step FROM spans WHERE does = 'begins'
  UNION ALL
  SELECT run, "group", topic, partition, until, -1 FROM spans
  WHERE does = 'begins' AND until IS NOT NULL
), sums AS (
  SELECT run, "group", topic, partition, seq, sum(step) AS step FROM points GROUP BY ALL
), numbers AS (
  SELECT *, sum(step) OVER (
    PARTITION BY run, "group", topic, partition ORDER BY seq) AS number FROM sums
)
SELECT count(*), coalesce(sum(seq), 0) FROM numbers WHERE number > 1
"""


def simulated() -> list[tuple[Run, Trace]]:
    """The runs that are multiplied, with what was said of them."""
    found = []
    for scenario, variant in SEEDED:
        for seed in SEEDS:
            done = simulate(scenario, variant=variant, seed=seed)
            recorded = tuple(
                RecordedVerdict(
                    finding.claim.name,
                    finding.verdict.value,
                    finding.counts,
                    finding.evidence,
                    finding.at_us,
                )
                for finding in done.findings
            )
            known = Run(
                done.trace.header.run_id,
                "",
                done.trace.header,
                done.fingerprint,
                done.verdict.value,
                recorded,
                plan=done.plan,
            )
            found.append((known, done.trace))
    return found


def multiplied(
    known: list[tuple[Run, Trace]], wanted: int, home: Path
) -> tuple[list[Run], list[Read]]:
    """Write so many events as Parquet; the runs they are of."""
    import pyarrow as pa

    made: list[Run] = []
    read: list[Read] = []
    batch: list[pa.Table] = []
    tables = [_table(trace) for _, trace in known]
    home.mkdir()
    rows = total = 0
    while total < wanted:
        run, trace = known[len(made) % len(known)]
        name = f"{run.name}-copy-{len(made)}"
        table = tables[len(made) % len(known)]
        names = pa.array([name], pa.string()).dictionary_encode()
        batch.append(
            table.append_column(
                "run",
                pa.DictionaryArray.from_arrays(
                    pa.array([0] * len(table), pa.int32()), names.dictionary
                ),
            )
        )
        made.append(replace(run, name=name))
        read.append(Read(name, len(table), trace.end_us, run.fingerprint or "", ""))
        total, rows = total + len(table), rows + len(table)
        if rows >= A_FILE or total >= wanted:
            _write(batch, home / f"part-{len(made):09d}.parquet")
            batch, rows = [], 0
    return made, read


def _table(trace: Trace) -> pa.Table:
    import msgspec
    import pyarrow as pa

    encode = msgspec.json.Encoder(order="deterministic").encode
    columns = ("t_us", "node", "kind", "session", "group", "topic", "partition", "zxid")
    found: dict[str, Any] = {"seq": pa.array(range(len(trace)), pa.int32())}
    for at, name in enumerate(columns):
        found[name] = pa.array([row[at] for row in trace.rows])
    found["detail"] = pa.array([encode(row[8]).decode() for row in trace.rows])
    return pa.table(found)


def _write(batch: list[pa.Table], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole_batch = pa.concat_tables(batch, promote_options="permissive")
    at = whole_batch.schema.get_field_index("run")
    plain = whole_batch.set_column(at, "run", whole_batch.column("run").cast(pa.string()))
    pq.write_table(plain, path, compression="zstd")


# --- what is measured ------------------------------------------------------------------


def properties_s(
    engine: Engine, made: list[Run], read: list[Read], home: Path, scratch: Path
) -> float:
    """How long it takes to compute and compare all properties."""
    began = time.perf_counter()
    tables = Tables(engine, scratch)
    table = events(engine, home)
    runs = tables.keep("given", runs_table(engine, made, read))
    planned = {run.name: run.plan for run in made if run.plan is not None}
    known = terms(engine, planned)
    kept = type(known)(*(tables.keep(f"terms_{at}", table) for at, table in enumerate(known)))
    recorded = tables.keep("recorded", recorded_table(engine, made))
    found = second(runs, facts(table, tables), kept, plans(engine, planned), tables)
    both = tables.keep("properties", compared(found.properties, recorded, table))
    wrong = differences(both, runs, 3)
    if wrong:
        raise SystemExit(f"the two differ: {wrong}; nothing is worth measuring")
    if both.where("agrees").count() < 10 * len(made):
        raise SystemExit("hardly anything was compared; nothing is worth measuring")
    return time.perf_counter() - began


def overlaps(engine: Engine, home: Path) -> tuple[float, tuple[int, int]]:
    """How long the overlaps alone take by the definitions, and what they are."""
    began = time.perf_counter()
    found = together(number_of(fetches(events(engine, home))))
    [row] = (
        found.groupBy()
        .agg(
            sql.count("*").alias("number"), sql.coalesce(sql.sum("seq"), sql.lit(0)).alias("sum")
        )
        .collect()
    )
    return time.perf_counter() - began, (int(row.number), int(row.sum))


def overlaps_by_hand(home: Path) -> tuple[float, tuple[int, int]]:
    """The same by a query that was written for DuckDB, with as many threads."""
    import duckdb

    with closing(duckdb.connect()) as connection:
        connection.execute(f"SET threads = {cores()}")
        began = time.perf_counter()
        row = connection.execute(OVERLAPS.format(files=home / "*.parquet")).fetchone()
        took = time.perf_counter() - began
    assert row is not None, "a sum over nothing is a row, too"
    return took, (int(row[0]), int(row[1] or 0))


@contextmanager
def started(name: str, folder: Path) -> Iterator[tuple[Engine, tuple[str, ...]]]:
    """An engine, with the processes besides this one whose memory counts."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    if name == "duckdb":
        with duck(folder / ".duckdb", cores()) as engine, using(engine.language):
            yield engine, ()
        return
    wanted = Wanted(f"local[{cores()}]", "bench", folder / ".spark", "jvm", patience_s=600)
    with session(wanted) as spark:
        gateway = spark.sparkContext._gateway
        assert gateway is not None, "the session runs"
        found = SparkEngine(spark)
        with using(found.language):
            yield found, (str(gateway.proc.pid),)


def peak_gb(others: tuple[str, ...]) -> float:
    """The most memory that this process and some others have held."""
    return sum(map(_peak_kb, ("self", *others))) / (1 << 20)


def _peak_kb(pid: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def names(text: str) -> list[str]:
    """Some engines."""
    found = text.split(",")
    if unknown := set(found) - set(ENGINES):
        raise ArgumentTypeError(f"{sorted(unknown)[0]!r} is no engine; expected duckdb or spark")
    return found


def sizes(text: str) -> list[float]:
    """Some numbers, the smallest first."""
    return sorted(float(number) for number in text.split(","))


def measure(millions: list[float], engines: list[str], folder: Path) -> Report:
    """Measure one size after the other, each engine by itself."""
    report = Report(
        "Analysis: every property a second time, and the overlaps of ownership alone",
        ("events", "runs", "engine", "properties s", "events/s", "peak GB", "overlaps s"),
        notes=[
            f"{cores()} cores; wall time, without the start of the engine.",
            "The time for the largest is compared with the time for the smallest.",
        ],
    )
    known = simulated()
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    for million_rows in millions:
        home = folder / "events"
        made, read = multiplied(known, int(million_rows * 1e6), home)
        total = sum(part.events for part in read)
        for name in engines:
            row = _row(name, made, read, total, folder)
            by_hand_s, found = overlaps_by_hand(home)
            if found != row.pop("found"):
                raise SystemExit(f"{name} finds other overlaps than {found}; one is wrong")
            figures = (row["seconds"], row["rate"], row["peak_gb"], row["overlaps_s"])
            report.rows.append([number(total), number(len(made)), name, *map(number, figures)])
            report.data.setdefault("sizes", []).append({**row, "by_hand_s": by_hand_s})
            took[name].append((row["seconds"], row["peak_gb"]))
            print(
                f"{total:,} events, {name}: {row['seconds']:.1f} s", file=sys.stderr, flush=True
            )
        shutil.rmtree(home)
    for name in engines:
        report.bars += list(_bars(name, took[name]))
    return report


def _row(
    name: str, made: list[Run], read: list[Read], total: int, folder: Path
) -> dict[str, Any]:
    """The figures of one engine for one size."""
    scratch = folder / "tables"
    with started(name, folder) as (engine, others):
        engine.prepare(total)
        seconds = properties_s(engine, made, read, folder / "events", scratch)
        overlaps_s, found = overlaps(engine, folder / "events")
        memory = peak_gb(others)
    shutil.rmtree(scratch)
    return {
        **{"engine": name, "events": total, "runs": len(made), "seconds": seconds},
        **{"rate": total / seconds, "peak_gb": memory, "overlaps_s": overlaps_s},
        **{"overlaps": found[0], "found": found},
    }


def _bars(name: str, took: list[tuple[float, float]]) -> Iterator[Bar]:
    if len(took) > 1:
        ratio = took[-1][0] / took[0][0]
        yield Bar(
            f"{name}: the largest against the smallest", "at most", TIMES, "times", once(ratio)
        )
    most = max(gigabytes for _, gigabytes in took)
    yield Bar(f"{name}: peak memory", "at most", MOST_GB, "GB", once(most))


def children_s() -> float:
    """The CPU seconds of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command_s(runs: int, engines: list[str], folder: Path) -> Report:
    """How long the command takes for so many runs, from its start to its end."""
    report = Report(
        f"watchkeeper analyze of {runs} runs",
        ("engine", "events", "seconds", "CPU s"),
        notes=["Wall time, and the CPU time of all processes."],
    )
    home = folder / "runs"
    length = 0
    for at in range(runs):
        scenario, variant = SEEDED[at % len(SEEDED)]
        done = simulate(scenario, variant=variant, seed=at)
        length += len(done.trace)
        fill(prepare(home, done.trace.header.run_id), done, pictures=False)
    for name in engines:
        command = [sys.executable, "-m", "watchkeeper", "analyze", str(home), "--engine", name]
        began, used = time.perf_counter(), children_s()
        subprocess.run(
            [*command, "--out", str(folder / "out"), "--json"], check=True, capture_output=True
        )
        seconds, cpu_s = time.perf_counter() - began, children_s() - used
        report.rows.append([name, number(length), number(seconds), number(cpu_s)])
        report.data.setdefault("commands", []).append(
            {
                **{"engine": name, "runs": runs, "events": length},
                **{"seconds": seconds, "cpu_s": cpu_s},
            }
        )
    shutil.rmtree(home)
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--millions", type=sizes, default=[1.0, 20.0], help="of events (1,20)")
    parser.add_argument(
        "--runs", type=int, help="measure the command for so many runs, and nothing else"
    )
    parser.add_argument("--engines", type=names, default=list(ENGINES), help="duckdb,spark")
    parser.add_argument("--folder", type=Path, help="where it works (a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        report = (
            measure(options.millions, options.engines, Path(folder))
            if options.runs is None
            else command_s(options.runs, options.engines, Path(folder))
        )
        report.show(as_json=options.json)


if __name__ == "__main__":
    main()
