"""A real broker beside plain writes and plain sendfile, on this disk and over loopback.

    python bench/broker.py [--megabytes 64] [--rounds 5] [--flush 500,1000000000] [--json]

Message sets of 200 messages and of 1 MiB; each message has a payload of 100 bytes, or, where
they are mixed, 100 on the average and 20 to 180. Appending is held against a process that
writes the same sets to a file, one write a set, and flushes after as many messages as the
broker does. `received` is what any server can reach that is a process of Python: it takes the
same frames, looks at nothing in them, and writes and flushes as the plain process does.

Fetching is held against a process that answers each request with a head and one `sendfile`,
and looks at nothing but offset and size. `by a loop` is the same where an event loop of asyncio
says when there is a request: no server that uses one can be faster.

The broker, what it is held against, and the client are processes of their own; each round
measures one after the other. CPU seconds are those of server and client for a GB.

`stream` is one sendfile of the whole log, without any request: no consumer fetches like
that, but it is the limit of the others.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, parser_of, spread

from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.format.requests import (
    LATEST,
    FetchRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    decode_response,
    encode_request,
    encode_response,
    fetch_head,
)

HOST = "127.0.0.1"
FRAMES_BYTES = 256 * 1024
PAYLOAD = b"x" * 100
ENTRY_BYTES = len(encode([Message.of(PAYLOAD)]))
SET_MESSAGES = {"200 messages": 200, "1 MiB": (1 << 20) // ENTRY_BYTES}
MIXED = ", mixed"
FETCH_MESSAGES = {**SET_MESSAGES, "300 KiB": (300 << 10) // ENTRY_BYTES}
"""With what a consumer of 0.7 fetches at once, by default."""
FETCH_BYTES = len(encode_request(FetchRequest("fetched", 0, 0, 0)))
"""The size of a request, which is the same for all."""
NEEDED = 0.5
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
HOME = Path(__file__).resolve().parent.parent


class Run(NamedTuple):
    """How fast it was, and what it took."""

    megabytes_s: float
    server_cpu_s: float
    client_cpu_s: float


@dataclass(frozen=True, slots=True)
class Served:
    """A process that listens."""

    process: subprocess.Popen[Any]
    port: int

    def connect(self) -> socket.socket:
        """A connection to it."""
        connection = socket.create_connection((HOST, self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def cpu_s(self) -> float:
        """CPU seconds that it has taken so far; nothing where the system does not say."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) * TICK_S


@contextmanager
def serving(*command: str) -> Iterator[Served]:
    """A process that says where it listens, and ends when this is over."""
    environment = {**os.environ, "PYTHONPATH": str(HOME)}
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None, "it was started with a pipe"
        line = process.stdout.readline()
        if f"{HOST}:" not in line:
            raise SystemExit(f"{' '.join(command)} does not listen: {line}")
        yield Served(process, int(line.partition(f"{HOST}:")[2].partition(":")[0]))
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def timed(served: Served, size_bytes: int, work: Callable[[], None]) -> Run:
    """Do something that moves so many bytes."""
    server, client, began = served.cpu_s(), time.process_time(), time.perf_counter()
    work()
    took_s = time.perf_counter() - began
    per_gb = 1e9 / size_bytes
    return Run(
        size_bytes / 1e6 / took_s,
        (served.cpu_s() - server) * per_gb,
        (time.process_time() - client) * per_gb,
    )


def received(connection: socket.socket, into: memoryview) -> memoryview:
    """Fill a buffer from a connection."""
    at = 0
    while at < len(into):
        count = connection.recv_into(into[at:])
        if not count:
            raise SystemExit("the connection has ended")
        at += count
    return into


# --- appending -------------------------------------------------------------------------


