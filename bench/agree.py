"""Every shipped scenario that a live world can do, live and simulated: the verdicts agree.

    python bench/agree.py [--repeat 5] [--zookeeper java,python] [SCENARIO ...]

A scenario is run once in simulation, and so often for real on Apache's server and on the one
in Python, with the same variant. The verdict of the run has to be the same each time, and so has
what is violated. Exit code 1 where it is not, unless the scenario says why; the traces of runs
that differ are kept.
What a live world cannot do is listed with the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import TextIO

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from watchkeeper import simulate
from watchkeeper.api import folder
from watchkeeper.api.result import Result
from watchkeeper.api.simulate import judged
from watchkeeper.real.world.capabilities import lacking
from watchkeeper.real.zookeepers.implementation import Implementation
from watchkeeper.run.comparison import agree
from watchkeeper.run.live_run import Where, run_plan_live
from watchkeeper.scenarios import load, shipped


def main() -> None:
    arguments = parsed()
    names = arguments.scenarios or shipped()
    out = sys.stderr if arguments.json else sys.stdout
    servers = [Implementation(word) for word in arguments.zookeeper.split(",")]
    print(f"{'scenario':30} {'on':7} {'simulated':10} live", file=out)
    agreeing = {
        f"{name} on {server}": compare(name, server, arguments, out)
        for name in names
        for server in servers
    }
    differing = [name for name, agree in agreeing.items() if not agree]
    if arguments.json:
        print(json.dumps({"agree": agreeing, "repeat": arguments.repeat}))
    else:
        print(f"differing: {', '.join(differing)}" if differing else "all that can be run agree")
    sys.exit(1 if differing else 0)


def parsed() -> Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--variant", default="hardened")
    parser.add_argument("--zookeeper", default="java,python", help="which servers (both)")
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    parser.add_argument("--keep", type=Path, default=Path("runs"), help="for runs that differ")
    parser.add_argument("scenarios", nargs="*")
    return parser.parse_args()


def compare(name: str, server: Implementation, arguments: Namespace, out: TextIO) -> bool:
    """Run one scenario in both worlds and print a line; whether they agree."""
    scenario, variant = load(name), arguments.variant
    plan = scenario.plan(variant)
    reasons = list(lacking(plan, server))
    begin = f"{name:30} {server:7} "
    if reasons:
        print(f"{begin}{'':10} not possible: {reasons[0].partition('live: ')[2]}", file=out)
        return True
    simulated = simulate(scenario, variant=variant)
    print(f"{begin}{simulated.verdict.value:10} ", end="", flush=True, file=out)
    agreeing, where = True, Where(server)
    for seed in range(arguments.repeat):
        _, done = run_plan_live(scenario.plan(variant), seed, lambda now_us, end_us: None, where)
        result = judged(scenario, plan, seed, done)
        same = agree(simulated, result)
        agreeing = agreeing and (same or scenario.live_differs is not None)
        print(word_for(result, same=same, keep=arguments.keep), end=" ", flush=True, file=out)
    print(file=out)
    return agreeing


def word_for(result: Result, *, same: bool, keep: Path) -> str:
    """What is printed of a live run; the trace of one that differs is kept."""
    if same:
        return "same"
    home = folder.prepare(keep, result.trace.header.run_id)
    folder.write_trace(home, result.trace)
    folder.write_verdict(home, result.to_json([]))
    declared = result.scenario.live_differs
    if declared is not None:
        return f"differs, as declared: {declared} ({home})"
    return f"DIFFERS ({said_of(result)}; {home})"


def said_of(result: Result) -> str:
    unclear = [
        f"{finding.claim.name}: {finding.evidence}"
        for finding in result.findings
        if finding.counts and finding.verdict.value != "holds"
    ]
    return f"{result.verdict.value}; {' | '.join(unclear)}"


if __name__ == "__main__":
    main()
