"""A soak: so many members and servers of a live world are killed, and nothing may be left amiss.

    python bench/soak.py [--kills 200] [--a-round 25] [--seed 0] [--json]

A group of five consumers, three brokers and an ensemble of three servers, all of them
processes, lives through rounds of kills. Whom a kill strikes, when, and for how long it is
down follows from the seed: consumers, brokers and servers, with SIGKILL; a consumer comes
back under its own id or a new one, before its session has ended or after. One server is
down at a time, now and then a second one for less than a second, and whichever it is leads
in a third of all cases. At the end of each round everything is alive again and has come
to rest, and then these are checked:

  the run      every property of the project, judged on the merged trace: no partition was
               ever fetched by two members with live sessions, none is without a reader
               at rest, no process deleted a znode of another, and so on; every kill had its
               effect
  the registry every ephemeral znode below the run's root belongs to the session that a
               live process has now, and every consumer and broker has one
  this machine no process, thread, open file, listening port or folder is left of the round

Rounds alternate between the layouts of 0.7 and 0.8. The exit code is 1 if anything was
amiss; with `--out` the trace of such a round is kept there.
"""

from __future__ import annotations

import gc
import itertools
import os
import sys
import tempfile
import threading
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, once, parser_of
from tests.support.live_zookeeper import descendants

from watchkeeper.api.arguments import scenario_of
from watchkeeper.api.result import Result
from watchkeeper.api.simulate import judged, versions
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.ports import is_free, open_sockets
from watchkeeper.real.world.embedded import ROOT
from watchkeeper.real.world.run import live
from watchkeeper.real.world.world import World
from watchkeeper.real.zookeeper.server import Server as ApacheServer
from watchkeeper.real.zookeepers.ensemble import Server
from watchkeeper.real.zookeepers.implementation import Implementation
from watchkeeper.scenarios import Scenario
from watchkeeper.sim.world import Simulated

CONSUMERS, BROKERS, SERVERS = 5, 3, 3
GROUP = "billing"
SESSION_MS = 2000
FORMED_S = 4.0
"""When the first kill may come: the group has formed by then."""
PAUSES_S = (0.8, 3.6)
"""From one kill to the next."""
DOWN_S = {"consumer": (0.3, 6.0), "broker": (0.3, 6.0), "server": (0.5, 3.0)}
"""How long each stays down: consumers and brokers for less than a session or for more."""
WEIGHTS = {"consumer": 5, "broker": 2, "server": 3}
SECOND_SERVER = 0.15
"""How often a second server is killed while one is down."""
SECOND_DOWN_S = (0.3, 0.9)
REJOINS_S = 4.0
"""How long a server is left alone after it has come back."""
PATIENCE_S = 10.0


# --- whom, and when --------------------------------------------------------------------


@dataclass(slots=True)
class Timeline:
    """Kills and returns, drawn one after the other."""

    chance: Random
    entries: list[dict[str, Any]] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    free_at_s: dict[str, float] = field(default_factory=dict)
    """When each may be struck again."""
    ends_s: float = FORMED_S

    def draw(self, number: int) -> None:
        """Draw so many kills."""
        at_s = FORMED_S
        while self.kills.total() < number:
            at_s += self.chance.uniform(*PAUSES_S)
            kind = self.chance.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
            free = [name for name in names_of(kind) if self.free_at_s.get(name, 0) <= at_s]
            if kind == "server":
                self._kill_servers(at_s, free, number)
            elif len(free) > 1:  # one consumer and one broker at least stay up
                self._kill(kind, self.chance.choice(free), at_s, DOWN_S[kind])

    def _kill_servers(self, at_s: float, free: list[str], number: int) -> None:
        if len(free) < SERVERS:
            return
        first, second = self.chance.sample(free, 2)
        down_s = self._kill("server", first, at_s, DOWN_S["server"])
        if self.chance.random() < SECOND_SERVER and self.kills.total() < number and down_s > 1:
            self._kill("server", second, at_s + 0.5, SECOND_DOWN_S)

    def _kill(self, kind: str, name: str, at_s: float, range_s: tuple[float, float]) -> float:
        """Kill one, and bring it back; how long it is down."""
        down_s = self.chance.uniform(*range_s)
        back_s = at_s + down_s
        again = {"at": milliseconds(back_s), "restart": name}
        if kind == "consumer" and self.chance.random() < 0.3:
            again["as"] = "new id"
        self.entries += [{"at": milliseconds(at_s), "crash": name}, again]
        self.kills[kind] += 1
        self.free_at_s[name] = back_s + (REJOINS_S if kind == "server" else 0.5)
        self.ends_s = max(self.ends_s, back_s)
        return down_s


def names_of(kind: str) -> list[str]:
    """Every process that can be struck."""
    if kind == "server":
        return [f"zookeeper/{number}" for number in range(1, SERVERS + 1)]
    if kind == "broker":
        return [f"broker/{number}" for number in range(BROKERS)]
    return [f"{GROUP}/{number}" for number in range(CONSUMERS)]


