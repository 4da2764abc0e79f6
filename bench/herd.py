"""The herd: one more member joins a group of N, and the group comes to rest.

    python bench/herd.py [--members 10,30,100,300,1000] [--out FOLDER] [--json]

The group is `hardened` in the 0.7 layout, with one topic on ten brokers and ten partitions
a consumer. Its N members start at once and come to rest; half a virtual minute later one
more starts. Each N is measured in a process of its own, whose peak memory is the run's.

Reads are counted from the newcomer's start on, each read of a batch as one; commits do
not count. The *minimum* is what members would read that never forget what they have read:

  each old member   the list of members (its watch has fired and must be set again) and
                    the newcomer's registration                                  2 N
  the newcomer      the list, the registrations of the others, the topic's list of
                    brokers, and of each broker its partitions and its address   N + 22
  each new owner    the committed offset of each partition that changes owners   moved

What `hardened` reads beyond that are its own claims, which each member lists once a
rebalance, and claims that are in the way.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of

from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.properties.progress import READS
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.scenarios import from_text
from watchkeeper.sim.world import simulate

BROKERS = 10
PARTITIONS_A_MEMBER = 10
JOINS_US = 30_000_000
LONGEST_S = 120.0
MOST_CPU_S = 10.0
MOST_MB = 2_048.0
BAR_AT = 1000
TIMED_OUT_S = 3600


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured with one number of members."""

    members: int
    form_s: float
    """Wall time until the newcomer starts: N members start at once and come to rest."""
    join_s: float
    """Wall time from then on to the end of the run."""
    judge_s: float
    cpu_s: float
    """CPU time of all of it; less than the wall time where others had the core."""
    peak_mb: float
    reads: int
    minimum: int
    moved: int
    """Partitions that a member began to fetch after the newcomer registered."""
    to_rest_ms: float
    """Virtual time from the newcomer's registration to the group's rest."""
    skew_ms: float
    """Virtual time from the first member that was woken by it to the last."""
    verdict: str

    @property
    def total_s(self) -> float:
        """All of the wall time."""
        return self.form_s + self.join_s + self.judge_s


# --- one run, in a process of its own --------------------------------------------------


