"""How soon a group is at rest, for real, when one more member joins: ours beside kazoo's recipe.

    python bench/live.py [--sizes 4x64,8x256,32x1024] [--repeat 20] [--json]

Side by side, on one embedded server: `hardened` (0.7 layout), `kafka_08` (0.8 layout, which
is the only one it has), and kazoo's `SetPartitioner` with a settle time of 0.2 s and of 0.
Every member of every group is a Python process of its own that was started beforehand; all
groups stand there all the time, at rest but for the one that is joined. N members hold
everything, one more comes, and leaves again when it has been measured. The contenders take
turns, in another order each round, so that what else the machine does falls on all alike;
the first round is not counted.

Clocked is from the newcomer's request to be registered (it is connected by then) to the
moment at which the last member came to rest, as the members have written it down; what rest
is, and how it is checked, is in `support/group_join.py`. Our members run as in a live run, by the
same driver and client, and write their whole trace, two rows a request; the recipe's write
a row a state. Unless `--fetch-every` is given, ours fetch no messages, as the recipe's do
not: each step of a rebalance is taken, the one that waits until fetching has stopped too,
but nothing has to stop, and there is no position to commit. With `--fetch-every` they fetch
from broker processes, wait until that has stopped, and commit before they let go.

What `kafka_08` does when a claim is in the way is to sleep (`rebalance.backoff.ms`, 2000 by
default) and to try again (`rebalance.max.retries`, 4); what it has slept on the way to rest
is printed beside it.

The floor
  What any protocol has to do that has one ephemeral a claim, learns of members by watching
  the list of them, reads what a member wants from its registration, and goes on from
  committed offsets. N members were there, B brokers; M partitions change hands, F members
  give one up, G are given one. Requests, with a multi counted as one:

    the newcomer      registers; reads the list, N registrations, and where the partitions
                      are: 0.7 the topic's list of brokers, and of each broker its
                      partitions and its address; 0.8 one znode     1 + 1 + N + (1 + 2 B | 1)
    each old member   reads the list again, which leaves the watch again, and the
                      newcomer's registration                                           2 N
    who gives up      one multi                                                           F
    who is given      one multi, and the offset of each partition                     G + M

  Round trips, one after the other, on the way to rest: the newcomer's registration; an old
  member reads the list, then the new registration, then lets go; the new owner claims
  it and reads the offset, and those two can be sent together. That is 5. Not counted are
  the two notifications in between, half a round trip each: that a member has come, and
  that a claim has gone.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.contenders import BROKERS, GROUP, Ours, Recipe, plan_of
from bench.support.group_join import Change, Group, Join, NotAtRest
from bench.support.report import Bar, Report, number, parser_of, spread
from kazoo.client import KazooClient

from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

SIZES = "4x64,8x256,32x1024"
CONTENDERS = ("hardened", "kafka_08", "recipe 0.2", "recipe 0")
AGAINST = "recipe 0.2"
TIMES_FASTER = 8.0
TRIPS_FLOOR = 5
TRIES = 3
"""How often a group is given another chance when it has not come to rest."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many members are there, and how many partitions."""

    members: int
    partitions: int

    def __str__(self) -> str:
        return f"{self.members}x{self.partitions}"


