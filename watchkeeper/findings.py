"""What searches have found of the versions of the protocol: the page `docs/findings.md`.

Each row is a search of a small cluster, one version and one kind of fault; each cell what
of it is violated, with the length of the shortest way there. Below them stand cases, each
with its proof as the search gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from explore.cluster import ClusterSystem
from explore.liveness import judge, violation_of
from explore.search import Search
from explore.story import story_of
from model.bounds import Bounds
from model.ownership import STRICT
from model.plan import Plan
from model.progress import PROGRESS
from model.registry import Layout
from model.story import Story
from model.verdicts import counted
from scenarios import from_text

TEXT = """
name: finding
about: a group shares one topic
strict: {strict}
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: {brokers}, layout: "{layout}",
                  topics: {{clicks: {{{word}: {partitions}}}}}}}}}
groups: {{billing: {{cluster: main, consumers: {consumers}, streams: {{clicks: 1}}}}}}
"""

FAULTS: dict[str, dict[str, int]] = {
    "none": {},
    "crash and restart": {"crash": 1, "restart": 1},
    "expiry": {"expire": 1},
    "disconnection": {"disconnect": 1},
    "lost reply": {"lost_reply": 1},
    "late request": {"ghost": 1},
    "join and leave": {"join": 1, "leave": 1},
}
ROWS: tuple[tuple[str, Layout], ...] = (
    ("documented", "0.7"),
    ("documented_ceil", "0.7"),
    ("kafka_07", "0.7"),
    ("kafka_08", "0.8"),
    ("hardened", "0.7"),
    ("hardened", "0.8"),
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """How large a cluster is searched."""

    consumers: int = 2
    brokers: int = 1
    partitions: int = 2
    """On each broker in the 0.7 layout, in all in the 0.8 layout."""


def plan_of(variant: str, layout: Layout, cluster: Cluster, *, strict: bool = False) -> Plan:
    """The plan of a search."""
    text = TEXT.format(
        strict=str(strict).lower(),
        brokers=cluster.brokers,
        layout=layout,
        word="partitions_per_broker" if layout == "0.7" else "partitions",
        partitions=cluster.partitions,
        consumers=cluster.consumers,
    )
    return from_text("finding.yaml", text).plan(variant)


@dataclass(frozen=True, slots=True)
class Searched:
    """A search and what it found: the nearest violation of each property."""

    states: int
    stories: tuple[Story, ...]

    def story(self, violates: str) -> Story:
        """The counterexample of a property."""
        return next(story for story in self.stories if story.violates == violates)


def search(plan: Plan, bounds: Bounds) -> Searched:
    """Search for the nearest violation of every property."""
    system = ClusterSystem(plan, bounds)
    work = Search(system, goes_on=True)
    found = work.run()
    live = judge(work)
    stuck = violation_of(live)
    violations = [*found.violations, *([stuck] if stuck is not None else [])]
    stories = tuple(story_of(system, work, one, live) for one in violations)
    return Searched(found.progress.states, stories)


# --- the table -------------------------------------------------------------------------


def rows(tell: Callable[[str], None]) -> Iterator[list[str]]:
    """The table: a row for each version and layout, a cell for each fault."""
    for variant, layout in ROWS:
        cells = [f"`{variant}`, {layout}"]
        for name, faults in FAULTS.items():
            tell(f"{variant}, {layout}, {name}")
            cells.append(cell_of(search(plan_of(variant, layout, Cluster()), Bounds(faults))))
        yield cells


def cell_of(searched: Searched) -> str:
    """What a search says in one cell."""
    ways = sorted((len(story.steps), story.violates) for story in searched.stories)
    if ways:
        return "; ".join(f"{what} ({steps})" for steps, what in ways)
    return f"holds ({searched.states:,})"


# --- the cases -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """Something that a search shows."""

    title: str
    says: str
    variant: str
    layout: Layout
    bounds: Bounds
    violates: str
    cluster: Cluster = Cluster()
    is_strict: bool = False


CASES = (
    Case(
        "The zombie window",
        "`hardened` holds every property that a client can hold. The strict form of single "
        "ownership it cannot: between the end of its session and the moment its client hears of "
        "it a member goes on fetching, and somebody else may have begun. No client of ZooKeeper "
        "can close that window; only whoever is written to can, by refusing an old claim.",
        "hardened",
        "0.7",
        Bounds({"expire": 1}, begin="settled"),
        STRICT.name,
        is_strict=True,
    ),
    Case(
        "What the floor of the pages leaves to nobody",
        "N = size(PT) / size(CG), rounded down: of three partitions two members take one each.",
        "documented",
        "0.7",
        Bounds(),
        "full cover",
        Cluster(partitions=3),
    ),
    Case(
        "N = 0",
        "With fewer partitions than members the same formula gives everybody nothing.",
        "documented",
        "0.7",
        Bounds(),
        "full cover",
        Cluster(partitions=1),
    ),
    Case(
        "A release before the stop",
        "The pages do not say when a member stops fetching. Released before it has stopped, a "
        "partition is fetched by two.",
        "documented",
        "0.7",
        Bounds(),
        "single ownership",
    ),
    Case(
        "A broker that registers its id before its topics",
        "A member that the id has woken reads the topics before they are there, and nothing "
        "wakes it again.",
        "documented",
        "0.7",
        Bounds({"broker_crash": 1, "broker_restart": 1}, begin="settled"),
        "full cover",
        Cluster(consumers=1, brokers=2, partitions=1),
    ),
    Case(
        "A claim that is taken for one's own",
        "Kafka 0.7.2 takes a claim that holds its name for its own. After a crash and a restart "
        "under the same id it is that of the life before, and goes when that session ends.",
        "kafka_07",
        "0.7",
        Bounds({"crash": 1, "restart": 1}),
        "truthful registry",
    ),
    Case(
        "A consumer that waits for itself to go",
        "Kafka 0.8.2's library makes a request again in the next session if the first has died, "
        "and its consumer registers again when it hears of that. It then meets the registration "
        "that it has just made, takes it for one of its old session, and waits for it to go: for "
        "ever (KAFKA-1387).",
        "kafka_08",
        "0.8",
        Bounds({"expire": 1}),
        PROGRESS.name,
    ),
    Case(
        "Retries that run out in silence",
        "Four attempts may all fail while another's claims stand; after the last one nothing "
        "wakes the member again. How likely that is depends on the pauses, which a search does "
        "not know; that it can happen does not.",
        "kafka_07",
        "0.7",
        Bounds(),
        "full cover",
    ),
)


def case_lines(case: Case) -> list[str]:
    """A case as the page tells it."""
    plan = plan_of(case.variant, case.layout, case.cluster, strict=case.is_strict)
    searched = search(plan, case.bounds)
    story = searched.story(case.violates)
    faults = ", ".join(kind.replace("_", " ") for kind in case.bounds.faults) or "no fault"
    size = f"{counted(case.cluster.consumers, 'member')}, {faults}"
    return [
        f"### {case.title}",
        "",
        case.says,
        "",
        f"`{case.variant}`, {size}: **{case.violates}** is violated in "
        f"{counted(len(story.steps), 'step')}. {story.proof[0].upper()}{story.proof[1:]}."
        + _for_ever(story),
        "",
    ]


def _for_ever(story: Story) -> str:
    """What comes again and again, if anything does."""
    steps = (f"{one.deed.node} {one.deed.does} `{one.deed.operation}`" for one in story.circle)
    return f" The circle: {', then '.join(steps)}." if story.circle else ""