def scenario(members: int) -> str:
    """The scenario: so many members at rest, and one that joins."""
    each = -(-members * PARTITIONS_A_MEMBER // BROKERS)
    return json.dumps(
        {
            "name": "herd",
            "about": "One member joins a group of many.",
            "clusters": {
                "main": {
                    "brokers": BROKERS,
                    "layout": "0.7",
                    "topics": {"clicks": {"partitions_per_broker": each}},
                }
            },
            "groups": {
                "billing": {
                    "consumers": [{} for _ in range(members)] + [{"starts": "never"}],
                    "streams": {"clicks": 1},
                    "starts": "1s",
                    "apart": "0s",
                    "fetch_every": "10s",
                    "config": {"zookeeper.session.timeout.ms": 6000},
                }
            },
            "timeline": [{"at": f"{JOINS_US}us", "start": f"billing/{members}"}],
            "settle": "30s",
        }
    )


def reads_after(trace: Trace, since_us: int) -> int:
    """How many reads of the registry the members requested since then."""
    reads = 0
    for event in trace.of_kind(EventKind.REQUEST):
        if event.t_us < since_us or not event.group or event.detail["purpose"] == "commit":
            continue
        if event.detail["op"] in READS:
            reads += 1
        elif event.detail["op"] == "pipelined" and event.detail["parts"][0][0] in READS:
            reads += event.detail["number"]
    return reads


def moved_after(trace: Trace, since_us: int) -> int:
    """Count the partitions that members began to fetch since a moment."""
    return sum(
        event.t_us >= since_us and event.detail["does"] == "begins"
        for event in trace.of_kind(EventKind.FETCHING)
    )


def minimum(members: int, moved: int) -> int:
    """What members would read that forget nothing."""
    old = 2 * members
    newcomer = 1 + members + 1 + 2 * BROKERS
    return old + newcomer + moved


def peak_mb() -> float:
    """The most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1024


def measure_here(members: int, seed: int) -> Run:
    """Run it in this process."""
    plan = from_text("herd.yaml", scenario(members)).plan()
    began, cpu_began = time.perf_counter(), time.process_time()
    joined = began

    def tell(now_us: int, end_us: int) -> None:
        nonlocal joined
        if now_us <= JOINS_US:
            joined = time.perf_counter()

    done = simulate(plan, seed, tell=tell)
    ended = time.perf_counter()
    judgement = judge(plan, done.trace, done.effects)
    judged = time.perf_counter()
    (join,) = [change for change in judgement.changes if change.at_us >= JOINS_US]
    if join.rest_after_us is None:
        raise SystemExit(f"a group of {members} did not come to rest after the join")
    moved = moved_after(done.trace, JOINS_US)
    return Run(
        members=members,
        form_s=joined - began,
        join_s=ended - joined,
        judge_s=judged - ended,
        cpu_s=time.process_time() - cpu_began,
        peak_mb=peak_mb(),
        reads=reads_after(done.trace, JOINS_US),
        minimum=minimum(members, moved),
        moved=moved,
        to_rest_ms=join.rest_after_us / 1000,
        skew_ms=(join.skew_us or 0) / 1000,
        verdict=judgement.verdict.value,
    )


def measure_apart(members: int, seed: int) -> Run:
    """Run it in a process of its own, whose memory is that of this run alone."""
    command = [sys.executable, __file__, "--one", str(members), "--seed", str(seed)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=TIMED_OUT_S, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"the run with {members} members failed")
    return Run(**json.loads(done.stdout))


# --- what is said ----------------------------------------------------------------------


def report_of(runs: list[Run]) -> Report:
    """The table of all runs, and the bars where a run is as large as they ask for."""
    report = Report(
        "One member joins a group of N (hardened, 0.7 layout, 10 brokers, 10 N partitions)",
        (
            *("N", "form s", "join s", "judge s", "total s", "CPU s", "peak MB"),
            *("reads", "minimum", "ratio", "reads a member", "moved", "rest ms", "skew ms"),
            "verdict",
        ),
        data={"runs": [{**asdict(run), "total_s": run.total_s} for run in runs]},
    )
    report.rows = [row_of(run) for run in runs]
    report.notes = [growth(runs)] if len(runs) > 1 else []
    for run in runs:
        if run.members >= BAR_AT:
            what = f"{run.members:,} members, {run.members * PARTITIONS_A_MEMBER:,} partitions"
            total = once(run.total_s)
            report.bars.append(Bar(f"{what}: all of it", "less than", LONGEST_S, "s", total))
            report.bars.append(
                Bar(f"{what}: CPU time", "less than", MOST_CPU_S, "s", once(run.cpu_s))
            )
            report.bars.append(Bar(what, "less than", MOST_MB, "MB", once(run.peak_mb)))
    if any(run.verdict != Verdict.HOLDS.value for run in runs):
        report.notes.append("A run in which something did not hold is no measure of the herd.")
    return report


def row_of(run: Run) -> list[str]:
    """A run as a row of the table."""
    seconds = (run.form_s, run.join_s, run.judge_s, run.total_s, run.cpu_s)
    return [
        str(run.members),
        *(f"{value:.2f}" for value in seconds),
        number(run.peak_mb),
        number(run.reads),
        number(run.minimum),
        number(run.reads / run.minimum),
        number(run.reads / (run.members + 1)),
        number(run.moved),
        f"{run.to_rest_ms:.1f}",
        f"{run.skew_ms:.1f}",
        run.verdict,
    ]


def growth(runs: list[Run]) -> str:
    """How reads and time grow: the exponent between neighbours in the table."""
    steps = []
    for before, after in pairwise(runs):
        reads = exponent(before, after, before.reads, after.reads)
        cpu = exponent(before, after, before.cpu_s, after.cpu_s)
        step = f"{before.members} to {after.members}"
        steps.append(f"{step}: reads N^{reads:.1f}, CPU N^{cpu:.1f}")
    return f"Growth: {'; '.join(steps)}."


def exponent(before: Run, after: Run, low: float, high: float) -> float:
    """The power of N with which something grew from one run to another."""
    return math.log(high / low) / math.log(after.members / before.members)


def plot(runs: list[Run], folder: Path) -> Path:
    """Wall time, memory and reads against N, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    sizes = [run.members for run in runs]
    panels: list[tuple[str, dict[str, list[float]]]] = [
        (
            "wall seconds",
            {
                "form the group": [run.form_s for run in runs],
                "one joins": [run.join_s for run in runs],
                "judge": [run.judge_s for run in runs],
            },
        ),
        ("peak MB", {"memory": [run.peak_mb for run in runs]}),
        (
            "reads for one join",
            {
                "hardened": [run.reads for run in runs],
                "the minimum": [run.minimum for run in runs],
            },
        ),
    ]
    figure, axes = plt.subplots(1, len(panels), figsize=(12, 4), layout="constrained")
    for axis, (title, lines) in zip(axes, panels, strict=True):
        draw_panel(axis, title, sizes, lines)
    figure.suptitle("One member joins a group of N; 10 partitions a member on 10 brokers")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "herd.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def draw_panel(axis: Any, title: str, sizes: list[int], lines: dict[str, list[float]]) -> None:
    """Draw some lines over N, both axes logarithmic."""
    for name, values in lines.items():
        axis.loglog(sizes, values, marker="o", label=name)
    axis.set_title(title)
    axis.set_xlabel("members")
    axis.set_xticks(sizes, [str(size) for size in sizes])
    axis.minorticks_off()
    axis.grid(visible=True, which="both", alpha=0.3)
    axis.legend()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and draw."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument(
        "--members", default="10,30,100,300,1000", help="each N (10,30,100,300,1000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of every run (1)")
    parser.add_argument("--out", type=Path, help="a folder for the plot, herd.png")
    parser.add_argument("--one", type=int, help="measure one N in this process, as JSON")
    options = parser.parse_args(arguments)
    if options.one is not None:
        print(json.dumps(asdict(measure_here(options.one, options.seed))))
        return
    sizes = [int(size) for size in options.members.split(",")]
    runs = [measure_apart(size, options.seed) for size in sizes]
    report = report_of(runs)
    if options.out is not None:
        report.notes.append(f"The plot is {plot(runs, options.out)}.")
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
