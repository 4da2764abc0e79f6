"""The search: every interleaving of small clusters of `hardened`, and how fast.

    python bench/explore.py [--only NAME,NAME] [--seconds N] [--json]

  rate      2 members, 4 partitions in two topics, 2 brokers; every kind of fault once, for two
            million states: how many states and transitions a second, how many bytes a state
  complete  the same, one member settled and another that joins; crash, restart, expiry, drop
            with ghosts, lost reply, join, leave, broker away and back, one each, at most three
            together: to the end, with what comes in the end
  three     3 members, 4 partitions; crash, expiry, drop with ghosts, two joins, all together:
            to the end if it can be reached in `--seconds`, else how deep
  four      4 members, 6 partitions, three joins: how deep in `--seconds`

Bytes are those of states, the table that finds them, parents and edges; what the moves of
pairs take is told apart. Rates are by the clock on the wall.
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

from measuring import Bar, Report, number, once, parser_of

from explore.cluster import ClusterSystem
from explore.liveness import judge
from explore.search import Limits, Search
from model.bounds import Bounds
from scenarios import from_text

TEXT = """
name: searched
about: a group that shares two topics
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: 2, layout: "0.7",
                  topics: {{clicks: {{partitions_per_broker: {clicks}}},
                           views: {{partitions_per_broker: 1}}}}}}}}
groups: {{billing: {{cluster: main, consumers: {consumers}, streams: {{clicks: 1, views: 1}}}}}}
"""
EVERYTHING = {
    **dict.fromkeys(("crash", "restart", "expire", "ghost", "lost_reply", "join", "leave"), 1),
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
        Bounds({"crash": 1, "expire": 1, "ghost": 1, "join": 2}, begin="settled"),
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


def measure(one: Configuration, seconds: float, jobs: int) -> Found:
    """Search it."""
    text = TEXT.format(consumers=one.consumers, clicks=one.clicks)
    system = ClusterSystem(from_text("searched.yaml", text).plan("hardened"), one.bounds)
    limits = Limits(
        states=one.states,
        seconds=seconds if one.is_limited else None,
        bytes=int(1.5 * MOST_GIB * 2**30),
    )
    search = Search(system, limits, jobs=jobs)
    found = search.run()
    began = time.perf_counter()
    said = _in_the_end(search) if found.is_complete else "not asked"
    return Found(
        one.name,
        jobs,
        found.progress.states,
        found.progress.transitions,
        found.progress.depth,
        found.progress.seconds,
        search.nbytes / found.progress.states,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        found.is_complete,
        [violation.what for violation in found.violations],
        said,
        time.perf_counter() - began,
        sum(len(table.pairs) for table in search.tables),
        sum(table.nbytes for table in search.tables) / 2**20,
    )


def _in_the_end(search: Search) -> str:
    live = judge(search)
    if live.stuck is not None:
        return "some state never comes to a good rest"
    return "a good rest is inevitable" if live.is_inevitable else "a good rest can be reached"


def bars(found: list[Found]) -> list[Bar]:
    """What has to be reached."""
    by_name = {one.name: one for one in found}
    result = []
    if "rate" in by_name:
        one = by_name["rate"]
        result += [
            _bar("states a second", "at least", LEAST_STATES_S, "/s", one.states / one.seconds),
            _bar(
                "transitions a second",
                "at least",
                LEAST_TRANSITIONS_S,
                "/s",
                one.transitions / one.seconds,
            ),
            _bar("bytes a state", "at most", MOST_BYTES, "B", one.bytes_a_state),
        ]
    for one in found:
        if next(each for each in CONFIGURATIONS if each.name == one.name).has_to_end:
            took = one.seconds + one.liveness_s if one.is_complete else float("inf")
            result += [
                _bar(f"{one.name}, to the end", "at most", LONGEST_S, "s", took),
                _bar(f"{one.name}, memory", "at most", MOST_GIB, "GiB", one.peak_gib),
            ]
    return result


def _bar(what: str, direction: Any, bar: float, unit: str, value: float) -> Bar:
    return Bar(what, direction, bar, unit, once(value))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print."""
    parser = parser_of(__doc__, clock=False)
    names = [one.name for one in CONFIGURATIONS]
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
        chosen = [one for one in CONFIGURATIONS if one.name in wanted]
        found = [
            pool.submit(measure, one, given.seconds, count).result()
            for one in chosen
            for count in jobs
        ]
    report_of(found).show(as_json=given.json)
    return int(any(one.violated for one in found))


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
        data={"searches": [asdict(one) for one in found]},
        bars=bars(found),
    )
    for one in found:
        end = f"{one.liveness}, {one.liveness_s:.1f} s" if one.is_complete else "cut short"
        report.rows.append(
            [
                one.name,
                str(one.jobs),
                f"{one.states:,}",
                f"{one.transitions:,}",
                str(one.depth),
                number(one.seconds),
                f"{one.states / one.seconds:,.0f}",
                f"{one.bytes_a_state:.0f}",
                f"{one.peak_gib:.2f}",
                f"violated: {', '.join(one.violated)}" if one.violated else end,
            ]
        )
    return report


if __name__ == "__main__":
    raise SystemExit(main())
