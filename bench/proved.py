"""Chance against proof: no simulated run may violate what a search has proved of `hardened`.

    python bench/proved.py [--seeds 1000] [--jobs 2] [--cases A,B] [--simulated V] [--json]

Each case is a small cluster with a bound. It is searched first; what holds of every
interleaving counts as proved. Then the same cluster is simulated, seed by seed: the same
members, and faults of the same kinds, of which the seed draws when and whom they strike. A
run that violates what was proved says that the search or the simulation is wrong. The exit
code is 1 if there is such a run, or a case of which nothing was proved.

`--simulated documented` has another version simulated than the one that was searched: so one
sees that runs do tell.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.random_faults import LOAD, Aimed
from bench.support.report import Report, parser_of

from watchkeeper.check.check import explore_scenario
from watchkeeper.check.limits import limits
from watchkeeper.checker.search.search import SearchOptions
from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.registry.paths import Layout
from watchkeeper.scenarios import Scenario, ScenarioError, from_text
from watchkeeper.sim.world import simulate

PROVED = "hardened"
TEXT = """
name: {name}
about: What a search proves of it, no run may violate.
variant: {variant}
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: {brokers}, layout: "{layout}",
                  topics: {{clicks: {{{word}: {partitions}}}}}}}}}
groups: {{billing: {{consumers: {members}, streams: {{clicks: 1}},
                  config: {{zookeeper.session.timeout.ms: 2000, auto.commit.interval.ms: 500}}}}}}
bounds: {{{bounds}}}
settle: 10s
"""
A_RUN = 100
"""Seeds that a process simulates before it takes others."""
MOST_TOLD = 5
"""Violations of a case that are printed at once; `--json` has all of them."""


@dataclass(frozen=True, slots=True)
class Case:
    """A small cluster, and the faults that may strike it."""

    name: str
    faults: Mapping[str, int] = field(default_factory=dict)
    layout: Layout = "0.7"
    members: int = 2
    brokers: int = 1
    partitions: int = 2
    """On each broker in the 0.7 layout, in all in the 0.8 layout."""
    messages: int = 0
    together: int | None = None
    begin: str = "fresh"

    def scenario(self, variant: str) -> Scenario:
        """The case as a scenario of its own."""
        bounds: dict[str, object] = {**self.faults, "begin": self.begin}
        if self.messages:
            bounds["messages"] = self.messages
        if self.together is not None:
            bounds["together"] = self.together
        text = TEXT.format(
            name="proved",
            variant=variant,
            brokers=self.brokers,
            layout=self.layout,
            word="partitions_per_broker" if self.layout == "0.7" else "partitions",
            partitions=self.partitions,
            members=self.members,
            bounds=", ".join(f"{word}: {value}" for word, value in bounds.items()),
        )
        return from_text("proved.yaml", text + LOAD if self.messages else text)


LAYOUTS: tuple[Layout, ...] = ("0.7", "0.8")
FAULTS: Mapping[str, Mapping[str, int]] = {
    "none": {},
    "crash and restart": {"crash": 1, "restart": 1},
    "expiry": {"expire": 1},
    "disconnection": {"disconnect": 1},
    "lost reply": {"lost_reply": 1},
    "late request": {"late_request": 1},
    "join and leave": {"join": 1, "leave": 1},
}
"""What may strike a case once; a run draws faults of the same kinds."""
CASES = (
    *(
        Case(f"{kind.replace(' ', '-')}/{layout}", faults, layout)
        for layout in LAYOUTS
        for kind, faults in FAULTS.items()
    ),
    Case("messages/0.7", {"late_request": 1}, partitions=1, messages=1),
    Case("brokers/0.7", {"broker_crash": 1, "broker_restart": 1}, brokers=2, partitions=1),
    Case(
        "three-of-nine/0.7",
        {
            **dict.fromkeys(("crash", "restart", "expire", "late_request", "lost_reply"), 1),
            **dict.fromkeys(("join", "leave", "broker_crash", "broker_restart"), 1),
        },
        brokers=2,
        partitions=1,
        together=3,
        begin="settled",
    ),
)
"""Small clusters in both layouts, each with its kind of fault, and three larger ones."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A run that violates what was proved."""

    seed: int
    what: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Runs:
    """What has come of some seeds."""

    seeds: int
    struck: int
    """Runs in which every fault had an effect."""
    broken: tuple[Broken, ...]

    @property
    def violating(self) -> int:
        """How many of them violate what was proved."""
        return len({broken.seed for broken in self.broken})


