"""The results of searches of the variants, for the page `docs/findings.md`.

Each variant has the battery of searches that `watchkeeper explore` runs for a scenario without
bounds. The searches are bounded by states, never by time, so that every machine makes the same
page. Cases follow, each with the proof that the search gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat

from watchkeeper.check.battery import FAULTS, TIMELINE, Cell, Searched, cells_of, search_cell
from watchkeeper.check.battery_report import rows_of
from watchkeeper.check.check import explore_within
from watchkeeper.checker.search.search import Limits, SearchOptions
from watchkeeper.model.counterexample.counterexample import Counterexample
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.properties.at_quiescence import AGREED, BALANCE, CONSENSUS, COVER
from watchkeeper.model.properties.ownership import MONOTONE, OWN_NODES, SINGLE, STRICT, TRUTHFUL
from watchkeeper.model.properties.progress import PROGRESS
from watchkeeper.model.properties.verdicts import KNOWN_LIMIT, counted
from watchkeeper.model.registry.paths import Layout
from watchkeeper.scenarios import Scenario, from_text

TEXT = """
name: finding
about: a group shares one topic
strict: {strict}
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: {brokers}, layout: "{layout}",
                  topics: {{clicks: {{{word}: {partitions}}}}}}}}}
groups: {{billing: {{cluster: main, consumers: {consumers}, streams: {{clicks: 1}}}}}}
"""

ROWS: tuple[tuple[str, Layout], ...] = (
    ("documented", "0.7"),
    ("documented_ceil", "0.7"),
    ("kafka_07", "0.7"),
    ("kafka_08", "0.8"),
    ("hardened", "0.7"),
    ("hardened", "0.8"),
)
PROPERTIES = (SINGLE, TRUTHFUL, OWN_NODES, MONOTONE, COVER, CONSENSUS, AGREED, BALANCE, PROGRESS)
MOST_STATES = 200_000
"""Where a search of the page ends that has more states."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The size of the cluster in a search."""

    consumers: int = 2
    brokers: int = 1
    partitions: int = 2
    """The number on each broker in the 0.7 layout, in all in the 0.8 layout."""


def scenario_of(layout: Layout, cluster: Cluster, *, strict: bool = False) -> Scenario:
    """The scenario of a search."""
    text = TEXT.format(
        strict=str(strict).lower(),
        brokers=cluster.brokers,
        layout=layout,
        word="partitions_per_broker" if layout == "0.7" else "partitions",
        partitions=cluster.partitions,
        consumers=cluster.consumers,
    )
    return from_text("finding.yaml", text)


# --- the tables ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """The searches of a variant."""

    variant: str
    layout: Layout
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """A fault, then what each search has found."""
    complete: int
    searches: int
    broken: dict[str, int]
    """Property -> how many faults violate it."""


def cells_of_variant(variant: str, layout: Layout) -> list[Cell]:
    """The cells of a variant's table; there is no timeline."""
    cells, _ = cells_of(scenario_of(layout, Cluster()).plan(variant))
    return [cell for cell in cells if cell.row != TIMELINE]


def search(cell: Cell, layout: Layout, most_states: int) -> Searched:
    """Search a cell for the nearest violation of every property."""
    options = SearchOptions(Limits(states=most_states), finds_all=True)
    return search_cell(scenario_of(layout, Cluster()), cell, options)


def found_of(variant: str, layout: Layout, most_states: int) -> Found:
    """Search every cell of a variant."""
    cells = cells_of_variant(variant, layout)
    done = [search(cell, layout, most_states) for cell in cells]
    columns, rows = rows_of(done)
    broken = {
        claim.name: len({one.cell.row for one in done if claim.name in one.violations})
        for claim in PROPERTIES
    }
    complete = sum(one.is_complete for one in done)
    return Found(
        variant, layout, tuple(columns), tuple(map(tuple, rows)), complete, len(done), broken
    )


def found_of_all(
    rows: Sequence[tuple[str, Layout]], most_states: int, report: Callable[[str], None]
) -> list[Found]:
    """Search every cell of some variants, two at a time."""
    found = []
    with ProcessPoolExecutor(2) as pool:
        variants, layouts = zip(*rows, strict=True)
        for one in pool.map(found_of, variants, layouts, repeat(most_states)):
            report(f"{one.variant}, {one.layout}: {searches_in_words(one)}")
            found.append(one)
    return found


def searches_in_words(found: Found) -> str:
    """How many searches have seen every state."""
    if found.complete == found.searches:
        return f"{found.searches} searches, each complete"
    return f"{found.complete} of {found.searches} searches complete"


def overview(found: Sequence[Found]) -> list[str]:
    """A table of all variants: how many faults violate each property."""
    return markdown_table(
        ["", "complete searches", *(claim.name for claim in PROPERTIES)],
        [
            [
                f"`{one.variant}`, {one.layout}",
                f"{one.complete} of {one.searches}",
                *(_broken(one.broken[claim.name]) for claim in PROPERTIES),
            ]
            for one in found
        ],
    )


