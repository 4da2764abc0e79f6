"""The search: every interleaving of small clusters of `hardened`, and how fast.

    python bench/explore.py [--only NAME,NAME] [--seconds N] [--json]

  rate      2 members, 4 partitions in two topics, 2 brokers; every kind of fault once, for two
            million states: how many states and transitions a second, how many bytes a state
  complete  the same, one member settled and another that joins; crash, restart, expiry, drop
            with late requests, lost reply, join, leave, broker away and back, one each,
            at most three together: to the end, with the judgement of progress
  three     3 members, 4 partitions; crash, expiry, drop with late requests, two joins, all
            together: to the end if it can be reached in `--seconds`, else how deep
  four      4 members, 6 partitions, three joins: how deep in `--seconds`

Bytes are those of states, the table that finds them, parents and edges; what the moves of
pairs take is counted separately. Rates are by the clock on the wall.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of

from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.search.liveness import judge
from watchkeeper.checker.search.search import Limits, Search, SearchOptions
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.scenarios import from_text

TEXT = """
name: searched
about: a group that shares two topics
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: 2, layout: "0.7",
                  topics: {{clicks: {{partitions_per_broker: {clicks}}},
                           views: {{partitions_per_broker: 1}}}}}}}}
groups: {{billing: {{cluster: main, consumers: {consumers}, streams: {{clicks: 1, views: 1}}}}}}
"""
EVERYTHING = {
    **dict.fromkeys(
        ("crash", "restart", "expire", "late_request", "lost_reply", "join", "leave"), 1
    ),
    **dict.fromkeys(("broker_crash", "broker_restart"), 1),
}
LEAST_STATES_S = 80_000
LEAST_TRANSITIONS_S = 350_000
MOST_BYTES = 300
LONGEST_S = 480
MOST_GIB = 6


@dataclass(frozen=True, slots=True)
class Configuration:
    """One thing that is searched."""

    name: str
    consumers: int
    bounds: Bounds
    clicks: int = 1
    """Partitions of the first topic on each broker."""
    states: int | None = None
    has_to_end: bool = False
    is_limited: bool = True
    """Whether `--seconds` ends it."""


CONFIGURATIONS = (
    Configuration("rate", 2, Bounds({**EVERYTHING, "disconnect": 1}), states=2_000_000),
    Configuration(
        "complete", 2, Bounds(EVERYTHING, 3, begin="settled"), has_to_end=True, is_limited=False
    ),
    Configuration(
        "three",
        3,
        Bounds({"crash": 1, "expire": 1, "late_request": 1, "join": 2}, begin="settled"),
        has_to_end=True,
    ),
    Configuration("four", 4, Bounds({"join": 3}, begin="settled"), clicks=2),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured of one of them."""

    name: str
    jobs: int
    states: int
    transitions: int
    depth: int
    seconds: float
    bytes_a_state: float
    peak_gib: float
    is_complete: bool
    violated: list[str]
    liveness: str
    liveness_s: float
    pairs: int
    table_mib: float


def measure(configuration: Configuration, seconds: float, jobs: int) -> Found:
    """Search it."""
    text = TEXT.format(consumers=configuration.consumers, clicks=configuration.clicks)
    system = ClusterSystem(
        from_text("searched.yaml", text).plan("hardened"), configuration.bounds
    )
    limits = Limits(
        states=configuration.states,
        seconds=seconds if configuration.is_limited else None,
        bytes=int(1.5 * MOST_GIB * 2**30),
    )
    search = Search(system, SearchOptions(limits, jobs=jobs))
    found = search.run()
    began = time.perf_counter()
    outcome = _in_the_end(search) if found.is_complete else "not asked"
    return Found(
        configuration.name,
        jobs,
        found.progress.states,
        found.progress.transitions,
        found.progress.depth,
        found.progress.seconds,
        search.nbytes / found.progress.states,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        found.is_complete,
        [violation.what for violation in found.violations],
        outcome,
        time.perf_counter() - began,
        sum(len(table.pairs) for table in search.tables),
        sum(table.nbytes for table in search.tables) / 2**20,
    )


def _in_the_end(search: Search) -> str:
    live = judge(search)
    if live.stuck is not None:
        return "from some state no converged state is reachable"
    return (
        "a converged state is inevitable"
        if live.is_inevitable
        else "a converged state is reachable"
    )


def bars(found: list[Found]) -> list[Bar]:
    """What has to be reached."""
    by_name = {search.name: search for search in found}
    result = []
    if "rate" in by_name:
        rated = by_name["rate"]
        result += [
            _bar(
                "states a second", "at least", LEAST_STATES_S, "/s", rated.states / rated.seconds
            ),
            _bar(
                "transitions a second",
                "at least",
                LEAST_TRANSITIONS_S,
                "/s",
                rated.transitions / rated.seconds,
            ),
            _bar("bytes a state", "at most", MOST_BYTES, "B", rated.bytes_a_state),
        ]
    for rated in found:
        if next(each for each in CONFIGURATIONS if each.name == rated.name).has_to_end:
            took = rated.seconds + rated.liveness_s if rated.is_complete else float("inf")
            result += [
                _bar(f"{rated.name}, to the end", "at most", LONGEST_S, "s", took),
                _bar(f"{rated.name}, memory", "at most", MOST_GIB, "GiB", rated.peak_gib),
            ]
    return result


def _bar(what: str, direction: Any, bar: float, unit: str, value: float) -> Bar:
    return Bar(what, direction, bar, unit, once(value))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print."""
    parser = parser_of(__doc__, clock=False)
    names = [configuration.name for configuration in CONFIGURATIONS]
    parser.add_argument("--only", help=f"some of {','.join(names)}")
    parser.add_argument("--seconds", type=float, default=600.0, help="for those that may not end")
    parser.add_argument("--jobs", default="1", help="1, 2, or 1,2 for one beside the other (1)")
    given = parser.parse_args(arguments)
    jobs = [int(each) for each in given.jobs.split(",")]
    wanted = given.only.split(",") if given.only else names
    unknown = [name for name in wanted if name not in names]
    if unknown:
        parser.error(f"--only {unknown[0]}: expected some of {', '.join(names)}")
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        chosen = [
            configuration for configuration in CONFIGURATIONS if configuration.name in wanted
        ]
        found = [
            pool.submit(measure, configuration, given.seconds, count).result()
            for configuration in chosen
            for count in jobs
        ]
    report_of(found).show(as_json=given.json)
    return int(any(search.violated for search in found))


def report_of(found: list[Found]) -> Report:
    """All of it."""
    report = Report(
        "every interleaving of hardened",
        (
            "name",
            "jobs",
            "states",
            "transitions",
            "depth",
            "s",
            "states/s",
            "B",
            "GiB",
            "in the end",
        ),
        data={"searches": [asdict(search) for search in found]},
        bars=bars(found),
    )
    for search in found:
        end = (
            f"{search.liveness}, {search.liveness_s:.1f} s" if search.is_complete else "cut short"
        )
        report.rows.append(
            [
                search.name,
                str(search.jobs),
                f"{search.states:,}",
                f"{search.transitions:,}",
                str(search.depth),
                number(search.seconds),
                f"{search.states / search.seconds:,.0f}",
                f"{search.bytes_a_state:.0f}",
                f"{search.peak_gib:.2f}",
                f"violated: {', '.join(search.violated)}" if search.violated else end,
            ]
        )
    return report


if __name__ == "__main__":
    raise SystemExit(main())