@dataclass(frozen=True, slots=True)
class Compared:
    """A case, what was proved of it, and what its runs have come to."""

    case: str
    states: int
    proved: tuple[str, ...]
    runs: Runs


# --- one case --------------------------------------------------------------------------


def proved_of(case: Case) -> tuple[int, tuple[str, ...]]:
    """How many states a case has, and what holds in all of them."""
    explored = explore_scenario(
        case.scenario(PROVED), options=SearchOptions(limits(None, None, None), finds_all=True)
    )
    holds = [
        finding.claim.name for finding in explored.findings if finding.verdict is Verdict.HOLDS
    ]
    return explored.searched.progress.states, tuple(holds)


def run(case: Case, variant: str, proved: Sequence[str], seeds: range) -> Runs:
    """Simulate a case with some seeds."""
    scenario = case.scenario(variant)
    plan, bounds = scenario.plan(), scenario.bounds()
    assert bounds is not None, "every case states its bounds"
    struck, broken = 0, list[Broken]()
    for seed in seeds:
        drawn = Aimed(case.name, plan, bounds, seed).drawn()
        done = simulate(drawn, seed)
        struck += all(effect.is_real for effect in done.effects)
        broken += [
            Broken(seed, finding.claim.name, finding.evidence)
            for finding in judge(drawn, done.trace, done.effects).findings
            if finding.verdict is Verdict.VIOLATED and finding.claim.name in proved
        ]
    return Runs(len(seeds), struck, tuple(broken))


def compared(case: Case, variant: str, seeds: int, pool: Executor | None) -> Compared:
    """Search a case, then simulate it."""
    states, proved = proved_of(case)
    parts = [range(at, min(at + A_RUN, seeds)) for at in range(0, seeds, A_RUN)]
    work = partial(run, case, variant, proved)
    runs = list((map if pool is None else pool.map)(work, parts))
    return Compared(
        case.name,
        states,
        proved,
        Runs(
            sum(run.seeds for run in runs),
            sum(run.struck for run in runs),
            tuple(broken for run in runs for broken in run.broken),
        ),
    )


# --- all of them -----------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, simulate, and print."""
    names = [case.name for case in CASES]
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--seeds", type=int, default=1_000, help="for each case (1000)")
    parser.add_argument("--cases", default=",".join(names), help="which (all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes that simulate (1)")
    parser.add_argument("--simulated", default=PROVED, help=f"which version runs ({PROVED})")
    given = parser.parse_args(arguments)
    wanted = given.cases.split(",")
    unknown = [name for name in wanted if name not in names]
    if unknown:
        parser.error(f"--cases {unknown[0]}: expected some of {', '.join(names)}")
    chosen = [case for case in CASES if case.name in wanted]
    try:
        for case in chosen:
            case.scenario(given.simulated).plan()
    except ScenarioError as error:
        parser.error(f"--simulated {given.simulated}: {error}")
    found = []
    with ProcessPoolExecutor(given.jobs) if given.jobs > 1 else nullcontext() as pool:
        for case in chosen:
            found.append(compared(case, given.simulated, given.seeds, pool))
            _tell(found[-1])
    report_of(found).show(as_json=given.json)
    return int(any(case.runs.broken or not case.proved for case in found))


def _tell(case: Compared) -> None:
    """Say what has come of a case, and of which seeds."""
    runs = case.runs
    sentence = f"{case.case}: {runs.violating} of {runs.seeds} seeds violate what was proved"
    print(sentence, file=sys.stderr, flush=True)
    for broken in runs.broken[:MOST_TOLD]:
        print(f"  seed {broken.seed}: {broken.what}: {broken.evidence}", file=sys.stderr)


def report_of(found: Sequence[Compared]) -> Report:
    """All of it."""
    seeds = sum(case.runs.seeds for case in found)
    broken = sum(case.runs.violating for case in found)
    report = Report(
        f"Chance against proof: of {seeds:,} simulated runs {broken:,} violate what was proved",
        ("case", "states", "proved", "seeds", "every fault struck", "violate it"),
        data={"cases": [asdict(case) for case in found]},
    )
    for case in found:
        runs = case.runs
        figures = (case.states, len(case.proved), runs.seeds, runs.struck, runs.violating)
        report.rows.append([case.case, *(f"{figure:,}" for figure in figures)])
    return report


if __name__ == "__main__":
    sys.exit(main())
