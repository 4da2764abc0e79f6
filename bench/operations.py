"""Simulated ZooKeeper operations per second on one core, and SimPy's bare event rate.

    python bench/operations.py [--operations 20000] [--rounds 5] [--clock cpu] [--json]

Each client is a program as the protocol's are: a coroutine that awaits one operation after
the other, through the simulated client, its connection, a server and (for a write) the
ensemble's log. Everything is traced. Clients work at once, each on znodes of its own.

  get      one of sixteen znodes
  set      the same, with data that is new each time
  create   create a znode and delete it again
  mixed    get, set, get, create, children, delete, in turn: half of them write

SimPy's rate is that of one process that waits for one time-out after the other, measured
in the same process. The ratio says how many such events an operation costs.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import CLOCKS, Bar, Clock, Report, Spread, number, parser_of, spread
from simpy import Environment, Event

from watchkeeper.model.actor.effects import new_session
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.scenarios import from_text
from watchkeeper.sim.world import simulate

MIXED_PER_SECOND = 30_000.0
ZNODES = 16
"""How many znodes each client works on."""
SLOWEST_MS = 5
"""Longer than an operation takes on average in virtual time, with a margin."""

SCENARIO = """
name: operations
about: Clients that do nothing but ask.
variant: hardened
clusters:
  main:
    zookeeper: {{servers: {servers}}}
    brokers: [{{id: 0, starts: never}}]
    layout: "0.7"
    topics: {{none: {{partitions_per_broker: 1}}}}
groups:
  clients: {{consumers: {clients}, streams: {{none: 1}}, starts: 0s, apart: 0s}}
settle: {settle_ms}ms
"""

Script = Callable[[ZooKeeper, str, int], Awaitable[int]]
"""Ask so many times (at least), at a path of one's own; how many times it was."""


# --- what clients do -------------------------------------------------------------------


async def get(zk: ZooKeeper, home: str, times: int) -> int:
    """Read, again and again."""
    for turn in range(times):
        await zk.get(f"{home}/{turn % ZNODES}")
    return times


async def set_data(zk: ZooKeeper, home: str, times: int) -> int:
    """Write, again and again."""
    for turn in range(times):
        await zk.set(f"{home}/{turn % ZNODES}", str(turn).encode())
    return times


async def create_and_delete(zk: ZooKeeper, home: str, times: int) -> int:
    """Create a znode and delete it again, again and again."""
    for turn in range(0, times, 2):
        path = f"{home}/0/{turn % ZNODES}"
        await zk.create(path, b"")
        await zk.delete(path)
    return times + times % 2


async def mixed(zk: ZooKeeper, home: str, times: int) -> int:
    """Six different operations in turn."""
    for turn in range(0, times, 6):
        path = f"{home}/{turn % ZNODES}"
        await zk.get(path)
        await zk.set(path, str(turn).encode())
        await zk.get(f"{home}/{(turn + 5) % ZNODES}")
        await zk.create(f"{path}/child", b"")
        await zk.get_children(path)
        await zk.delete(f"{path}/child")
    return -(-times // 6) * 6


SCRIPTS: dict[str, Script] = {
    "get": get,
    "set": set_data,
    "create": create_and_delete,
    "mixed": mixed,
}


class Clients:
    """The program of every client, and what they have asked in all."""

    def __init__(self, script: Script, times: int) -> None:
        self.script = script
        self.times = times
        self.asked = 0
        self.finished = 0

    async def turn(self, zk: ZooKeeper, me: Any, memory: Any) -> Ended:
        """Make a place of one's own, work there, and end."""
        await new_session()
        home = f"/{me.node.rpartition('/')[2]}"
        await zk.create(home)
        for index in range(ZNODES):
            await zk.create(f"{home}/{index}", b"")
        asked = await self.script(zk, home, self.times)
        self.asked += 1 + ZNODES + asked
        self.finished += 1
        return Ended("the work is done")


# --- what is measured ------------------------------------------------------------------


def rate(
    script: Script, servers: int, clients: int, operations: int, seed: int, clock: Clock
) -> float:
    """Operations per second of one run, counted by the world that answered them."""
    each = -(-operations // clients)
    at_work = Clients(script, each)
    scenario = SCENARIO.format(
        servers=servers, clients=clients, settle_ms=10_000 + (each + ZNODES) * SLOWEST_MS
    )
    plan = from_text("operations.yaml", scenario).plan(program=Program(at_work.turn, None, None))
    began = clock()
    done = simulate(plan, seed)
    took = clock() - began
    if at_work.finished != clients or done.operations != at_work.asked:
        raise SystemExit(
            f"{at_work.finished} of {clients} clients finished, and {done.operations} of "
            f"{at_work.asked} operations were answered: this was no measurement"
        )
    return done.operations / took


def simpy_rate(events: int, clock: Clock) -> float:
    """Time-outs per second of one SimPy process."""

    def waits(environment: Environment) -> Generator[Event, Any, None]:
        for _ in range(events):
            yield environment.timeout(1)

    environment = Environment()
    environment.process(waits(environment))
    began = clock()
    environment.run()
    return events / (clock() - began)


def measure(operations: int, rounds: int, clock_name: str) -> Report:
    """Measure every kind of work, with one and three servers, one client and twenty."""
    clock = CLOCKS[clock_name]
    report = Report(
        f"Simulated ZooKeeper operations per second on one core: {rounds} rounds of "
        f"{operations:,} operations, {clock_name} time",
        ("work", "servers", "clients", "best/s", "median/s", "SimPy events an operation"),
    )
    bare = spread(
        [simpy_rate(10 * operations, clock) for _ in range(rounds)],
        higher_is_better=True,
    )
    for servers in (1, 3):
        for clients in (1, 20):
            for name, script in SCRIPTS.items():
                rates = spread(
                    [
                        rate(script, servers, clients, operations, seed, clock)
                        for seed in range(rounds)
                    ],
                    higher_is_better=True,
                )
                add_row(report, name, servers, clients, rates, bare)
    report.rows.append(
        ["SimPy, bare time-outs", "", "", number(bare.best), number(bare.median), "1"]
    )
    report.data["simpy_per_second"] = asdict(bare)
    return report


def add_row(
    report: Report, name: str, servers: int, clients: int, rates: Spread, bare: Spread
) -> None:
    """Add a row to the report, and a bar where there is one."""
    ratio = bare.best / rates.best
    report.rows.append(
        [
            name,
            str(servers),
            str(clients),
            number(rates.best),
            number(rates.median),
            number(ratio),
        ]
    )
    report.data.setdefault("runs", []).append(
        {
            "work": name,
            "servers": servers,
            "clients": clients,
            "per_second": asdict(rates),
            "simpy_events_an_operation": ratio,
        }
    )
    if name == "mixed":
        what = f"mixed, {servers} server{'s' if servers > 1 else ''}, {clients} at once"
        report.bars.append(Bar(what, "at least", MIXED_PER_SECOND, "operations/s", rates))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--operations", type=int, default=20_000, help="asked in a run (20,000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run (5)")
    options = parser.parse_args(arguments)
    measure(options.operations, options.rounds, options.clock).show(as_json=options.json)


if __name__ == "__main__":
    main()
