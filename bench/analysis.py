"""Analysis: every property over millions of events, and ownership overlaps beside DuckDB.

    python bench/analysis.py [--millions 1,20] [--folder DIR] [--json]

Some runs are simulated, and their traces are multiplied, each copy under a name of its own,
until there are so many events. All properties are then computed a second time and compared
with the verdicts; whatever differs ends the bench. The overlaps of ownership alone are also
computed by DuckDB, from the same Parquet, if it is installed (`pip install -e '.[bench]'`);
both have to find the same. Starting Spark is not part of what is timed. Memory is the most
that the JVM and this process held.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of

from watchkeeper import simulate
from watchkeeper.model.trace.trace import Trace
from watchkeeper.pipeline.analysis.control_plane.plans import plans
from watchkeeper.pipeline.analysis.cross_check import compared, differences, second
from watchkeeper.pipeline.analysis.facts.events import Read, events
from watchkeeper.pipeline.analysis.facts.intervals import facts, fetches
from watchkeeper.pipeline.analysis.facts.plan_facts import terms
from watchkeeper.pipeline.analysis.facts.tables import Tables, prepare
from watchkeeper.pipeline.analysis.properties.ownership import number_of, together
from watchkeeper.pipeline.analysis.runs import RecordedVerdict, Run, recorded_table, runs_table
from watchkeeper.pipeline.session import Wanted, session
from watchkeeper.pipeline.sweeps.runner_choice import cores

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

SEEDED = (
    *(("consumer-crash", "documented"), ("session-expiry", "kafka_07")),
    *(("gc-pause-zombie", "kafka_08"), ("broker-crash", "hardened")),
    *(("rebalance-duplicates", "hardened"), ("mirror-crash", "hardened")),
)
SEEDS = range(3)
A_FILE = 1_000_000
"""Events in a file of Parquet, and no more than a run besides."""
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
    spark: SparkSession, made: list[Run], read: list[Read], home: Path, scratch: Path
) -> float:
    """How long it takes to compute and compare all properties."""
    began = time.perf_counter()
    tables = Tables(spark, scratch)
    table = events(spark, home)
    runs = tables.keep("given", runs_table(spark, made, read))
    planned = {run.name: run.plan for run in made if run.plan is not None}
    known = terms(spark, planned)
    kept = type(known)(*(tables.keep(f"terms_{at}", table) for at, table in enumerate(known)))
    recorded = tables.keep("recorded", recorded_table(spark, made))
    found = second(runs, facts(table, tables), kept, plans(spark, planned), tables)
    both = tables.keep("properties", compared(found.properties, recorded, table))
    wrong = differences(both, runs, 3)
    if wrong:
        raise SystemExit(f"the two differ: {wrong}; nothing is worth measuring")
    if both.where("agrees").count() < 10 * len(made):
        raise SystemExit("hardly anything was compared; nothing is worth measuring")
    return time.perf_counter() - began


def spark_overlaps(spark: SparkSession, home: Path) -> tuple[float, tuple[int, int]]:
    """How long Spark takes for the overlaps alone, and what it finds."""
    began = time.perf_counter()
    found = together(number_of(fetches(events(spark, home))))
    row = found.selectExpr("count(*) AS number", "coalesce(sum(seq), 0) AS sum").first()
    assert row is not None, "a sum over nothing is a row, too"
    return time.perf_counter() - began, (int(row.number), int(row.sum))


def duckdb_overlaps(home: Path) -> tuple[float, tuple[int, int]] | None:
    """The same of DuckDB, with as many threads; None if it is not installed."""
    if find_spec("duckdb") is None:
        return None
    import duckdb

    with closing(duckdb.connect()) as connection:
        connection.execute(f"SET threads = {cores()}")
        began = time.perf_counter()
        row = connection.execute(OVERLAPS.format(files=home / "*.parquet")).fetchone()
        took = time.perf_counter() - began
    assert row is not None, "a sum over nothing is a row, too"
    return took, (int(row[0]), int(row[1] or 0))


def peak_gb(spark: SparkSession) -> float:
    """The most memory that the JVM and this process have held."""
    assert spark.sparkContext._gateway is not None, "the session runs"
    pids = ("self", str(spark.sparkContext._gateway.proc.pid))
    return sum(map(_peak_kb, pids)) / (1 << 20)


def _peak_kb(pid: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def sizes(text: str) -> list[float]:
    """Some numbers, the smallest first."""
    return sorted(float(number) for number in text.split(","))


def measure(millions: list[float], folder: Path) -> Report:
    """Measure one size after the other, each with a session of its own."""
    report = Report(
        "Analysis: every property a second time, and the overlaps of ownership alone",
        ("events", "runs", "properties s", "events/s", "peak GB", "overlaps s", "DuckDB s"),
        notes=[
            f"Spark as local[{cores()}]; DuckDB with as many threads; wall time.",
            "The time for the largest is compared with the time for the smallest.",
        ],
    )
    known = simulated()
    took: list[tuple[float, float]] = []
    for million_rows in millions:
        home, scratch = folder / "events", folder / "tables"
        made, read = multiplied(known, int(million_rows * 1e6), home)
        total = sum(part.events for part in read)
        wanted = Wanted(f"local[{cores()}]", "bench", folder / ".spark", "jvm", patience_s=600)
        with session(wanted) as spark:
            prepare(spark, total)
            all_s = properties_s(spark, made, read, home, scratch)
            alone_s, found = spark_overlaps(spark, home)
            memory = peak_gb(spark)
        other = duckdb_overlaps(home)
        if other is not None and other[1] != found:
            raise SystemExit(f"Spark finds {found}, DuckDB {other[1]}; one of them is wrong")
        figures = (total, len(made), all_s, total / all_s, memory, alone_s)
        report.rows.append([*map(number, figures), "-" if other is None else number(other[0])])
        report.data.setdefault("sizes", []).append(
            {
                **dict(
                    zip(("events", "runs", "seconds", "rate", "peak_gb"), figures, strict=False)
                ),
                "overlaps": found[0],
                "overlaps_s": alone_s,
                "duckdb_s": None if other is None else other[0],
            }
        )
        took.append((all_s, memory))
        print(f"{total:,} events: {all_s:.1f} s", file=sys.stderr, flush=True)
        shutil.rmtree(home)
        shutil.rmtree(scratch)
    report.bars += list(_bars(took))
    return report


def _bars(took: list[tuple[float, float]]) -> Iterator[Bar]:
    if len(took) > 1:
        ratio = took[-1][0] / took[0][0]
        yield Bar("the largest against the smallest", "at most", TIMES, "times", once(ratio))
    yield Bar(
        "peak memory", "at most", MOST_GB, "GB", once(max(gigabytes for _, gigabytes in took))
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--millions", type=sizes, default=[1.0, 20.0], help="of events (1,20)")
    parser.add_argument("--folder", type=Path, help="where it works (a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(options.millions, Path(folder)).show(as_json=options.json)


if __name__ == "__main__":
    main()
