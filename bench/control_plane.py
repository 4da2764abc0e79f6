"""What a failover of the controller costs, and how fast replication is simulated.

    python bench/control_plane.py [--rounds 3] [--partitions 100,1000,5000,20000] [--live 5000]
        [--created 80] [--search-minutes 0] [--search-gib 8] [--only-search] [--json]

- **Failover**: a cluster with so many partitions of two replicas loses its controller. Between
  the election of the next one and the end of its failover: requests to ZooKeeper one after the
  other (round trips), the operations in them, requests to brokers, and virtual seconds.
  Followers fetch every five seconds; a failover waits for no fetch.
- **Live**: the same failover of four processes on Apache's ZooKeeper, in seconds; the median of
  the rounds. `--live none` leaves it out, and so does a machine without Java 17. The controller
  is killed when all partitions are surely created, at so many a second (`--created`); of 20,000
  the shipped variant creates 48 a second on an idle machine with two cores.
- **Search**: a partition whose replicas crash, restart with an old checkpoint, lose the reply to
  a write of the ISR, and whose state a deposed controller writes, each once: two replicas, three,
  and three with an epoch more, one after the other for so many minutes (`--search-minutes`; 0
  leaves them out) and in so much memory (`--search-gib`). States with the same future are merged
  and counted once. Progress goes to stderr: levels that are complete, states, the new ones of the
  level, memory.
- **Replication**: simulated messages that three replicas store and confirm, a second of the wall
  clock, one core.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of

from watchkeeper import simulate
from watchkeeper.api.simulate import scenario_of
from watchkeeper.checker.replication.partition import WITHSTOOD, Bounds, Steps
from watchkeeper.checker.replication.search import PROPERTIES, search_steps
from watchkeeper.checker.search.search import Limits, Progress, resident_bytes
from watchkeeper.console.exit import Stop
from watchkeeper.model.replication.variants import HARDENED
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.run.live_run import Where, run_plan_live

PARTITIONS = (100, 1_000, 5_000, 20_000)
LIVE = (5_000,)
SEARCHED = (
    Bounds(replicas=2, log=2, records=2, epochs=3),
    Bounds(replicas=3, log=2, records=2, epochs=2),
    Bounds(replicas=3, log=2, records=2, epochs=3),
)
"""The searches, one after the other as far as time and memory go."""
A_TOPIC = 100
"""Partitions of each topic."""
CREATED_A_SECOND = 80
"""How many of 5,000 partitions are surely created in a second, by either variant, live too."""
MESSAGES_A_SECOND = 2_000
LOAD_S = 10
EVERY_S = 10.0
"""Between two lines of progress."""


class Failover(NamedTuple):
    """What a failover took."""

    round_trips: int
    operations: int
    requests: int
    seconds: float


class Unfinished(Exception):
    """A run ended before the failover that it measures."""


def _cluster(**more: Any) -> dict[str, Any]:
    return {
        "name": "bench",
        "about": "a control plane",
        "clusters": {
            "main": {
                "brokers": 4,
                "layout": "0.8",
                "leaders": "controller",
                "unclean_leader_election": False,
                "replication": {"leader_rebalance": "never"},
                **more,
            }
        },
        "groups": {},
    }


def _loses_controller(partitions: int, created: int = CREATED_A_SECOND) -> dict[str, Any]:
    """A cluster with so many partitions, of which so many a second are created, loses one."""
    topics = {
        f"t{index}": {"partitions": min(A_TOPIC, partitions), "replicas": 2}
        for index in range(max(partitions // A_TOPIC, 1))
    }
    created_s = max(20, partitions // created)
    return {
        **_cluster(
            topics=topics,
            zookeeper={"servers": 1},
            session_timeout="6s",
            replication={"leader_rebalance": "never", "fetch_wait": "5s"},
        ),
        "timeline": [{"at": f"{created_s}s", "crash": "controller"}],
        "settle": f"{created_s}s",
    }


def simulated(variant: str, partitions: int) -> Failover:
    """The failover in simulation."""
    return second_failover(simulate(_loses_controller(partitions), variant=variant, seed=1).trace)


def live(variant: str, partitions: int, created: int) -> Failover:
    """The failover of processes on Apache's ZooKeeper."""
    plan = scenario_of(_loses_controller(partitions, created)).plan(variant)
    _, done = run_plan_live(plan, 0, lambda now_us, end_us: None, Where("java"))
    return second_failover(done.trace)


