"""Seeds per second: one chaos run after the other, simulated, judged and fingerprinted.

    python bench/seeds.py [--seeds 40] [--rounds 5] [--clock cpu] [--json]

The scenario is `chaos.yaml` beside this file. It is read once; a seed costs what is
measured here: to simulate (with its trace, without pictures), to judge every property,
and to hash the trace, all on one core. Before anything is timed it is checked that the
scenario is what the bar speaks of, and in every run that each fault had an effect.

The fixed cost is what a run costs in which nothing happens: the timeline is empty, and so
is the list of groups in the smallest of them.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import CLOCKS, Bar, Clock, Report, Spread, number, parser_of, spread

from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.plan.plan import Plan
from watchkeeper.scenarios import from_text, load
from watchkeeper.sim.world import Simulated, simulate

CHAOS = Path(__file__).resolve().parent / "chaos.yaml"
SEEDS_PER_SECOND = 50.0
EMPTY_MS = 2.0
S = 1_000_000

SMALLEST = """
name: smallest
about: The smallest cluster there is, one server and one broker, and nothing happens.
clusters:
  main: {zookeeper: {servers: 1}, brokers: 1, topics: {clicks: {partitions: 1}}}
settle: 10s
"""


class NotTheScenario(SystemExit):
    """What would be measured is not what the bar speaks of."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one seed took, in seconds."""

    simulate: float
    judge: float
    fingerprint: float
    events: int
    operations: int

    @property
    def total(self) -> float:
        """All of it."""
        return self.simulate + self.judge + self.fingerprint


STAGES: dict[str, Callable[[Cost], float]] = {
    "simulate": lambda cost: cost.simulate,
    "judge": lambda cost: cost.judge,
    "fingerprint": lambda cost: cost.fingerprint,
    "total": lambda cost: cost.total,
}


# --- what is measured ------------------------------------------------------------------


def check_chaos(plan: Plan) -> None:
    """See that the scenario is the one the bar speaks of."""
    faults = [action for action in plan.timeline if action.is_fault]
    found = {
        "consumers": (sum(1 for _ in plan.consumers()), 5),
        "partitions": (sum(len(topic.replicas) for topic in plan.clusters[0].topics), 20),
        "brokers": (len(plan.clusters[0].brokers), 3),
        "faults": (len(faults), 6),
        "virtual microseconds": (plan.calm_us + plan.settle_us, 60 * S),
        "microseconds between fetches": (plan.groups[0].fetch_every_us, S),
    }
    wrong = [
        f"{what}: {has}, not {wants}" for what, (has, wants) in found.items() if has != wants
    ]
    if wrong:
        raise NotTheScenario(f"chaos.yaml is not what the bar speaks of: {'; '.join(wrong)}")


def check_effects(seed: int, done: Simulated) -> None:
    """See that every action of the timeline did something, and that the run is complete."""
    idle = [effect.action.label for effect in done.effects if not effect.is_real]
    if idle:
        raise NotTheScenario(f"seed {seed}: no effect of {', '.join(idle)}")


def chaos_plan() -> Plan:
    """The plan of the chaos scenario, checked."""
    plan = load(str(CHAOS)).plan()
    check_chaos(plan)
    return plan


def empty_plans(chaos: Plan) -> dict[str, Plan]:
    """Plans with an empty timeline: what there is at all, and the chaos cluster at peace."""
    bare = from_text("smallest.yaml", SMALLEST).plan()
    return {
        "empty, smallest: 1 server, 1 broker, no group, 10 s": bare,
        "empty, chaos cluster without its group, 60 s": replace(
            chaos, timeline=(), groups=(), settle_us=60 * S
        ),
        "empty, chaos cluster and group, 60 s": replace(
            chaos, timeline=(), settle_us=60 * S - replace(chaos, timeline=()).calm_us
        ),
    }


def cost_of(plan: Plan, seed: int, clock: Clock) -> Cost:
    """Run one seed and take the time of each stage."""
    began = clock()
    done = simulate(plan, seed)
    simulated = clock()
    judge(plan, done.trace, done.effects)
    judged = clock()
    assert len(done.trace.fingerprint) == 64
    hashed = clock()
    check_effects(seed, done)
    return Cost(
        simulated - began,
        judged - simulated,
        hashed - judged,
        len(done.trace),
        done.operations,
    )


def rounds_of(plan: Plan, seeds: int, rounds: int, clock: Clock) -> list[list[Cost]]:
    """The same seeds again and again; a round that is thrown away warms everything up."""
    for seed in range(min(seeds, 10)):
        cost_of(plan, seed, clock)
    return [[cost_of(plan, seed, clock) for seed in range(seeds)] for _ in range(rounds)]


# --- what is said ----------------------------------------------------------------------


def milliseconds(rounds: list[list[Cost]], stage: Callable[[Cost], float]) -> Spread:
    """A seed's cost: of each seed the best and the median of the rounds, then the mean."""
    seeds = [
        spread([1000 * stage(cost) for cost in costs]) for costs in zip(*rounds, strict=True)
    ]
    return Spread(
        statistics.fmean(seed.best for seed in seeds),
        statistics.fmean(seed.median for seed in seeds),
    )


def add_row(report: Report, name: str, rounds: list[list[Cost]]) -> Spread:
    """Add a row to the report; what it says of the total."""
    figures = {stage: milliseconds(rounds, take) for stage, take in STAGES.items()}
    total = figures["total"]
    last = rounds[-1]
    events = statistics.fmean(cost.events for cost in last)
    operations = statistics.fmean(cost.operations for cost in last)
    report.rows.append(
        [
            name,
            *(number(figures[stage].median) for stage in STAGES),
            number(total.best),
            number(1000 / total.best),
            number(1000 / total.median),
            number(events),
            number(operations),
        ]
    )
    report.data.setdefault("runs", []).append(
        {
            "name": name,
            "ms": {stage: asdict(figure) for stage, figure in figures.items()},
            "events": events,
            "operations": operations,
        }
    )
    return total


def measure(seeds: int, rounds: int, clock_name: str) -> Report:
    """Measure the chaos run and the empty ones."""
    clock = CLOCKS[clock_name]
    columns = ("ms a seed", *STAGES, "best", "best/s", "median/s", "events", "operations")
    report = Report(
        f"Seeds per second on one core: {rounds} rounds of {seeds} seeds, tracing on, "
        f"{clock_name} time",
        columns,
        notes=[
            "Stages and total are medians: of each seed the median of the rounds, then the mean.",
            "`best` is the same with each seed's fastest round. The chaos run has 5 consumers,",
            "20 partitions, 3 brokers, 60 virtual seconds and 6 faults; each of them had an",
            "effect in every run. Reading the file is not in it: that is done once.",
        ],
    )
    chaos = chaos_plan()
    total = add_row(report, "chaos", rounds_of(chaos, seeds, rounds, clock))
    rates = Spread(1000 / total.best, 1000 / total.median)
    report.bars.append(Bar("chaos run", "at least", SEEDS_PER_SECOND, "seeds/s", rates))
    for name, plan in empty_plans(chaos).items():
        total = add_row(report, name, rounds_of(plan, seeds, rounds, clock))
        report.bars.append(Bar(name, "at most", EMPTY_MS, "ms a seed", total))
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="seeds in a round (40)")
    parser.add_argument("--rounds", type=int, default=5, help="how often they are run (5)")
    options = parser.parse_args(arguments)
    measure(options.seeds, options.rounds, options.clock).show(as_json=options.json)


if __name__ == "__main__":
    main()