def set_of(count: int, *, is_mixed: bool) -> bytes:
    """So many messages, of one size or of many with the same average."""
    widths = [at // 2 * 37 % 81 * (-1) ** at if is_mixed else 0 for at in range(count & ~1)]
    return encode(Message.of(PAYLOAD[:1] * (len(PAYLOAD) + width)) for width in widths)


def append(served: Served, topic: str, messages: bytes, times: int) -> Run:
    """Produce a set so many times; done when the broker has served all that came before."""
    frame = encode_request(ProduceRequest(topic, 0, messages))
    end = OffsetsRequest(topic, 0, LATEST, 1)
    with served.connect() as connection:

        def work() -> None:
            for _ in range(times):
                connection.sendall(frame)
            connection.sendall(encode_request(end))
            head = bytes(received(connection, memoryview(bytearray(4))))
            size = struct.unpack(">i", head)[0]
            decode_response(end, bytes(received(connection, memoryview(bytearray(size)))))

        return timed(served, len(messages) * times, work)


def write(path: Path, messages: bytes, times: int, flush_every: int) -> Run:
    """Write a set so many times to a file, with the flush policy of a broker."""
    count, unflushed = len(messages) // ENTRY_BYTES, 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(times):
        os.write(descriptor, messages)
        unflushed += count
        if unflushed >= flush_every:
            os.fsync(descriptor)
            unflushed = 0
    took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    os.close(descriptor)
    path.unlink()
    size_bytes = len(messages) * times
    return Run(size_bytes / 1e6 / took_s, cpu_s * 1e9 / size_bytes, 0.0)


def receive_plain(path: str, flush_every: int) -> None:
    """Write what produce requests carry to a file, without a look at it."""
    room = memoryview(bytearray(2 << 20))
    head_bytes = len(encode_request(ProduceRequest("append-0", 0, b"")))
    with socket.create_server((HOST, 0)) as listener:
        print(f"plain writes on {HOST}:{listener.getsockname()[1]}:", flush=True)
        while True:
            connection, _ = listener.accept()
            descriptor, unflushed = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 0
            with (
                connection,
                BufferedReader(connection.makefile("rb", buffering=0), FRAMES_BYTES) as frames,
            ):
                while size := frames.read(4):
                    frame = room[: struct.unpack(">i", size)[0]]
                    frames.readinto(frame)
                    if frame[1] != ProduceRequest.number:
                        connection.sendall(encode_response(OffsetsResponse()))
                        continue
                    written = os.write(descriptor, frame[head_bytes - len(size) :])
                    unflushed += written // ENTRY_BYTES
                    if unflushed >= flush_every:
                        os.fsync(descriptor)
                        unflushed = 0
            os.close(descriptor)


# --- fetching --------------------------------------------------------------------------


def fetch(served: Served, end: int, size_bytes: int) -> Run:
    """Fetch a log from its beginning to its end, one request after the other."""
    places = range(0, end - size_bytes + 1, size_bytes)
    buffer = memoryview(bytearray(len(fetch_head(0)) + size_bytes))
    head = fetch_head(size_bytes)
    with served.connect() as connection:

        def work() -> None:
            for at in places:
                connection.sendall(encode_request(FetchRequest("fetched", 0, at, size_bytes)))
                received(connection, buffer)
                if buffer[: len(head)] != head:
                    raise SystemExit("the response does not answer the request")

        return timed(served, len(places) * size_bytes, work)


def stream(served: Served, end: int) -> Run:
    """Take a whole log in one go."""
    buffer = memoryview(bytearray(1 << 20))
    with served.connect() as connection:

        def work() -> None:
            connection.sendall(encode_request(FetchRequest("fetched", 0, 0, end)))
            left = len(fetch_head(0)) + end
            while left:
                left -= connection.recv_into(buffer[: min(left, len(buffer))])

        return timed(served, end, work)


def answer_plainly(connection: socket.socket, descriptor: int) -> bool:
    """Answer one fetch with `sendfile`; whether there was one."""
    request = connection.recv(FETCH_BYTES, socket.MSG_WAITALL)
    if not request:
        return False
    at, size_bytes = struct.unpack(">qi", request[-12:])
    connection.sendall(fetch_head(size_bytes), getattr(socket, "MSG_MORE", 0))
    while size_bytes:
        sent = os.sendfile(connection.fileno(), descriptor, at, size_bytes)
        at, size_bytes = at + sent, size_bytes - sent
    return True


def serve_plain(path: str) -> None:
    """Answer fetches from a file, one connection after the other."""
    descriptor = os.open(path, os.O_RDONLY)
    with socket.create_server((HOST, 0)) as listener:
        print(f"plain sendfile on {HOST}:{listener.getsockname()[1]}:", flush=True)
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection:
                while answer_plainly(connection, descriptor):
                    pass


async def serve_by_loop(path: str) -> None:
    """The same, where an event loop says when there is a request."""
    descriptor, loop = os.open(path, os.O_RDONLY), asyncio.get_running_loop()

    def ready(connection: socket.socket) -> None:
        if not answer_plainly(connection, descriptor):
            loop.remove_reader(connection)
            connection.close()

    with socket.create_server((HOST, 0)) as listener:
        print(f"a loop on {HOST}:{listener.getsockname()[1]}:", flush=True)
        listener.setblocking(False)
        while True:
            connection, _ = await loop.sock_accept(listener)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(True)
            loop.add_reader(connection, ready, connection)


# --- all of it -------------------------------------------------------------------------


class Measurement:
    """Runs, side by side, and the report of them."""

    def __init__(self, folder: Path, megabytes: int, rounds: int) -> None:
        self.folder = folder
        self.size_bytes = megabytes * 1_000_000
        self.rounds = rounds
        self.report = Report(
            "A real broker beside plain writes and plain sendfile; preliminary where the cores "
            "are shared",
            (
                "what",
                "set",
                "flush",
                "who",
                "MB/s",
                "median",
                "server CPU s/GB",
                "client CPU s/GB",
            ),
        )

    def compare(
        self, what: str, name: str, flush: str, who: dict[str, Callable[[], Run]]
    ) -> None:
        """Measure some round by round in turn; the first is held against the second."""
        runs = self.in_turn(what, name, flush, who)
        ours, theirs, *_ = runs.values()
        ratios = [a.megabytes_s / b.megabytes_s for a, b in zip(ours, theirs, strict=True)]
        bar = f"{what}, {name}" + (f", flush {flush}" if flush else "")
        found = spread(ratios, higher_is_better=True)
        self.report.bars.append(Bar(bar, "at least", NEEDED, "of plain", found))

    def in_turn(
        self, what: str, name: str, flush: str, who: Mapping[str, Callable[[], Run]]
    ) -> dict[str, list[Run]]:
        """Measure some round by round in turn, and report each of them."""
        runs: dict[str, list[Run]] = {name: [] for name in who}
        for _ in range(self.rounds):
            for contender, measure in who.items():
                runs[contender].append(measure())
        for contender, several in runs.items():
            rates = spread([run.megabytes_s for run in several], higher_is_better=True)
            cpu = [spread([run[at] for run in several]).median for at in (1, 2)]
            figures = (rates.best, rates.median, *cpu)
            self.report.rows.append([what, name, flush, contender, *map(number, figures)])
            self.report.data.setdefault("runs", []).append(
                {"what": what, "set": name, "flush": flush, "who": contender, "runs": several}
            )
        return runs

    def appends(self, flush_every: int) -> None:
        """Append sets, with one flush policy."""
        settings = (
            *("--set", f"log.flush.interval={flush_every}"),
            *("--set", "log.default.flush.scheduler.interval.ms=3600000"),
        )
        logs = str(self.folder / f"logs-{flush_every}")
        command = ("-P", "-m", "watchkeeper", "broker", "--port", "0", "--log-dir", logs)
        path, received = self.folder / "plain", str(self.folder / "received")
        with (
            serving(*command, *settings) as broker,
            serving(__file__, "--receive-plain", received, "--flush", str(flush_every)) as plain,
        ):
            for number, name in enumerate(
                (*SET_MESSAGES, *(f"{size}{MIXED}" for size in SET_MESSAGES))
            ):
                count = SET_MESSAGES[name.removesuffix(MIXED)]
                messages = set_of(count, is_mixed=name.endswith(MIXED))
                times = max(self.size_bytes // len(messages), 1)
                topic = f"append-{number}"
                append(broker, topic, messages, 1)
                self.compare(
                    "append",
                    name,
                    f"{flush_every:,}",
                    {
                        "broker": partial(append, broker, topic, messages, times),
                        "plain writes": partial(write, path, messages, times, flush_every),
                        "received": partial(append, plain, topic, messages, times),
                    },
                )

    def fetches(self) -> None:
        """Fetch what is in the pagecache, as much at once as each set has."""
        logs = self.folder / "logs-fetch"
        settings = ("--set", "log.flush.interval=1")
        command = ("-P", "-m", "watchkeeper", "broker", "--port", "0", "--log-dir", str(logs))
        with serving(*command, *settings) as broker:
            messages = set_of(SET_MESSAGES["1 MiB"], is_mixed=False)
            times = max(self.size_bytes // len(messages), 1)
            append(broker, "fetched", messages, times)
            path = logs / "fetched-0" / f"{0:020}.kafka"
            end = path.stat().st_size
            with (
                serving(__file__, "--serve-plain", str(path)) as plain,
                serving(__file__, "--serve-by-loop", str(path)) as by_loop,
            ):
                for name, count in FETCH_MESSAGES.items():
                    size_bytes = count * ENTRY_BYTES
                    self.compare(
                        "fetch",
                        name,
                        "",
                        {
                            "broker": partial(fetch, broker, end, size_bytes),
                            "plain sendfile": partial(fetch, plain, end, size_bytes),
                            "by a loop": partial(fetch, by_loop, end, size_bytes),
                            "stream": partial(stream, plain, end),
                        },
                    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--megabytes", type=int, default=64, help="in a round (64)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run (5)")
    parser.add_argument("--flush", default="500,1000000000", help="after so many messages")
    parser.add_argument("--folder", help="where to write; on the disk that is to be measured")
    parser.add_argument("--serve-plain", metavar="FILE", help="be what it is held against")
    parser.add_argument("--serve-by-loop", metavar="FILE", help="be that in an event loop")
    parser.add_argument("--receive-plain", metavar="FILE", help="be what receives and writes")
    options = parser.parse_args(arguments)
    if options.serve_plain:
        serve_plain(options.serve_plain)
    if options.serve_by_loop:
        asyncio.run(serve_by_loop(options.serve_by_loop))
    if options.receive_plain:
        receive_plain(options.receive_plain, int(options.flush))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measurement = Measurement(Path(folder), options.megabytes, options.rounds)
        for flush_every in map(int, options.flush.split(",")):
            measurement.appends(flush_every)
        measurement.fetches()
    measurement.report.show(as_json=options.json)


if __name__ == "__main__":
    main()