def _broken(faults: int) -> str:
    return f"{faults} of {len(FAULTS)}" if faults else "-"


def section(found: Found) -> list[str]:
    """The table of a variant, with its heading."""
    return [
        f"## `{found.variant}`, layout {found.layout}",
        "",
        f"{searches_in_words(found)}.",
        "",
        *markdown_table(["", *found.columns], found.rows),
        "",
    ]


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table."""
    return [
        f"| {' | '.join(head)} |",
        f"| {' | '.join('---' for _ in head)} |",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


# --- the cases -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """A result of a search, with an explanation."""

    title: str
    about: str
    variant: str
    layout: Layout
    bounds: Bounds
    violates: str
    cluster: Cluster = Cluster()
    is_strict: bool = False


CASES = (
    Case(
        "The zombie window",
        "`hardened` holds every property that a client can hold. It cannot hold the strict "
        "form of single ownership: between the end of its session and the moment its client "
        "learns of it, a member continues to fetch, and another member may have begun. No "
        "client of ZooKeeper can close that window; only the storage that members write to "
        "can, by refusing an old claim.",
        "hardened",
        "0.7",
        Bounds({"expire": 1}, begin="settled"),
        STRICT.name,
        is_strict=True,
    ),
    Case(
        "A partition without an owner, by rounding down",
        "N = size(PT) / size(CG), rounded down: of three partitions, two members take one each.",
        "documented",
        "0.7",
        Bounds(),
        "full cover",
        Cluster(partitions=3),
    ),
    Case(
        "N = 0",
        "With fewer partitions than members, the same formula assigns no partition to any "
        "member.",
        "documented",
        "0.7",
        Bounds(),
        "full cover",
        Cluster(partitions=1),
    ),
    Case(
        "A release before the stop",
        "The pages do not say when a member stops fetching. If it releases a partition before "
        "it stops, two members fetch it.",
        "documented",
        "0.7",
        Bounds(),
        "single ownership",
    ),
    Case(
        "A broker that registers its id before its topics",
        "A member that the id wakes reads the topics before they exist, and no later event "
        "wakes it.",
        "documented",
        "0.7",
        Bounds({"broker_crash": 1, "broker_restart": 1}, begin="settled"),
        "full cover",
        Cluster(consumers=1, brokers=2, partitions=1),
    ),
    Case(
        "An earlier claim taken for the member's own",
        "Kafka 0.7.2 takes a claim that contains its name for its own. After a crash and a "
        "restart under the same id, the claim belongs to the earlier session, and is deleted "
        "when that session expires.",
        "kafka_07",
        "0.7",
        Bounds({"crash": 1, "restart": 1}),
        "truthful registry",
    ),
    Case(
        "A consumer that waits for the end of its own registration",
        "The client library of Kafka 0.8.2 repeats a request in the next session if the first "
        "one has expired, and its consumer registers again when it learns of the expiry. It "
        "then finds the registration that it has just made, takes it for one of its old "
        "session, and waits for ever for its deletion (KAFKA-1387).",
        "kafka_08",
        "0.8",
        Bounds({"expire": 1}),
        PROGRESS.name,
    ),
    Case(
        "Retries that run out in silence",
        "All four attempts may fail while another member's claims exist; after the last one "
        "no event wakes the member again. The search shows that this can happen. Its "
        "probability depends on the pauses, which a search does not know.",
        "kafka_07",
        "0.7",
        Bounds(),
        "full cover",
    ),
)


def case_lines(case: Case) -> list[str]:
    """A case as lines of the page."""
    counterexample = counterexample_of(case)
    faults = ", ".join(kind.replace("_", " ") for kind in case.bounds.faults) or "no fault"
    proof = counterexample.proof
    size = f"{counted(case.cluster.consumers, 'member')}, {faults}"
    return [
        f"### {case.title}",
        "",
        case.about,
        "",
        f"`{case.variant}`, {size}: **{case.violates}**{_limit(case)} is violated in "
        f"{counted(len(counterexample.steps), 'step')}. {proof[0].upper()}{proof[1:]}."
        + _cycle(counterexample),
        "",
    ]


def counterexample_of(case: Case) -> Counterexample:
    """Search a case, and return the nearest counterexample of its property."""
    scenario = scenario_of(case.layout, case.cluster, strict=case.is_strict)
    options = SearchOptions(finds_all=True)
    explored = explore_within(scenario, scenario.plan(case.variant), case.bounds, options=options)
    return next(one for one in explored.counterexamples if one.violates == case.violates)


def _limit(case: Case) -> str:
    return f", a {KNOWN_LIMIT}," if case.is_strict else ""


def _cycle(counterexample: Counterexample) -> str:
    """The steps that repeat for ever, if there are any."""
    steps = (
        f"{step.scheduled.node} {step.scheduled.text} `{step.scheduled.operation}`"
        for step in counterexample.cycle
    )
    return f" The cycle: {', then '.join(steps)}." if counterexample.cycle else ""
