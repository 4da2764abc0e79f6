"""The part of the page about the control plane that begins with brokers at rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.cluster.control_plane import AT_REST, OF_WRITES
from watchkeeper.checker.counterexample.explanation import counterexample_of
from watchkeeper.checker.search.liveness import judge, violation_of
from watchkeeper.checker.search.search import Limits, Search, SearchOptions
from watchkeeper.model.counterexample.counterexample import Counterexample, CounterexampleStep
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.progress import PROGRESS
from watchkeeper.scenarios import from_text

Table = Callable[[list[str], Iterator[list[str]]], str]

MOST_STATES = 4_000_000
LONGEST = 100
"""Characters of an answer."""
PROPERTIES = tuple(claim.name for claim in (*OF_WRITES, *AT_REST))
FAULTS: dict[str, dict[str, int]] = {
    "a broker is killed": {"broker_crash": 1},
    "a broker is killed and restarts": {"broker_crash": 1, "broker_restart": 1},
    "a broker leaves": {"broker_leave": 1},
    "a session expires": {"broker_expire": 1},
    "a connection breaks": {"broker_disconnect": 1},
    "two sessions expire": {"broker_expire": 2},
    "a broker is killed, and a session expires": {"broker_crash": 1, "broker_expire": 1},
    "a broker is killed, and a connection breaks": {"broker_crash": 1, "broker_disconnect": 1},
    "a broker is killed, and a request is lost": {"broker_crash": 1, "broker_lost_request": 1},
    "a broker is killed, and a reply is lost": {"broker_crash": 1, "broker_lost_reply": 1},
    "a broker is killed, and a request is late": {"broker_crash": 1, "broker_late_request": 1},
    "a session expires, and a connection breaks": {"broker_expire": 1, "broker_disconnect": 1},
    "a session expires, and a reply is lost": {"broker_expire": 1, "broker_lost_reply": 1},
    "a session expires, and a request is late": {"broker_expire": 1, "broker_late_request": 1},
}
SIZES = (2, 3)
VARIANTS = ("kafka_08", "documented", "hardened")

SCENARIO = """
name: brokers-alone
about: Brokers elect a controller, which elects the leader of one partition.
clusters:
  main:
    zookeeper: {{servers: 1}}
    brokers: {brokers}
    layout: "0.8"
    leaders: controller
    unclean_leader_election: false
    topics: {{clicks: {{partitions: 1, replicas: {brokers}}}}}
"""
INTRODUCTION = f"""\
Here the brokers have registered and elected a controller, and the topic exists: one partition,
whose replicas are all brokers. Then the faults of a row strike, each at any step. A lost request,
a lost reply and a late request need a request, and brokers at rest make none; so another fault
comes with them. These are the searches of `watchkeeper explore` for a cluster with
`leaders: controller`; unclean elections are forbidden. A search that would see more than
{MOST_STATES:,} states ends there, and its row is marked with `+`: then *holds* is said of the
states that were seen. No reduction is used, so the steps are the fewest. *Progress* is judged
where a search has seen every state."""

OF_THE_FIRST = "Where several variants violate a property, this is the way in the first of them."


class Row(NamedTuple):
    """What a search has found with some faults."""

    faults: str
    violations: Mapping[str, Counterexample]
    """Property -> its nearest violation."""
    restless: bool
    """Whether there is a state from which no rest comes that holds every property."""
    states: int
    is_complete: bool

    def cells(self) -> list[str]:
        """The row of the table."""
        found = [
            f"**{len(self.violations[name].steps)} steps**"
            if name in self.violations
            else "holds"
            for name in PROPERTIES
        ]
        progress = "-" if not self.is_complete else "**violated**" if self.restless else "holds"
        states = f"{self.states:,}{'' if self.is_complete else ' +'}"
        return [self.faults, *found, progress, states]


@cache
def row_of(variant: str, faults: str, brokers: int) -> Row:
    """Search for the nearest violation of each property."""
    plan = _plan(variant, brokers)
    system = ClusterSystem(plan, Bounds(FAULTS[faults], begin="settled"), folds=False)
    options = SearchOptions(Limits(MOST_STATES), finds_all=True, reduces=False)
    search = Search(system, options)
    found = search.run()
    violations = {
        violation.what: counterexample_of(system, search, violation)
        for violation in found.violations
    }
    restless = found.is_complete and violation_of(judge(search)) is not None
    return Row(faults, violations, restless, found.progress.states, found.is_complete)


def _plan(variant: str, brokers: int) -> Plan:
    return from_text("brokers-alone.yaml", SCENARIO.format(brokers=brokers)).plan(variant)


def running_brokers(table: Table) -> Iterator[str]:
    """Yield the paragraphs: what is searched, the tables, and the nearest violations."""
    yield INTRODUCTION
    for variant in VARIANTS:
        for brokers in SIZES:
            rows = (row_of(variant, name, brokers).cells() for name in FAULTS)
            yield f"### `{variant}`, {brokers} running brokers"
            yield table(["fault", *PROPERTIES, PROGRESS.name, "states"], rows)
    yield "### The nearest violations of running brokers"
    yield OF_THE_FIRST
    for name in PROPERTIES:
        yield from _path(name)


def nearest(
    name: str, rows_of: Callable[[str], Sequence[Any]], length: Callable[[Any], int]
) -> tuple[str, Any] | None:
    """Return a title and the nearest violation, in the first variant that violates a property."""
    for variant in VARIANTS:
        rows = [row for row in rows_of(variant) if name in row.violations]
        if rows:
            row = min(rows, key=lambda row: length(row.violations[name]))
            return f"**{name}**, `{variant}`, {row.faults}:", row.violations[name]
    return None


def _rows(variant: str) -> list[Row]:
    return [row_of(variant, faults, brokers) for brokers in SIZES for faults in FAULTS]


def _path(name: str) -> Iterator[str]:
    found = nearest(name, _rows, lambda told: len(told.steps))
    if found is not None:
        title, told = found
        yield title
        yield "\n".join(["```text", *map(_line, told.steps), told.proof, "```"])


def _line(step: CounterexampleStep) -> str:
    scheduled = step.scheduled
    answer = "" if scheduled.answer is None else f" -> {scheduled.answer}"
    message = f"{scheduled.operation}{answer}"
    cut = message if len(message) <= LONGEST else f"{message[:LONGEST]}..."
    return f"{step.number:4}  {scheduled.node}  {scheduled.text} {cut}".rstrip()
