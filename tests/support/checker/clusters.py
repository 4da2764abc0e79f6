"""Small clusters to search."""

from __future__ import annotations

from typing import Any, Literal

from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.search import liveness
from watchkeeper.checker.search.search import Search, Searched, SearchOptions
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.plan.plan import Plan
from watchkeeper.scenarios import from_text

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


CONTROLLED = """
name: controlled
about: brokers elect a controller, which elects the leader of one partition
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: {brokers}, layout: "0.8",
                  leaders: controller, unclean_leader_election: {unclean},
                  topics: {{clicks: {{partitions: 1, replicas: {brokers}}}}}}}}}
{groups}
"""


def controlled(
    variant: str = "hardened", *, brokers: int = 2, consumers: int = 0, unclean: str = "false"
) -> Plan:
    """A plan with brokers that elect a controller, and a group if there are consumers."""
    group = f"{{cluster: main, consumers: {consumers}, streams: {{clicks: 1}}}}"
    groups = f"groups: {{billing: {group}}}" if consumers else ""
    text = CONTROLLED.format(brokers=brokers, unclean=unclean, groups=groups)
    return from_text("controlled.yaml", text).plan(variant)


def searched(
    plan: Plan,
    faults: dict[str, int] | None = None,
    *,
    reduces: bool = True,
    finds_all: bool = True,
    keeps_all: int = 0,
    **bounds: Any,
) -> tuple[ClusterSystem, Search, Searched]:
    """Search a plan; the system, the search, and what it found."""
    system = ClusterSystem(plan, Bounds(faults or {}, **bounds), folds=reduces)
    search = Search(
        system,
        SearchOptions(finds_all=finds_all, reduces=reduces, keeps_all=keeps_all),
    )
    return system, search, search.run()


def violated(found: Searched) -> list[str]:
    """The names of what was violated."""
    return sorted(violation.what for violation in found.violations)


def rests_of(system: ClusterSystem, search: Search) -> set[Any]:
    """Every state at rest, by what processes and tree hold, whatever their numbers are."""
    moves = {int(source) for block in search.edges.blocks for source in block.sources}  # type: ignore[union-attr]
    terminal_states = set()
    for number in range(len(search.good.values)):
        if number not in moves:
            state = search.state(number)
            held = system.values(state)
            nodes = frozenset(system.service.trees[state[0]].nodes.items())
            terminal_states.add(
                (nodes, tuple((local.fetches, local.plans) for local in held.values()))
            )
    return terminal_states


def outcome_of(system: ClusterSystem, search: Search, found: Searched) -> dict[str, Any]:
    """What a search says: the violations, the states at rest, and whether they must come."""
    live = liveness.judge(search)
    return {
        "complete": found.is_complete,
        "violated": violated(found),
        "rests": rests_of(system, search),
        "stuck": live.stuck is not None,
        "inevitable": live.is_inevitable,
        "lasso": bool(live.lasso),
    }
