"""Small clusters to search."""

from __future__ import annotations

from typing import Any, Literal

from explore.cluster import ClusterSystem
from explore.search import Limits, Search, Searched
from model.bounds import Bounds
from model.plan import Plan
from scenarios import from_text

TEXT = """
name: small
about: two members of a group share the partitions of one topic
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: {brokers}, layout: "{layout}",
                  topics: {{clicks: {{{partitions}}}}}}}}}
groups: {{billing: {{cluster: main, consumers: {consumers}, streams: {{clicks: 1}}}}}}
"""


def small(
    variant: str = "hardened",
    *,
    layout: Literal["0.7", "0.8"] = "0.7",
    brokers: int = 1,
    consumers: int = 2,
    partitions: int = 2,
) -> Plan:
    """A plan with a small cluster."""
    word = "partitions_per_broker" if layout == "0.7" else "partitions"
    text = TEXT.format(
        layout=layout, brokers=brokers, consumers=consumers, partitions=f"{word}: {partitions}"
    )
    return from_text("small.yaml", text).plan(variant)


def searched(
    plan: Plan,
    faults: dict[str, int] | None = None,
    *,
    reduces: bool = True,
    goes_on: bool = True,
    seconds: float = 120,
    keeps_all: int = 0,
    **bounds: Any,
) -> tuple[ClusterSystem, Search, Searched]:
    """Search a plan; the system, the search, and what it found."""
    system = ClusterSystem(plan, Bounds(faults or {}, **bounds), folds=reduces)
    search = Search(
        system, Limits(seconds=seconds), reduces=reduces, goes_on=goes_on, keeps_all=keeps_all
    )
    return system, search, search.run()


def violated(found: Searched) -> list[str]:
    """The names of what was violated."""
    return sorted(one.what for one in found.violations)
