"""This project's ZooKeeper beside Apache's: requests a second, watches, memory, ready time.

    python bench/zookeeper_speed.py [--requests 2000] [--rounds 3] [--clients 1000] [--json]

- **Through kazoo**: creates and gets one after the other, the same pipelined (all sent before the
  first is awaited), and transactions of ten creates. kazoo's own work is part of the figures, and
  most of them. The rows with *raw* are the same requests through a bare socket, in one piece,
  which is what a server can do. Contenders take turns, in another order each round: ours in
  memory, ours durable (`--data`), Apache's as it is by default, and Apache's without syncs.
- **Without sockets**: creates and gets a second on one core, decoded, executed and encoded, one
  request at a time through a connection of the service.
- **Watches**: so many clients are connected and watch one znode; from the write that changes it
  to the last client's event. Memory a connection is what the server's process has grown by.
- **Ready**: from the start of the process, ours `watchkeeper zookeeper`, to the first answer.
"""

from __future__ import annotations

import resource
import selectors
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of, spread
from bench.support.zookeepers import (
    Kind,
    Wanted,
    ZooKeeper,
    command_ready_s,
    memory_kb,
    ready_s,
    start,
)
from bench.wire import jute
from bench.wire.in_memory_connection import InMemoryConnection
from bench.wire.jute import OPEN, Op
from bench.wire.raw_line import Line
from kazoo.client import KazooClient

DATA = b"x" * 100
IN_A_MULTI = 10
HERD = "/watched"


@dataclass(frozen=True, slots=True)
class Contender:
    """Servers that take part."""

    name: str
    kind: Kind
    wanted: Wanted


CONTENDERS = (
    Contender("ours, in memory", "python", Wanted()),
    Contender("ours, durable", "python", Wanted(data=True)),
    Contender("Apache's", "java", Wanted()),
    Contender("Apache's, no syncs", "java", Wanted(syncs=False)),
)
RIVALS = (("ours, in memory", "Apache's, no syncs"), ("ours, in memory", "Apache's"))
RIVALS_DURABLE = ("ours, durable", "Apache's")

Rates = dict[str, dict[str, list[float]]]
"""Measure -> contender -> requests a second in each round."""


# --- through kazoo and bare sockets ----------------------------------------------------------


