"""The page of what searches of the control plane have found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from docs import running_brokers as running
from docs.running_brokers import VARIANTS

from watchkeeper import ExploreResult
from watchkeeper.checker.control_plane.brokers import ALWAYS, AT_REST, KNOWN, search
from watchkeeper.model.controller.state_machines.variants import CONTROLLERS
from watchkeeper.model.properties.control_plane.controllers import CONTROL_PLANE
from watchkeeper.model.properties.verdicts import Verdict

Table = Callable[[list[str], Iterator[list[str]]], str]

MOST_STATES = 6_000_000
PROPERTIES = (*ALWAYS, *AT_REST)
FAULTS: dict[str, dict[str, int]] = {
    "no fault": {},
    "a broker is killed": {"crash": 1},
    "a broker is killed and restarts": {"crash": 1, "restart": 1},
    "a session expires": {"expire": 1},
    "a connection breaks": {"disconnect": 1},
    "a request is lost": {"lost_request": 1},
    "a reply is lost": {"lost_reply": 1},
    "a request is late": {"late_request": 1},
    "a broker is killed, and a session expires": {"crash": 1, "expire": 1},
    "a broker is killed, and a reply is lost": {"crash": 1, "lost_reply": 1},
}
WITH_THREE = ("no fault", "a broker is killed")
"""What is searched with three brokers, too."""

INTRODUCTION = f"""\
Brokers of 0.8 elect a controller, which elects the leaders of partitions. This page searches
every interleaving of the requests of two brokers, and of three, for the nearest violation of
each property. [The control plane](explanation/the-control-plane.md) tells what the variants do.
The first part begins with brokers that start, [the second one](#brokers-that-run-already) with
brokers that run. In `documented` the state of a partition is ephemeral.

## What is searched

The brokers start in any order, register, and elect a controller. One of them creates a topic
first: one partition, whose replicas are all brokers. A fault may strike at any step, as often as
the row says. A search that would see more than {MOST_STATES:,} states ends there, and its
row is marked with `+`. Leaders do not change the ISR here, and brokers store no messages.
Whether brokers come to rest is not judged: a broker of `kafka_08` that restarts tries to register
again and again until its earlier session ends, and the search may let it try for ever."""


class Row(NamedTuple):
    """What searches have found of one variant with some faults."""

    faults: str
    violations: Mapping[str, ExploreResult]
    """Property -> the search that found its nearest violation."""
    states: int
    """Of the largest search."""
    is_complete: bool

    def cells(self) -> list[str]:
        """The row of the table."""
        found = [
            f"**{steps_of(self.violations[name])} steps**" if name in self.violations else "holds"
            for name in PROPERTIES
        ]
        return [self.faults, *found, f"{self.states:,}{'' if self.is_complete else ' +'}"]


def steps_of(found: ExploreResult) -> int:
    """Return the number of steps of a counterexample."""
    assert found.counterexample is not None, "only a violation has steps"
    return len(found.counterexample.steps)


@cache
def row_of(variant: str, faults: str, brokers: int) -> Row:
    """Search for every property at once, and for each by itself where one is violated."""
    every = _searched(variant, faults, brokers, PROPERTIES)
    if every.verdict is not Verdict.VIOLATED:
        return Row(faults, {}, every.states, every.verdict is Verdict.HOLDS)
    each = {name: _searched(variant, faults, brokers, (name,)) for name in PROPERTIES}
    return Row(
        faults,
        {name: found for name, found in each.items() if found.violated == name},
        max(found.states for found in each.values()),
        all(found.verdict is not Verdict.UNKNOWN for found in each.values()),
    )


def _searched(variant: str, faults: str, brokers: int, names: tuple[str, ...]) -> ExploreResult:
    return search(
        CONTROLLERS[variant],
        FAULTS[faults],
        tuple(name for name in names if name in AT_REST),
        always=tuple(name for name in names if name in ALWAYS),
        brokers=brokers,
        max_states=MOST_STATES,
    )


def control_plane_findings_page(page: Callable[..., str], table: Table) -> str:
    """Return the page: the properties, a table for each variant, and the nearest violations."""
    return page(
        "What searches of the control plane have found",
        INTRODUCTION,
        _properties(table),
        "## What is found",
        "A cell has the number of steps of the nearest violation.",
        *_tables(table),
        "## The nearest violations",
        f"{running.OF_THE_FIRST} Steps that only create the parents of a znode are left out.",
        *_paths(),
        "## Brokers that run already",
        *running.running_brokers(table),
    )


def _properties(table: Table) -> str:
    statements = {one.name: one.says for one in CONTROL_PLANE}
    statements[KNOWN] = (
        "each controller remembers the state of the partition as the registry has it"
    )
    rows = (
        [name, "always" if name in ALWAYS else "at rest", statements[name]] for name in PROPERTIES
    )
    return table(["property", "kind", "says"], rows)


def _tables(table: Table) -> Iterator[str]:
    for variant in VARIANTS:
        for brokers, names in ((2, tuple(FAULTS)), (3, WITH_THREE)):
            rows = (row_of(variant, name, brokers).cells() for name in names)
            yield f"### `{variant}`, {brokers} brokers"
            yield table(["fault", *PROPERTIES, "states"], rows)


def _paths() -> Iterator[str]:
    """Yield the nearest violation of each property, by any single fault."""
    for name in PROPERTIES:
        yield from _path(name)


def _rows(variant: str) -> list[Row]:
    return [row_of(variant, faults, 2) for faults in FAULTS]


def _path(name: str) -> Iterator[str]:
    found = running.nearest(name, _rows, steps_of)
    if found is not None:
        title, result = found
        yield title
        yield "\n".join(["```text", *_steps(result), "```"])


def _steps(result: ExploreResult) -> Iterator[str]:
    """Yield the steps of a counterexample, and the sentence at its end."""
    for line in result.lines:
        if line.startswith("   ") and not line[:4].strip().isdecimal():
            return  # the state at its end
        if not _makes_parents(line):
            yield line


def _makes_parents(line: str) -> bool:
    """Whether a step creates a parent of a znode, or finds that there is none."""
    _, _, answer = line.partition("is answered: create ")
    path, _, value = answer.partition(" -> ")
    return value == "NoNode" or (bool(value) and path in PARENTS)


PARENTS = frozenset(
    {
        *("/brokers", "/brokers/ids", "/brokers/topics"),
        *("/brokers/topics/clicks/partitions", "/brokers/topics/clicks/partitions/0"),
    }
)