@dataclass(slots=True)
class Measured:
    """What was measured of one contender at one size."""

    name: str
    size: Size
    joins: list[Join] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Why it was not at rest, as often as it was not."""

    @property
    def seconds(self) -> list[float]:
        """How long each join took."""
        return [join.seconds for join in self.joins]

    @property
    def middle(self) -> Join:
        """The join whose time is nearest to the median."""
        ordered = sorted(self.joins, key=lambda join: join.seconds)
        return ordered[(len(ordered) - 1) // 2]


def floor_of(size: Size, layout: str, change: Change) -> int:
    """The requests that are needed at least; see the beginning of this file."""
    where = 1 + 2 * BROKERS if layout == "0.7" else 1
    newcomer = 1 + 1 + size.members + where
    return newcomer + 2 * size.members + change.losers + change.gainers + change.moved


# --- measuring -------------------------------------------------------------------------


class Bench:
    """One size: a server, and a group of each contender."""

    def __init__(
        self, size: Size, options: Namespace, folder: Path, operator: KazooClient
    ) -> None:
        self.size = size
        self.fetch_every_s = options.fetch_every
        self.folder = folder
        self.operator = operator
        self.begin_ns = time.monotonic_ns()
        self.nodes = [f"{GROUP}/{number}" for number in range(size.members + 1)]

    def group(self, name: str) -> Group:
        """The group of a contender, without members yet."""
        folder = self.folder / name.replace(" ", "-")
        if not name.startswith("recipe"):
            layout = LAYOUTS[name]
            plan = plan_of(name, layout, self.size.members, self.size.partitions)
            return Ours(name, self.operator, plan, folder, self.begin_ns, self.fetch_every_s)
        settle_s = float(name.removeprefix("recipe "))
        names = [f"clicks-{number}" for number in range(self.size.partitions)]
        path = name.replace(" ", "-")
        return Recipe(path, self.operator, names, folder, self.begin_ns, settle_s)

    def one_join(self, group: Group, measured: Measured) -> None:
        """Let one member join and leave again."""
        newcomer = self.nodes[-1]
        try:
            measured.joins.append(group.join(newcomer))
        except NotAtRest as error:
            measured.failures.append(str(error))
        for _ in range(TRIES):
            try:
                if newcomer in group.members:
                    group.leave(newcomer)
                else:
                    group.wait_for_rest()
            except NotAtRest as error:
                measured.failures.append(f"after leaving: {error}")
            else:
                return
        raise NotAtRest(f"{group.name} has not come to rest again, so nothing can be clocked")


LAYOUTS = {"hardened": "0.7", "kafka_08": "0.8"}


@contextmanager
def bench_of(size: Size, options: Namespace) -> Iterator[Bench]:
    """A server of its own for one size, and a folder; nothing of them is left."""
    folder = Path(tempfile.mkdtemp(prefix="watchkeeper-bench-"))
    try:
        zookeeper = Implementation(options.zookeeper)
        with ensemble_of(zookeeper, options.servers, inside=folder) as ensemble:
            operator = KazooClient(ensemble.hosts, timeout=10.0)
            operator.start()
            try:
                yield Bench(size, options, folder, operator)
            finally:
                operator.stop()
                operator.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(size: Size, options: Namespace, tell: Callable[[str], None]) -> list[Measured]:
    """Measure every contender at one size, in turns."""
    found = {name: Measured(name, size) for name in options.contenders}
    with bench_of(size, options) as bench, ExitStack() as stack:
        groups = {name: bench.group(name) for name in options.contenders}
        for name, group in groups.items():
            stack.callback(group.close)
            tell(f"{size}: {name} forms its group")
            group.form(bench.nodes[:-1])
        for turn in range(options.repeat + 1):
            for name in rotated(options.contenders, turn):
                tell(f"{size}: join {turn} of {options.repeat}, {name}")
                counted = found[name] if turn else Measured(name, size)
                bench.one_join(groups[name], counted)
    return list(found.values())


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """The same names, another one first."""
    at = turn % len(names)
    return [*names[at:], *names[:at]]


# --- what is said ----------------------------------------------------------------------


def report_of(measured: list[Measured], options: Namespace) -> Report:
    """The table and the bars."""
    fetching = (
        f"fetching every {options.fetch_every:g} s" if options.fetch_every else "no fetching"
    )
    report = Report(
        f"One member joins: seconds until the group is at rest ({options.repeat} joins each, "
        f"{options.servers} embedded server(s) in {options.zookeeper}, ours with {fetching})",
        (
            *("members", "partitions", "", "best s", "median s", "worst s", "ratio", "slept s"),
            *("requests", "floor", "trips", "floor", "moved", "not at rest"),
        ),
        data={"runs": [as_json(run) for run in measured]},
    )
    against = {run.size: run for run in measured if run.name == AGAINST}
    report.rows = [row_of(run, against.get(run.size)) for run in measured if run.joins]
    for run in measured:
        if run.name == "hardened" and run.joins:
            report.bars.extend(bars_of(run, measured))
    report.notes = [
        "ratio: how many times as long the recipe with a settle time of 0.2 s took (medians).",
        "trips: round trips one after the other on the way to rest; of the recipe, those of",
        "the member with the most requests, since it sends one at a time.",
        *(f"{run.name} at {run.size}: {why}" for run in measured for why in run.failures),
    ]
    return report


def row_of(measured: Measured, against: Measured | None) -> list[str]:
    """One contender at one size."""
    middle, median = measured.middle, statistics.median(measured.seconds)
    ratio = "-"
    if against is not None and against.joins:
        ratio = f"{statistics.median(against.seconds) / median:.1f}"
    layout = LAYOUTS.get(measured.name)
    return [
        str(measured.size.members),
        str(measured.size.partitions),
        f"{measured.name} ({layout})" if layout else f"{measured.name} s",
        *(f"{value:.3f}" for value in (min(measured.seconds), median, max(measured.seconds))),
        ratio,
        f"{middle.cost.slept_s:.1f}" if layout else "-",
        number(middle.cost.operations),
        number(floor_of(measured.size, layout, middle.change)) if layout else "-",
        number(middle.cost.trips),
        str(TRIPS_FLOOR) if layout else "-",
        number(middle.change.moved),
        str(len(measured.failures)),
    ]


def bars_of(ours: Measured, measured: list[Measured]) -> Iterator[Bar]:
    """What `hardened` has to reach at one size."""
    others = {run.name: run for run in measured if run.size == ours.size and run.joins}
    mine = spread(ours.seconds)
    if AGAINST in others:
        theirs = spread(others[AGAINST].seconds)
        ratio = spread([theirs.median / mine.median])
        what = f"{ours.size}: times as fast as the recipe at 0.2 s"
        yield Bar(what, "at least", TIMES_FASTER, "times", ratio)
    if "recipe 0" in others:
        median = statistics.median(others["recipe 0"].seconds)
        yield Bar(f"{ours.size}: faster than the recipe at 0 s", "less than", median, "s", mine)


def as_json(measured: Measured) -> dict[str, object]:
    """All that was measured of one contender at one size."""
    return {
        "contender": measured.name,
        "members": measured.size.members,
        "partitions": measured.size.partitions,
        "layout": LAYOUTS.get(measured.name),
        "joins": [
            {
                **asdict(join),
                "floor": floor_of(measured.size, LAYOUTS[measured.name], join.change),
            }
            if measured.name in LAYOUTS
            else asdict(join)
            for join in measured.joins
        ],
        "failures": measured.failures,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--sizes", default=SIZES, help=f"members x partitions ({SIZES})")
    parser.add_argument("--repeat", type=int, default=20, help="joins of each contender (20)")
    parser.add_argument("--servers", type=int, default=1, help="servers of the ensemble (1)")
    parser.add_argument(
        "--zookeeper",
        choices=[*Implementation],
        default=Implementation.JAVA,
        help="Apache's server or the one in Python (java)",
    )
    parser.add_argument(
        "--fetch-every", type=float, default=0.0, help="seconds; 0 for no fetching (0)"
    )
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="which (all)")
    options = parser.parse_args(arguments)
    options.contenders = options.contenders.split(",")
    measured: list[Measured] = []
    for text in options.sizes.split(","):
        members, _, partitions = text.partition("x")
        size = Size(int(members), int(partitions))
        measured += measure(size, options, lambda line: print(line, file=sys.stderr))
    report_of(measured, options).show(as_json=options.json)


if __name__ == "__main__":
    main()