def milliseconds(at_s: float) -> str:
    """A moment as a scenario writes it."""
    return f"{round(at_s * 1000)}ms"


def fields_of(timeline: Timeline, layout: str, settle_s: float) -> dict[str, Any]:
    """The scenario of a round."""
    load = {"at": "1s", "produce": "clicks", "rate": "100/s"}
    return {
        "name": "soak",
        "about": "Members and servers are killed and come back, over and over.",
        "clusters": {
            "main": {
                "zookeeper": {"servers": SERVERS, "tick": "200ms"},
                "session_timeout": milliseconds(SESSION_MS / 1000),
                "layout": layout,
                "brokers": BROKERS,
                "topics": {"clicks": {"partitions_per_broker": 4}},
            }
        },
        "groups": {
            GROUP: {
                "consumers": CONSUMERS,
                "streams": {"clicks": 1},
                "apart": "100ms",
                "fetch_every": "200ms",
                "config": {
                    "zookeeper.session.timeout.ms": SESSION_MS,
                    "auto.commit.interval.ms": 1000,
                },
            }
        },
        "timeline": [load, *sorted(timeline.entries, key=lambda entry: int(entry["at"][:-2]))],
        "settle": milliseconds(settle_s),
    }


# --- what a round must not leave -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Here:
    """What of this process there is on this machine."""

    processes: int
    threads: int
    files: int
    folders: int

    def beyond(self, before: Here) -> list[str]:
        """What there is more of than before, in words."""
        now, then = asdict(self), asdict(before)
        return [f"{now[kind] - then[kind]} {kind}" for kind in now if now[kind] > then[kind]]


def here() -> Here:
    """What there is now."""
    files = Path("/proc/self/fd")
    return Here(
        processes=len(descendants()),
        threads=threading.active_count(),
        files=len(os.listdir(files)) - open_sockets() if files.exists() else 0,
        folders=len(list(Path(tempfile.gettempdir()).glob("watchkeeper-*"))),
    )


@dataclass(slots=True)
class Look:
    """What is seen of a world at the end of its run, while every process still lives."""

    ports: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __call__(self, world: World) -> None:
        """Look at it."""
        (cluster,) = world.clusters.values()
        for server in cluster.service.servers:
            self.ports += ports_of(server)
            if server.state != "running":
                self.wrong.append(f"{server.name} is {server.state}")
        names = [*world.consumers, *world.brokers]
        for name in names:
            addresses = cluster.proxy.hosts_of(name).split(",")
            self.ports += [int(address.rpartition(":")[2]) for address in addresses]
        self.ports += [broker.port for _, broker in world.brokers.values()]
        self._look_at_sessions(world, cluster, names)

    def _look_at_sessions(self, world: World, cluster: Any, names: list[str]) -> None:
        alive: dict[int, str] = {}
        for name in names:
            session = cluster.proxy.session_of(name) if world.running(name) else None
            if session is None:
                self.wrong.append(f"{name} has no session")
            else:
                alive[session.number] = name
        owners = Counter(owner for _, owner in ephemerals(cluster.operator, ROOT))
        self.wrong += [
            f"{number} znodes below {ROOT} belong to session 0x{owner:x}, "
            "which no live process has"
            for owner, number in owners.items()
            if owner not in alive
        ]
        idle = [name for owner, name in alive.items() if not owners[owner]]
        self.wrong += [f"{name} has registered nothing" for name in idle]


def ports_of(server: Server) -> list[int]:
    """The ports that a server listens on."""
    if isinstance(server, ApacheServer):
        return list(server.ports.by_use.values())
    return [int(server.address.rpartition(":")[2])]


def ephemerals(client: Any, path: str) -> list[tuple[str, int]]:
    """The ephemeral znodes from a path on, each with its session."""
    children, stat = client.get_children(path, include_data=True)
    found = [(path, stat.ephemeralOwner)] if stat.ephemeralOwner else []
    return found + [
        ephemeral for child in children for ephemeral in ephemerals(client, f"{path}/{child}")
    ]


# --- a round ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Round:
    """One round, and what was amiss."""

    number: int
    seed: int
    layout: str
    kills: dict[str, int]
    leaders: int
    """How many of the servers led when they were killed."""
    took_s: float
    events: int
    verdict: str
    wrong: list[str]


def lived(number: int, kills: int, options: Namespace) -> Round:
    """Let a world live through a round, and judge what it has left."""
    began, before = time.monotonic(), here()
    seed = options.seed * 1000 + number
    layouts = options.layouts.split(",")
    layout = layouts[number % len(layouts)]
    timeline = Timeline(Random(seed))
    timeline.draw(kills)
    scenario = scenario_of(fields_of(timeline, layout, options.settle))
    look = Look()
    result = run(scenario, seed, options, look)
    wrong = [*said_of(result), *look.wrong, *left_behind(before, look.ports)]
    if wrong and options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"round-{number}.jsonl").write_bytes(b"".join(result.trace.lines()))
    return Round(
        number,
        seed,
        layout,
        dict(timeline.kills),
        leaders_killed(result),
        time.monotonic() - began,
        len(result.trace),
        result.verdict.value,
        wrong,
    )


