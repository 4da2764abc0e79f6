"""Random operations against a real server and the machine: not one answer may differ.

    python bench/conformance.py [--operations 100000] [--clients 3] [--seed 0] [--zookeeper java]

Every script is played by a server, Apache's or the one in Python, through the client that live
members use, and by the pure machine; answers, Stats (but for times) and events are compared
step by step. The first difference is printed as a script and ends the run with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st
from tests.model.zookeeper.test_conformance import ASKS
from tests.support.zookeeper.real_client import Real
from tests.support.zookeeper.worlds import CLOSE, Machine, Step, as_heard_by

from watchkeeper.real.zookeepers.implementation import Implementation

STEPS = 200
"""How many steps a script has: many, since each new client costs a connection."""


def main() -> None:
    arguments = parsed()
    chance = Random(arguments.seed)
    real, machine = Real(Implementation(arguments.zookeeper)), Machine()
    kinds: Counter[str] = Counter()
    begun, done, scripts = time.monotonic(), 0, 0
    while done < arguments.operations:
        script = drawn(chance.getrandbits(32), arguments.clients)
        kinds.update(type(effect).__name__ for _, effect in script)
        if not agree(real, machine, script, arguments.clients):
            sys.exit(1)
        done += sum(len(getattr(effect, "operations", (effect,))) or 1 for _, effect in script)
        scripts += 1
        print(f"\r{done:,} operations in {scripts:,} scripts", end="", file=sys.stderr)
    took_s = round(time.monotonic() - begun)
    print(file=sys.stderr)
    if arguments.json:
        print(json.dumps({"operations": done, "scripts": scripts, "seconds": took_s, **kinds}))
        return
    print(", ".join(f"{kind} {number:,}" for kind, number in kinds.most_common()))
    print(f"{done:,} operations, {scripts:,} scripts, no difference, {took_s} s")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--zookeeper", choices=[*Implementation], default=Implementation.JAVA)
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    return parser.parse_args()


def drawn(number: int, clients: int) -> list[Step]:
    """A script of chance: the second that is drawn, since the first is the simplest there is."""
    scripts: list[list[Step]] = []
    steps = st.lists(st.tuples(st.integers(0, clients - 1), ASKS), min_size=STEPS, max_size=STEPS)

    @seed(number)
    @settings(max_examples=2, database=None, deadline=None, phases=[Phase.generate])
    @given(steps)
    def draw(script: list[Step]) -> None:
        scripts.append(script)

    draw()
    return [*scripts[-1], *((client, CLOSE) for client in range(1, clients))]


def agree(real: Real, machine: Machine, script: list[Step], clients: int) -> bool:
    """Whether both say the same; the first difference is printed."""
    answers = real.play(clients, script)
    expected = as_heard_by(real, script, machine.play(clients, script))
    for at, (answer, other) in enumerate(zip(answers, expected, strict=True)):
        if answer != other:
            print(f"\nstep {at}, client {script[at][0]}: {script[at][1]}")
            print(f"  real     {answer}\n  machine  {other}")
            print("  before it:", *script[max(0, at - 20) : at], sep="\n    ")
            return False
    return True


if __name__ == "__main__":
    main()
