"""Messages per second on one core: from a simulated producer, through a broker, to a group.

    python bench/messages.py [--millions 10] [--rounds 3] [--clock cpu] [--json]

One producer sends a million messages of 100 bytes a virtual second in batches of 200; a
broker stores them in two partitions and flushes every 20,000; a member fetches all of them.
Every batch is a request that travels, is checked, appended, flushed and fetched, on the
model of pagecache and disk; what is left out is the moving of real bytes. What is measured
is the run and, apart from it, the judging, in which every message is accounted for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import CLOCKS, Bar, Report, number, parser_of, spread

from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import from_text
from watchkeeper.sim.world import simulate

MILLION = 1_000_000
BAR_S = 60.0
SCENARIO = """
name: messages
about: Messages at a rate of a million a second.
variant: hardened
clusters:
  main:
    zookeeper: {{servers: 1}}
    brokers: 1
    storage: {{machine: modern, config: {{log.flush.interval: 20000}}}}
    topics: {{clicks: {{partitions_per_broker: 2}}}}
groups:
  readers:
    consumers: 1
    streams: {{clicks: 1}}
    guarantee: at least once
    config: {{refresh.leader.backoff.ms: 10}}
timeline:
  - {{at: 2s, produce: clicks, rate: 1000000/s, size: 100B, for: {ms}ms}}
settle: 5s
"""


def measure(millions: float, rounds: int, clock_name: str) -> Report:
    """Run it so often, and say how long it took."""
    clock = CLOCKS[clock_name]
    plan = from_text("messages.yaml", SCENARIO.format(ms=round(millions * 1000))).plan()
    ran, judged, batches, read = [], [], 0, ""
    for _ in range(rounds):
        began = clock()
        done = simulate(plan, 0)
        ended = clock()
        found = judge(plan, done.trace, done.effects).finding("delivery to readers")
        judged.append(clock() - ended)
        ran.append(ended - began)
        if found.verdict is not Verdict.HOLDS:
            raise SystemExit(f"messages were lost: {found.evidence}")
        batches, read = sum(1 for _ in done.trace.of_kind(EventKind.SENT)), found.evidence
    report = Report(
        f"Messages through a simulated broker, {rounds} rounds, {clock_name} time",
        ("million messages", "batches", "run s", "best", "messages/s", "judge s"),
        notes=[f"delivery: {read}"],
    )
    run, judging = spread(ran), spread(judged)
    report.rows.append(
        [
            number(millions),
            number(batches),
            *(number(value) for value in (run.median, run.best)),
            number(millions * MILLION / run.median),
            number(judging.median),
        ]
    )
    report.data["runs"] = [{"seconds": ran, "judging": judged, "batches": batches}]
    what = f"{number(millions)} million in batches of 200"
    report.bars.append(Bar(what, "less than", BAR_S * millions / 10, "s", run))
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--millions", type=float, default=10, help="how many messages (10)")
    parser.add_argument("--rounds", type=int, default=3, help="how often (3)")
    options = parser.parse_args(arguments)
    measure(options.millions, options.rounds, options.clock).show(as_json=options.json)


if __name__ == "__main__":
    main()