def run(scenario: Scenario, seed: int, options: Namespace, look: Look) -> Result:
    """Run it for real, and judge it."""
    plan = scenario.plan(options.variant)
    zookeeper = Implementation(options.zookeeper)
    done = live(plan, seed, zookeeper=zookeeper, versions=versions(), inspect=look)
    return judged(scenario, plan, seed, Simulated(done.trace, done.effects, done.operations))


def said_of(result: Result) -> list[str]:
    """What does not hold."""
    if result.verdict is Verdict.HOLDS:
        return []
    return [
        f"{finding.claim.name} {finding.verdict.value}: {finding.evidence}"
        for finding in result.findings
        if finding.counts and finding.verdict is not Verdict.HOLDS
    ]


def leaders_killed(result: Result) -> int:
    """How many servers led when they were killed."""
    leader, found = "", 0
    for event in result.trace:
        if event.kind == EventKind.LEADER_ELECTED:
            leader = event.node
        elif event.kind == EventKind.FAULT and event.detail["verb"] == "crash":
            found += event.node == leader
    return found


def left_behind(before: Here, ports: list[int]) -> list[str]:
    """What of a round is still there, after a while of patience."""
    gc.collect()
    ends = time.monotonic() + PATIENCE_S
    while (found := _left(before, ports)) and time.monotonic() < ends:
        time.sleep(0.1)
    return found


def _left(before: Here, ports: list[int]) -> list[str]:
    busy = [port for port in ports if not is_free(port)]
    taken = [f"{len(busy)} ports, {busy[0]} among them"] if busy else []
    return [f"left behind: {name}" for name in [*here().beyond(before), *taken]]


# --- what is said ----------------------------------------------------------------------


def report_of(rounds: list[Round], wanted: int) -> Report:
    """The table of the rounds."""
    killed: Counter[str] = Counter()
    for soak_round in rounds:
        killed.update(soak_round.kills)
    report = Report(
        f"{killed.total()} kills in {sum(soak_round.took_s for soak_round in rounds):.0f} s: "
        f"{', '.join(f'{number} {kind}s' for kind, number in sorted(killed.items()))}; "
        f"{sum(soak_round.leaders for soak_round in rounds)} servers led",
        ("round", "seed", "layout", *WEIGHTS, "leaders", "events", "seconds", "verdict", ""),
        data={"rounds": [asdict(soak_round) for soak_round in rounds]},
    )
    report.rows = [
        [
            str(soak_round.number),
            str(soak_round.seed),
            soak_round.layout,
            *(str(soak_round.kills.get(kind, 0)) for kind in WEIGHTS),
            str(soak_round.leaders),
            f"{soak_round.events:,}",
            f"{soak_round.took_s:.0f}",
            soak_round.verdict,
            f"{len(soak_round.wrong)} amiss" if soak_round.wrong else "nothing amiss",
        ]
        for soak_round in rounds
    ]
    amiss = sum(len(soak_round.wrong) for soak_round in rounds)
    report.bars = [
        Bar("kills", "at least", wanted, "kills", once(killed.total())),
        Bar("what was amiss", "at most", 0, "things", once(amiss)),
    ]
    report.notes = [
        f"round {soak_round.number}: {sentence}"
        for soak_round in rounds
        for sentence in soak_round.wrong
    ]
    return report


def all_rounds(options: Namespace) -> Iterator[Round]:
    """Live through one round after the other until there were enough kills."""
    left = options.kills
    for number in itertools.count():
        if left <= 0:
            return
        soak_round = lived(number, min(left, options.a_round), options)
        print(soak_round, file=sys.stderr)
        yield soak_round
        left -= options.a_round


def main(arguments: Sequence[str] | None = None) -> None:
    """Live through the rounds, print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--kills", type=int, default=200, help="in all rounds together (200)")
    parser.add_argument("--a-round", type=int, default=25, help="kills of a round (25)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (0)")
    parser.add_argument(
        "--settle", type=float, default=20.0, help="seconds of a round's end (20)"
    )
    parser.add_argument("--variant", default="hardened", help="of the consumers (hardened)")
    parser.add_argument(
        "--zookeeper",
        choices=[*Implementation],
        default=Implementation.JAVA,
        help="Apache's server or the one in Python (java)",
    )
    parser.add_argument("--layouts", default="0.7,0.8", help="of the rounds in turn (0.7,0.8)")
    parser.add_argument(
        "--out", type=Path, help="a folder for rounds in which something was amiss"
    )
    options = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="soak-") as home:
        tempfile.tempdir = home  # what others make in the usual place is not ours
        rounds = list(all_rounds(options))
    tempfile.tempdir = None
    report_of(rounds, options.kills).show(as_json=options.json)
    sys.exit(1 if any(soak_round.wrong for soak_round in rounds) else 0)


if __name__ == "__main__":
    main()