@dataclass(slots=True)
class Load:
    """The requests of one round on one server."""

    zookeeper: ZooKeeper
    client: KazooClient
    requests: int
    root: str = ""

    def creates(self) -> None:
        """One create after the other."""
        for at in range(self.requests):
            self.client.create(f"{self.root}/{at}", DATA)

    def gets(self) -> None:
        """One get after the other."""
        for at in range(self.requests):
            self.client.get(f"{self.root}/{at}")

    def pipelined_creates(self) -> None:
        """All creates at once."""
        names = (f"{self.root}/p{at}" for at in range(self.requests))
        for result in [self.client.create_async(name, DATA) for name in names]:
            result.get()

    def pipelined_gets(self) -> None:
        """All gets at once."""
        names = (f"{self.root}/p{at}" for at in range(self.requests))
        for result in [self.client.get_async(name) for name in names]:
            result.get()

    def multis(self) -> None:
        """Transactions, one after the other."""
        for at in range(self.requests // IN_A_MULTI):
            transaction = self.client.transaction()
            for part in range(IN_A_MULTI):
                transaction.create(f"{self.root}/m{at}-{part}", DATA)
            transaction.commit()

    def raw_creates(self) -> None:
        """All creates through a bare socket."""
        self._raw(Op.CREATE, lambda path: jute.create(path, DATA, OPEN, 0))

    def raw_gets(self) -> None:
        """All gets through a bare socket."""
        self._raw(Op.GET_DATA, lambda path: jute.with_watch(path, False))

    def _raw(self, opcode: int, body: Callable[[str], bytes]) -> None:
        paths = [f"{self.root}/r{at}" for at in range(self.requests)]
        frames = [jute.request(at, opcode, body(path)) for at, path in enumerate(paths)]
        line = Line(self.zookeeper.addresses[0])
        line.begin_session()
        line.send(b"".join(frames))
        for _ in frames:
            payload = line.frame(60)
            assert payload is not None, "every request is answered"
            assert not jute.REPLY_HEAD.unpack_from(payload)[2], "no request fails"
        line.close()


MEASURES: dict[str, Callable[[Load], None]] = {
    "creates": Load.creates,
    "gets": Load.gets,
    "creates, pipelined": Load.pipelined_creates,
    "gets, pipelined": Load.pipelined_gets,
    "creates in multis of 10": Load.multis,
    "creates, raw": Load.raw_creates,
    "gets, raw": Load.raw_gets,
}


def rates(options: Namespace, contenders: Sequence[Contender]) -> Rates:
    """Requests a second, of each contender in each round; the first round is not counted."""
    found: Rates = {name: {each.name: [] for each in contenders} for name in MEASURES}
    chance = Random(0)
    with ExitStack() as stack:
        loads = {each.name: prepared(each, options, stack) for each in contenders}
        for turn in range(options.rounds + 1):
            names = list(loads)
            chance.shuffle(names)
            for name in names:
                one_round(name, loads[name], turn, found)
                print(f"round {turn}, {name}", file=sys.stderr)
    return found


def prepared(contender: Contender, options: Namespace, stack: ExitStack) -> Load:
    """A server and its clients."""
    zookeeper = stack.enter_context(start(contender.kind, contender.wanted))
    client = KazooClient(zookeeper.hosts, timeout=30)
    client.start()
    stack.callback(client.close)
    stack.callback(client.stop)
    return Load(zookeeper, client, options.requests)


def one_round(name: str, load: Load, turn: int, found: Rates) -> None:
    """All measures on one server, below a root of their own."""
    load.root = f"/round-{turn}"
    load.client.create(load.root)
    for measure, work in MEASURES.items():
        begun = time.perf_counter()
        work(load)
        took_s = time.perf_counter() - begun
        if turn:
            found[measure][name].append(load.requests / took_s)


# --- without sockets -------------------------------------------------------------------------


def without_sockets(requests: int, rounds: int) -> dict[str, list[float]]:
    """Creates and gets a second of CPU time."""
    found: dict[str, list[float]] = {"creates": [], "gets": []}
    for _ in range(rounds):
        connection = InMemoryConnection()
        creates = [
            jute.request(at, Op.CREATE, jute.create(f"/n{at}", DATA, OPEN, 0))
            for at in range(1, requests + 1)
        ]
        gets = [
            jute.request(at, Op.GET_DATA, jute.with_watch(f"/n{at}", False))
            for at in range(1, requests + 1)
        ]
        for name, frames in (("creates", creates), ("gets", gets)):
            begun = time.process_time()
            for frame in frames:
                connection.receive(frame)
            found[name].append(requests / (time.process_time() - begun))
            connection.check_answers(requests)
    return found


# --- watches and memory ----------------------------------------------------------------------


HERD_TICK_MS = 2_000
"""Sessions may last 20 ticks."""


@dataclass(frozen=True, slots=True)
class Herd:
    """Many clients that watch one znode."""

    last_ms: list[float] = field(default_factory=list)
    """From the write to the last event, in each round."""
    connection_kb: float = 0.0


def herd(contender: Contender, options: Namespace) -> Herd:
    """Connect many clients, let each watch, and change what they watch."""
    raise_limit(2 * options.clients + 200)
    # The clients send no pings: their sessions have to last until the last of them is connected.
    wanted = replace(contender.wanted, tick_ms=HERD_TICK_MS)
    with ExitStack() as stack:
        zookeeper = stack.enter_context(start(contender.kind, wanted))
        writer = Line(zookeeper.addresses[0])
        stack.callback(writer.close)
        writer.begin_session()
        writer.call(1, Op.CREATE, jute.create(HERD, DATA, OPEN, 0))
        before_kb = memory_kb(zookeeper.pids)
        lines = []
        for _ in range(options.clients):
            # One after the other: Apache's listen queue holds 50, and one that overflows waits.
            line = Line(zookeeper.addresses[0])
            stack.callback(line.close)
            line.begin_session()
            lines.append(line)
        watch_all(lines, 1)
        grown_kb = memory_kb(zookeeper.pids) - before_kb
        last_ms = []
        for turn in range(options.rounds):
            last_ms.append(write_to_last_event(writer, lines, turn + 2))
            watch_all(lines, turn + 2)
        return Herd(last_ms, grown_kb / options.clients)


def watch_all(lines: Sequence[Line], xid: int) -> None:
    """Let every client watch the znode."""
    for line in lines:
        line.send(jute.request(xid, Op.GET_DATA, jute.with_watch(HERD, True)))
    for line in lines:
        payload = line.frame(30)
        assert payload is not None, "every client gets its answer"
        assert not jute.REPLY_HEAD.unpack_from(payload)[2], "the znode exists"


def write_to_last_event(writer: Line, lines: Sequence[Line], xid: int) -> float:
    """Milliseconds from a write to the last client's event."""
    waiting = {line.fileno(): line for line in lines}
    with selectors.EpollSelector() as selector:
        for line in lines:
            selector.register(line, selectors.EVENT_READ)
        begun = time.perf_counter()
        body = jute.buffer(HERD) + jute.buffer(DATA) + jute.INT.pack(-1)
        writer.send(jute.request(xid, Op.SET_DATA, body))
        while waiting:
            ready = selector.select(30)
            assert ready, f"{len(waiting)} clients have no event"
            for key, _ in ready:
                selector.unregister(key.fileobj)
                del waiting[key.fd]
        took_s = time.perf_counter() - begun
    for line in lines:
        payload = line.frame(1)
        assert payload is not None, "an event has arrived"
        assert jute.REPLY_HEAD.unpack_from(payload)[0] == jute.EVENT_XID, "it is an event"
    assert writer.frame(30) is not None, "the write is answered"
    return took_s * 1_000


def raise_limit(files: int) -> None:
    """Allow this process and its children so many open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(files, hard), hard))


# --- the table -------------------------------------------------------------------------------


def rates_report(found: Rates, report: Report) -> None:
    """Rows of requests a second, and the bars between rivals."""
    for measure, by_name in found.items():
        for name, values in by_name.items():
            best, median = max(values), statistics.median(values)
            report.rows.append([measure, name, number(best), number(median), "a second"])
        rivals = [*RIVALS, RIVALS_DURABLE] if "raw" not in measure else []
        for ours, theirs in rivals:
            if ours in by_name and theirs in by_name:
                quotients = [
                    one / other for one, other in zip(by_name[ours], by_name[theirs], strict=True)
                ]
                what = f"{measure}: {ours} to {theirs}"
                measured = spread(quotients, higher_is_better=True)
                report.bars.append(Bar(what, "at least", 1, "times", measured))
    report.data["rates"] = found


def in_memory_report(found: dict[str, list[float]], report: Report) -> None:
    """Rows and bars without sockets."""
    for name, bar in (("creates", 20_000), ("gets", 80_000)):
        measured = spread(found[name], higher_is_better=True)
        what = f"{name}, without sockets"
        report.rows.append(
            [what, "ours", number(measured.best), number(measured.median), "a second, one core"]
        )
        report.bars.append(Bar(what, "at least", bar, "a second", measured))
    report.data["without_sockets"] = found


def herd_report(found: dict[str, Herd], clients: int, report: Report) -> None:
    """Rows and bars of watches and memory."""
    for name, each in found.items():
        measured = spread(each.last_ms)
        what = f"a write to the last of {clients:,} events"
        report.rows.append([what, name, number(measured.best), number(measured.median), "ms"])
        memory = number(max(each.connection_kb, 0.01))
        report.rows.append(["memory a connection", name, memory, memory, "kB"])
        if name.startswith("ours"):
            report.bars.append(Bar(what, "less than", 150, "ms", measured))
            report.bars.append(
                Bar("memory a connection", "less than", 20, "kB", once(each.connection_kb))
            )
    report.data["herd"] = {name: vars_of(each) for name, each in found.items()}


def vars_of(each: Herd) -> dict[str, Any]:
    return {"last_ms": each.last_ms, "connection_kb": each.connection_kb}


def ready_report(contenders: Sequence[Contender], rounds: int, report: Report) -> None:
    """Rows and bar of the time to the first answer."""
    for each in contenders:
        is_ours = each.kind == "python"
        values = [
            (command_ready_s() if is_ours else ready_s(each.kind, each.wanted)) * 1_000
            for _ in range(rounds)
        ]
        measured = spread(values)
        report.rows.append(
            ["ready", each.name, number(measured.best), number(measured.median), "ms"]
        )
        if is_ours:
            report.bars.append(Bar("ready", "less than", 100, "ms", measured))


def parsed() -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--requests", type=int, default=2_000, help="of each measure (2000)")
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds (3)")
    parser.add_argument("--clients", type=int, default=1_000, help="clients that watch (1000)")
    parser.add_argument("--kinds", default="java,python", help="java, python, or both (both)")
    parser.add_argument("--without", default="", help="leave out servers with this in their name")
    parts = "rates,memory,herd,ready"
    parser.add_argument("--only", default=parts, help=f"which parts ({parts})")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    parts = options.only.split(",")
    contenders = [
        each
        for each in CONTENDERS
        if each.kind in options.kinds.split(",")
        if not options.without or options.without not in each.name
    ]
    report = Report(
        f"this project's ZooKeeper beside Apache's, {options.requests:,} requests of each kind",
        ("measure", "server", "best", "median", "unit"),
    )
    if "rates" in parts:
        rates_report(rates(options, contenders), report)
    if "memory" in parts and "python" in options.kinds:
        in_memory_report(without_sockets(10 * options.requests, options.rounds), report)
    default = [each for each in contenders if each.name in ("ours, in memory", "Apache's")]
    if "herd" in parts:
        found = {each.name: herd(each, options) for each in default}
        herd_report(found, options.clients, report)
    if "ready" in parts:
        ready_report(default, options.rounds, report)
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
