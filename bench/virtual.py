"""Kazoo in virtual time: runs a second, what a switch costs, and one digest for one seed.

    python bench/virtual.py [--rounds 5] [--seeds 1000] [--json] [--only speed,digests]

- **Lock**: three clients, three rounds of kazoo's `Lock` each, from the start to the stop of the
  clients; one run after the other, on one core.
- **Idle**: a client that does nothing for 60 virtual seconds, from start to stop.
- **Switch**: two threads hand a lock to each other; what a turn costs.
- **Digests**: seeds of twelve programs of kazoo's recipes with every kind of fault, twice in one
  process, and in processes under four hash seeds: one digest of all fingerprints.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Direction, Report, number, once, parser_of, spread
from docs.recipes.cells import FAULTS, SEVERAL
from docs.recipes.programs import PROGRAMS
from kazoo.client import KazooClient

from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.virtual.network.network import Network
from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.schedule.policies import parse_policy
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.threads.scheduler import Scheduler
from watchkeeper.virtual.threads.thread import forget_threads, start_main
from watchkeeper.virtual.world.campaign import Campaign
from watchkeeper.virtual.world.run import Case, prepare, run_once
from watchkeeper.virtual.world.world import World, WorldSettings

RUNS_A_ROUND = 40
HAND_OVERS = 20_000
HASH_SEEDS = (0, 1, 17, 4711)
TWELVE = tuple(name for name in PROGRAMS if not name.endswith("Party"))[:12]
ALL_FAULTS = tuple(
    fault for name, column in FAULTS.items() if name not in SEVERAL for fault in column
)


def locking(world: World, name: str) -> None:
    """Take the lock three times."""
    client = KazooClient(hosts=world.hosts)
    client.start()
    lock = client.Lock("/lock", name)
    for _ in range(3):
        with lock, world.section("lock", client):
            pass
    client.stop()
    client.close()


def three_locking(world: World) -> None:
    """Three processes that take the lock."""
    for name in "abc":
        world.process(name, locking, world, name)


def idle(world: World) -> None:
    """One process whose client does nothing."""

    def wait() -> None:
        client = KazooClient(hosts=world.hosts)
        client.start()
        time.sleep(60)
        client.stop()

    world.process("idle", wait)


def runs_a_second(runs: int) -> float:
    """Runs of three clients and a lock."""
    case = Case("lock", three_locking, WorldSettings())
    began = time.process_time()
    for seed in range(runs):
        outcome = run_once(case, RandomPolicy(seed), "random", seed=seed)
        assert outcome.verdict is Verdict.HOLDS, outcome.findings
        assert outcome.findings[0].exercised == 9, "each client took it three times"
    return runs / (time.process_time() - began)


def idle_ms(runs: int) -> float:
    """Milliseconds for a minute of calm."""
    case = Case("idle", idle, WorldSettings(until_s=100))
    began = time.process_time()
    for seed in range(runs):
        outcome = run_once(case, RandomPolicy(seed), "random", seed=seed)
        assert 60_000_000 < outcome.end_us < 62_000_000, "it waited for a minute"
    return (time.process_time() - began) / runs * 1000


def switch_us(turns: int) -> float:
    """Microseconds for a turn of two threads that hand a lock to each other."""
    prepare()
    scheduler = Scheduler(FirstInFirstOut())
    scheduler.network = Network(scheduler)

    def main() -> None:
        mine, other = threading.Lock(), threading.Lock()
        other.acquire()
        mine.acquire()

        def answer() -> None:
            for _ in range(turns):
                other.acquire()
                mine.release()

        thread = threading.Thread(target=answer)
        thread.start()
        for _ in range(turns):
            other.release()
            mine.acquire()
        thread.join()

    start_main(scheduler, scheduler.add_process("main"), main)
    began = time.process_time()
    scheduler.run(1 << 60)
    took_s = time.process_time() - began
    assert scheduler.turn >= 2 * turns, "each hand-over is a turn of each"
    found = took_s / scheduler.turn * 1e6
    scheduler.tear_down()
    forget_threads(scheduler)
    return found


def digest(seeds: int) -> str:
    """The digest of the fingerprints of twelve programs."""
    found = hashlib.sha256()
    for name in TWELVE:
        case = Case(name, PROGRAMS[name], WorldSettings(), ALL_FAULTS)
        campaign = Campaign(case, parse_policy("random"))
        for seed in range(seeds // len(TWELVE) + 1):
            found.update(campaign.run(seed).fingerprint.encode())
    return found.hexdigest()[:16]


def digests(seeds: int, pythons: list[str]) -> dict[str, str]:
    """Where -> the digest there."""
    found = {"this process": digest(seeds), "this process, again": digest(seeds)}
    for python in pythons:
        version = version_of(python)
        for hash_seed in HASH_SEEDS:
            where = f"{version}, hash seed {hash_seed}"
            found[where] = subprocess.run(
                [python, __file__, "--digest", str(seeds)],
                env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout.strip()
    return found


def version_of(python: str) -> str:
    """The version of an interpreter."""
    words = [python, "-c", "import platform; print('CPython', platform.python_version())"]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def rounds_of(work: Callable[[], float], rounds: int) -> list[float]:
    """What each round has measured, after one that warms up."""
    work()
    return [work() for _ in range(rounds)]


def parsed() -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=RUNS_A_ROUND, help="runs of a round")
    parser.add_argument("--seeds", type=int, default=1_000, help="runs of a digest")
    parser.add_argument("--python", action="append", default=[], help="further interpreters")
    parts = "speed,digests"
    parser.add_argument("--only", default=parts, help=f"which parts ({parts})")
    parser.add_argument("--digest", type=int, help="print the digest of so many seeds")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    if options.digest:
        print(digest(options.digest))
        return
    report = Report("kazoo in virtual time", ("measure", "best", "median", "unit"))
    if "speed" in options.only:
        speed(options, report)
    if "digests" in options.only:
        found = digests(options.seeds, [sys.executable, *options.python])
        report.rows += [[where, each, "", "digest"] for where, each in found.items()]
        report.bars.append(
            Bar("other digests", "at most", 0, "", once(len(set(found.values())) - 1))
        )
        report.data["digests"] = found
    report.show(as_json=options.json)


def speed(options: Namespace, report: Report) -> None:
    """The rows and bars of what runs cost."""
    found = {
        "three clients, three rounds of Lock": (
            rounds_of(lambda: runs_a_second(options.runs), options.rounds),
            "runs/s",
        ),
        "a client, 60 idle seconds": (
            rounds_of(lambda: idle_ms(options.runs), options.rounds),
            "ms",
        ),
        "a turn of a thread": (
            rounds_of(lambda: switch_us(HAND_OVERS), options.rounds),
            "us",
        ),
    }
    bars: tuple[tuple[Direction, float], ...] = (
        ("at least", 80),
        ("less than", 10),
        ("less than", 5),
    )
    for (what, (values, unit)), (direction, bar) in zip(found.items(), bars, strict=True):
        values_of = spread(values, higher_is_better=direction == "at least")
        report.rows.append([what, number(values_of.best), number(values_of.median), unit])
        report.bars.append(Bar(what, direction, bar, unit, values_of))
        report.data[what] = values


if __name__ == "__main__":
    main()