def second_failover(trace: Trace) -> Failover:
    """Measure the failover of the second controller; Unfinished if it is not in the trace."""
    events = list(trace)
    elected = [event for event in events if event.kind == EventKind.CONTROLLER_ELECTED]
    if len(elected) < 2:
        raise Unfinished("no second controller was elected before the run ended")
    begin = elected[1]
    completed = [event for event in events if event.kind == EventKind.FAILOVER_COMPLETED]
    end = next((event for event in completed if event.seq > begin.seq), None)
    if end is None:
        ran_s = (events[-1].t_us - begin.t_us) / 1e6
        raise Unfinished(
            f"the failover of {begin.node} had not ended after {ran_s:.0f} s, when the run did; "
            "try again on a machine that does nothing else, or with fewer partitions"
        )
    own = [event for event in events[begin.seq : end.seq] if event.node == begin.node]
    asked = [event for event in own if event.kind == EventKind.REQUEST]
    if any(event.detail["purpose"] == "create state" for event in asked):
        raise Unfinished(
            f"{begin.node} still created partitions that its predecessor had not come to: the "
            "figures would not be those of a failover"
        )
    sent = sum(1 for event in own if event.kind == EventKind.CONTROL_SENT)
    operations = sum(event.detail.get("number", 1) for event in asked)
    return Failover(len(asked), operations, sent, (end.t_us - begin.t_us) / 1e6)


def replicated_a_second() -> float:
    """Messages that three replicas store and confirm, a second of the wall clock."""
    scenario = {
        **_cluster(topics={"clicks": {"partitions": 3, "replicas": 3}}),
        "timeline": [
            {
                "at": "3s",
                "produce": "clicks",
                "rate": f"{MESSAGES_A_SECOND}/s",
                "acks": "all",
                "for": f"{LOAD_S}s",
            }
        ],
        "settle": "5s",
    }
    began = time.perf_counter()
    result = simulate(scenario, variant="hardened", seed=1)
    took_s = time.perf_counter() - began
    confirmed = sum(
        len(event.detail["numbers"]) for event in result.trace.of_kind(EventKind.ACKNOWLEDGED)
    )
    assert confirmed > 0.9 * MESSAGES_A_SECOND * LOAD_S, "producers were served"
    return confirmed / took_s


def parsed() -> Namespace:
    """The options of this command."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of replication (3)")
    shown = ",".join(map(str, PARTITIONS))
    parser.add_argument("--partitions", default=shown, help=f"clusters of so many ({shown})")
    lives = ",".join(map(str, LIVE))
    parser.add_argument(
        "--live", default=lives, help=f"live clusters of so many ({lives}), or none"
    )
    parser.add_argument(
        "--created",
        type=int,
        default=CREATED_A_SECOND,
        help=f"live, so many partitions are surely created in a second ({CREATED_A_SECOND})",
    )
    parser.add_argument("--search-minutes", type=float, default=0, help="search so long (0)")
    parser.add_argument("--search-gib", type=float, default=8, help="in so much memory (8)")
    parser.add_argument("--only-search", action="store_true", help="nothing but the search")
    return parser.parse_args()


class Told:
    """Prints the progress of a search, about every ten seconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.next_s = EVERY_S
        self.bytes = 0
        """The largest resident memory so far."""

    def __call__(self, progress: Progress) -> None:
        self.bytes = max(self.bytes, resident_bytes())
        if progress.seconds >= self.next_s:
            self.next_s = progress.seconds + EVERY_S
            print(
                f"{self.name}: {progress.depth} levels, {progress.states:,} states, "
                f"{progress.frontier:,} new, {progress.seconds:.0f} s, "
                f"{self.bytes / 2**30:.2f} GiB",
                file=sys.stderr,
                flush=True,
            )


def search_in_turn(report: Report, seconds: float, memory: int) -> None:
    """Search within one bound after the other, as long as one has come to its end."""
    end = time.monotonic() + seconds
    for bounds in SEARCHED:
        left_s = max(0.0, end - time.monotonic())
        if not search_to_the_end(report, bounds, Limits(None, left_s, memory)):
            return


def search_to_the_end(report: Report, bounds: Bounds, limits: Limits) -> bool:
    """Search a partition of `hardened` under all faults that it has to withstand.

    Returns whether every state was seen.
    """
    name = f"search, {bounds}"
    told = Told(name)
    gc.disable()  # a search makes no cycles, and the collector would look at each state
    began = time.perf_counter()
    found = search_steps(
        Steps(HARDENED, bounds._replace(faults=WITHSTOOD)),
        {"strong ISR": PROPERTIES["strong ISR"]},
        limits=limits,
        tell=told,
        merges=True,
    )
    took_s = time.perf_counter() - began
    gc.enable()
    end = "violated" if found.counterexamples else found.stopped or "every state seen"
    figures = {
        "states": found.states,
        "transitions": found.transitions,
        "levels": found.depth,
        "gib": told.bytes / 2**30,
        "seconds": took_s,
        "end": end,
        "counterexamples": found.counterexamples,
    }
    report.data[name] = figures
    counts = (f"{found.states:,} states", f"{found.depth} levels", f"{figures['gib']:.2f} GiB")
    report.rows.append([name, end, *counts, number(took_s)])
    return found.is_complete


def _sizes(text: str) -> list[int]:
    return [] if text == "none" else [int(one) for one in text.split(",")]


def measure_live(report: Report, partitions: int, rounds: int, created: int) -> None:
    """Compare the two variants live, in turn."""
    names = ("kafka_08", "hardened")
    runs: dict[str, list[Failover]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            runs[name].append(live(name, partitions, created))
    took_s = {name: statistics.median(one.seconds for one in runs[name]) for name in names}
    for name in names:
        report.rows.append(_row(f"{partitions} live", name, runs[name][-1], took_s[name]))
    sooner = took_s["kafka_08"] / took_s["hardened"]
    what = f"sooner live, {partitions} partitions"
    report.bars.append(Bar(what, "at least", 5, "times", once(sooner)))
    report.data[f"{partitions} live"] = {
        name: [one._asdict() for one in runs[name]] for name in names
    }


def _row(partitions: str, name: str, cost: Failover, seconds: float) -> list[str]:
    counts = (cost.round_trips, cost.operations, cost.requests)
    return [partitions, name, *map(str, counts), number(seconds)]


def main() -> None:
    """Measure and print."""
    options = parsed()
    head = ("partitions", "variant", "round trips", "operations", "to brokers", "seconds")
    report = Report("the control plane", head)
    for partitions in _sizes(options.partitions if not options.only_search else "none"):
        found = {name: simulated(name, partitions) for name in ("kafka_08", "hardened")}
        for name, cost in found.items():
            report.rows.append(_row(str(partitions), name, cost, cost.seconds))
        fewer = found["kafka_08"].round_trips / found["hardened"].round_trips
        what = f"fewer round trips, {partitions} partitions"
        report.bars.append(Bar(what, "at least", 10, "times", once(fewer)))
        report.data[str(partitions)] = {name: cost._asdict() for name, cost in found.items()}
    for partitions in _sizes(options.live if not options.only_search else "none"):
        try:
            measure_live(report, partitions, options.rounds, options.created)
        except Stop as lacking:
            print(f"no live failover: {lacking}", file=sys.stderr)
        except Unfinished as missing:
            report.notes.append(f"{partitions} live: {missing}")
    if options.search_minutes:
        search_in_turn(report, 60 * options.search_minutes, int(options.search_gib * 2**30))
    if options.only_search:
        report.show(as_json=options.json)
        return
    speeds = [replicated_a_second() for _ in range(options.rounds)]
    report.rows.append(["replicated messages/s", "hardened", number(max(speeds)), "", "", ""])
    report.data["replicated messages/s"] = speeds
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
