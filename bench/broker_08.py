"""A real broker of 0.8 beside plain writes and plain sendfile, on this disk and over loopback.

    python bench/broker_08.py [--megabytes 64] [--rounds 5] [--folder DIR] [--json]
    python bench/broker_08.py --kafka [--jars FOLDER] [...]

Message sets of 200 messages of 100 bytes, plain and snappy, produced without a response (acks 0,
as fast as the connection takes them) and with one for each set (acks 1, one set at a time). The
broker checks each CRC, writes the offset into each message, and decompresses and compresses again
what is compressed, as Kafka 0.8 does; `MB/s` counts the bytes of the messages as they are sent.
`plain writes` is a process that writes the same sets to a file; nothing is flushed, as by default
in 0.8. Fetches of 1 MiB and of 200 messages are held against a process that answers with a head
and one `sendfile`.

Each contender, the broker and the client are processes of their own; each round measures one
after the other. CPU seconds are those of server and client for a GB.

With `--kafka` the broker is held against Kafka 0.8.2.2's own instead, by two clients: the one of
this bench, and to append also Kafka's ProducerPerformance (batches of 200 messages of 100 bytes),
which prints MB/s of the messages' values. With acks 0, the time until the broker has everything
is added. One round of Kafka's broker before the others does not count. The ratio is that of the
medians. Kafka's SimpleConsumerPerformance is no measure: it adds bytes to its offset, and skips
most messages.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.broker import (
    HOST,
    Measurement,
    Run,
    Served,
    received,
    serve_plain,
    serving,
    timed,
    write,
)
from bench.interop_clients.kafka_cluster import KafkaCluster, KafkaZooKeeper
from bench.interop_clients.kafka_jars import SPEED, default_folder, java_command
from bench.interop_clients.outcome import Skipped
from bench.support.report import parser_of

from watchkeeper import SimpleConsumer
from watchkeeper.model.clients_08.errors import RefusedByBroker
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.frames import HEAD_BYTES, WireStruct
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode, wrap
from watchkeeper.model.log.format.requests import FetchRequest as PlainFetch
from watchkeeper.model.log.format.requests import encode_request as encode_plain
from watchkeeper.model.log.format.requests import fetch_head
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import FetchRequest, PartitionFetch, heads
from watchkeeper.model.wire_08.metadata import MetadataRequest
from watchkeeper.model.wire_08.produce import PartitionMessages, ProduceRequest
from watchkeeper.model.wire_08.table import decode_response, encode_request

NEVER = 1 << 62
MESSAGES = 200
WORDS = (
    b"the quick brown fox jumps over the lazy dog and does it again, as every message here does "
)
CODECS = (Codec.NONE, Codec.SNAPPY)
TOPIC = "fetched"
OURS, THEIRS = "broker", "Kafka 0.8.2.2"
KAFKA_SETTINGS = ("num.partitions=1", f"log.segment.bytes={1 << 30}")
VALUE_BYTES = 100
OVERHEAD_BYTES = 26
"""Of a message without a key, beside its value."""
SENT = re.compile(r"^(?P<count>\d+) records sent, .*\((?P<rate>[\d.]+) MB/sec\)", re.MULTILINE)
READY_WITHIN_S = 60.0


def set_of(codec: Codec) -> bytes:
    """A message set of 200 messages of 100 bytes, which compress a little."""
    values = [(b"%05d " % number + WORDS + b"....")[:100] for number in range(MESSAGES)]
    messages = [KeyedMessage(None, value) for value in values]
    return wrap(messages, codec) if codec else encode(messages)


def ask(connection: socket.socket, request: WireStruct) -> object:
    """Send a request, and wait for its response."""
    connection.sendall(encode_request(request, 1, "bench"))
    (size_bytes,) = struct.unpack(">i", received(connection, memoryview(bytearray(HEAD_BYTES))))
    frame = bytes(received(connection, memoryview(bytearray(size_bytes))))
    return decode_response(request, frame, 1)


def produce_of(topic: str, messages: bytes, acks: int) -> ProduceRequest:
    """A produce request for the first partition of a topic."""
    return ProduceRequest(acks, 1000, (OfTopic(topic, (PartitionMessages(0, messages),)),))


def append(served: Served, topic: str, messages: bytes, acks: int, times: int) -> Run:
    """Produce a set so many times; done when the broker has served all that came before."""
    with served.connect() as connection:
        ask(connection, MetadataRequest((topic,)))
        frame = encode_request(produce_of(topic, messages, 0), 1, "bench")
        last = produce_of(topic, messages, 1)

        def stream() -> None:
            for _ in range(times - 1):
                connection.sendall(frame)
            ask(connection, last)

        def one_by_one() -> None:
            for _ in range(times):
                ask(connection, last)

        return timed(served, len(messages) * times, one_by_one if acks else stream)


def fetch(served: Served, entries: int, end: int, size_bytes: int) -> Run:
    """Fetch a log from its beginning to its end, one request after the other.

    The log has plain entries of one size, so that `size_bytes` are whole ones.
    """
    step = entries * size_bytes // end
    with served.connect() as connection:
        head = next(iter(heads(1, (OfTopic(TOPIC, (_Sized(size_bytes),)),))))
        buffer = memoryview(bytearray(len(head) + size_bytes))

        def work() -> None:
            for offset in range(0, entries - step + 1, step):
                parts = (OfTopic(TOPIC, (PartitionFetch(0, offset, size_bytes),)),)
                connection.sendall(encode_request(FetchRequest(0, 1, parts), 1, "bench"))
                received(connection, buffer)
                if buffer[:HEAD_BYTES] != head[:HEAD_BYTES]:
                    raise SystemExit("the response does not answer the request")

        return timed(served, len(range(0, entries - step + 1, step)) * size_bytes, work)


class _Sized:
    """A part of a response, of which only the size matters."""

    partition = error_code = high_watermark = 0

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


def fetch_plain(served: Served, end: int, size_bytes: int) -> Run:
    """The same bytes of the same file from the process that answers plainly."""
    places = range(0, end - size_bytes + 1, size_bytes)
    buffer = memoryview(bytearray(len(fetch_head(0)) + size_bytes))
    with served.connect() as connection:

        def work() -> None:
            for at in places:
                connection.sendall(encode_plain(PlainFetch(TOPIC, 0, at, size_bytes)))
                received(connection, buffer)

        return timed(served, len(places) * size_bytes, work)


class Measurement08(Measurement):
    """Runs of a broker of 0.8, side by side with what it is held against."""

    def measure(self) -> None:
        """Append, then fetch."""
        self.report.title = self.report.title.replace("real broker", "real broker of 0.8")
        logs = self.folder / "logs"
        command = ("-P", "-m", "watchkeeper", "broker", "--protocol", "0.8", "--port", "0")
        with serving(*command, "--log-dir", str(logs)) as broker:
            for codec in CODECS:
                self._append(broker, codec)
            self._fetches(broker, logs)

    def _append(self, broker: Served, codec: Codec) -> None:
        messages = set_of(codec)
        name = f"{codec.name.lower()}, {len(messages):,} bytes"
        for acks in (0, 1):
            times = max(self.size_bytes // len(messages) // (1 if not codec else 4), 2)
            topic = f"append-{codec.name.lower()}.{acks}"
            self.compare(
                "append",
                name,
                f"acks {acks}",
                {
                    "broker": partial(append, broker, topic, messages, acks, times),
                    "plain writes": partial(write, self.folder / "plain", messages, times, NEVER),
                },
            )

    def _fetches(self, broker: Served, logs: Path) -> None:
        messages = set_of(Codec.NONE)
        times = max(self.size_bytes // len(messages), 50)
        append(broker, TOPIC, messages, 0, times)
        path = logs / f"{TOPIC}-0" / f"{0:020}.log"
        end, entries = path.stat().st_size, MESSAGES * times
        with serving(__file__, "--serve-plain", str(path)) as plain:
            for name, count in (("200 messages", 1), ("1 MiB", 41)):
                size_bytes = count * len(messages)
                self.compare(
                    "fetch",
                    name,
                    "",
                    {
                        "broker": partial(fetch, broker, entries, end, size_bytes),
                        "plain sendfile": partial(fetch_plain, plain, end, size_bytes),
                    },
                )


# --- beside Kafka ----------------------------------------------------------------------


class BesideKafka(Measurement):
    """Runs of a broker of 0.8, side by side with Kafka's."""

    def __init__(self, folder: Path, megabytes: int, rounds: int, jars: Path) -> None:
        super().__init__(folder, megabytes, rounds)
        self.jars = jars
        self.report.title = "A broker of 0.8 beside that of Kafka 0.8.2.2; the same clients"

    def measure(self) -> None:
        """Append, then fetch, by the client of this bench and by Kafka's."""
        command = ("-P", "-m", "watchkeeper", "broker", "--protocol", "0.8", "--port", "0")
        with (
            serving(*command, "--log-dir", str(self.folder / "logs")) as ours,
            kafka_serving(self.folder, self.jars) as theirs,
        ):
            who = {OURS: ours, THEIRS: theirs}
            for codec in CODECS:
                for acks in (0, 1):
                    self._appends(who, codec, acks)
            self._fetches(who)

    def _appends(self, who: dict[str, Served], codec: Codec, acks: int) -> None:
        messages, name = set_of(codec), codec.name.lower()
        times = max(self.size_bytes // len(messages) // (4 if codec else 1), 2)
        topic = f"raw-{name}.{acks}"
        frames = {
            each: partial(appended, served, topic, messages, acks, times)
            for each, served in who.items()
        }
        self._beside("append", f"{name}, this bench", f"acks {acks}", frames)
        count = max(self.size_bytes // VALUE_BYTES // MESSAGES, 2) * MESSAGES
        programs = {
            each: partial(produced, self.jars, served, f"jvm-{name}.{acks}", name, acks, count)
            for each, served in who.items()
        }
        self._beside("append", f"{name}, ProducerPerformance", f"acks {acks}", programs)

    def _fetches(self, who: dict[str, Served]) -> None:
        messages = set_of(Codec.NONE)
        times = max(self.size_bytes // len(messages), 50)
        for served in who.values():
            appended(served, TOPIC, messages, 0, times)
        end, entries = times * len(messages), MESSAGES * times
        for name, count in (("200 messages", 1), ("1 MiB", 41)):
            size_bytes = count * len(messages)
            frames = {
                each: partial(fetch, served, entries, end, size_bytes)
                for each, served in who.items()
            }
            self._beside("fetch", f"{name}, this bench", "", frames)

    def _beside(
        self, what: str, name: str, acks: str, who: Mapping[str, Callable[[], Run]]
    ) -> None:
        who[THEIRS]()
        runs = self.in_turn(what, name, acks, who)
        ours, theirs = (median(run.megabytes_s for run in runs[each]) for each in (OURS, THEIRS))
        case = ", ".join(filter(None, (what, name, acks)))
        self.report.notes.append(f"{case}: {ours / theirs:.2f} of Kafka's")
        ratio = {"what": what, "set": name, "acks": acks, "ratio": ours / theirs}
        self.report.data.setdefault("ratios", []).append(ratio)


@contextmanager
def kafka_serving(folder: Path, jars: Path) -> Iterator[Served]:
    """Kafka's broker on its own ZooKeeper, with every compiler of Java."""
    zookeeper = KafkaZooKeeper(folder / "zookeeper", jars)
    cluster = KafkaCluster(
        folder / "kafka", zookeeper.hosts, jars, settings=KAFKA_SETTINGS, options=SPEED
    )
    try:
        zookeeper.start()
        cluster.start(0)
        cluster.await_registered(0)
        yield Served(cluster.process(0), cluster.ports[0])
    finally:
        cluster.end()
        zookeeper.end()


def appended(served: Served, topic: str, messages: bytes, acks: int, times: int) -> Run:
    """Produce sets by the client of this bench, and check that the log has grown by them."""
    before = end_of(served, topic)
    run = append(served, topic, messages, acks, times)
    until_grown(served, topic, before, MESSAGES * times)
    return run


def produced(jars: Path, served: Served, topic: str, codec: str, acks: int, count: int) -> Run:
    """Produce by Kafka's ProducerPerformance, until the log has grown by all of it."""
    before = end_of(served, topic)
    settings = {
        "bootstrap.servers": f"{HOST}:{served.port}",
        "acks": acks,
        "compression.type": codec,
        "batch.size": MESSAGES * (VALUE_BYTES + OVERHEAD_BYTES),
        "linger.ms": 5,
    }
    given = (topic, str(count), str(VALUE_BYTES), "-1")
    name = "org.apache.kafka.clients.tools.ProducerPerformance"
    options = (f"{key}={value}" for key, value in settings.items())
    run = of_program(jars, served, count, SENT, name, *given, *options)
    after_s = until_grown(served, topic, before, count)
    if acks:
        return run  # which has waited for all of it
    megabytes = count * VALUE_BYTES / 1e6
    return run._replace(megabytes_s=megabytes / (megabytes / run.megabytes_s + after_s))


def of_program(
    jars: Path, served: Served, count: int, pattern: re.Pattern[str], *arguments: str
) -> Run:
    """Run a program of Kafka that prints in its last line how fast it was, with how much."""
    server, client = served.cpu_s(), os.times()
    done = subprocess.run(
        [*java_command(jars, SPEED), *arguments], capture_output=True, text=True, timeout=600
    )
    took = os.times()
    found = [*pattern.finditer(done.stdout)]
    if done.returncode or not found or int(found[-1]["count"]) != count:
        raise SystemExit(f"{arguments[0]} has failed: {done.stdout[-300:]}{done.stderr[-300:]}")
    client_s = took.children_user + took.children_system
    client_s -= client.children_user + client.children_system
    per_gb = 1e9 / (count * VALUE_BYTES)
    rate = float(found[-1]["rate"]) * (1 << 20) / 1e6
    return Run(rate, (served.cpu_s() - server) * per_gb, client_s * per_gb)


def end_of(served: Served, topic: str) -> int:
    """The end of the first partition of a topic, which is created if it is missing."""
    deadline_s = time.monotonic() + READY_WITHIN_S
    while True:
        with (
            suppress(RefusedByBroker),  # it has no leader yet
            SimpleConsumer(f"{HOST}:{served.port}", protocol="0.8") as consumer,
        ):
            if consumer.leaders(topic).get(0):
                return consumer.latest(topic, 0)
        if time.monotonic() > deadline_s:
            raise SystemExit(f"{topic} has no leader at port {served.port}")
        time.sleep(0.1)


def until_grown(served: Served, topic: str, before: int, count: int) -> float:
    """Wait until a log has grown by so many messages, and return the seconds that took.

    Without acknowledgements a producer ends before the broker has read all that it sent.
    """
    began_s = time.perf_counter()
    while (grown := end_of(served, topic) - before) != count:
        if time.perf_counter() - began_s > READY_WITHIN_S:
            raise SystemExit(f"{topic} has {grown} messages more, and {count} were sent")
        time.sleep(0.01)
    return time.perf_counter() - began_s


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--megabytes", type=int, default=64, help="in a round (64)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run (5)")
    parser.add_argument("--folder", help="where to write; on the disk that is to be measured")
    parser.add_argument("--serve-plain", metavar="FILE", help="be what it is held against")
    parser.add_argument("--kafka", action="store_true", help="hold it against Kafka's broker")
    parser.add_argument("--jars", type=Path, default=default_folder(), help="Kafka's jars")
    options = parser.parse_args(arguments)
    if options.serve_plain:
        serve_plain(options.serve_plain)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        sizes = (Path(folder), options.megabytes, options.rounds)
        measurement = (
            BesideKafka(*sizes, options.jars) if options.kafka else Measurement08(*sizes)
        )
        try:
            measurement.measure()
        except Skipped as why:
            raise SystemExit(f"Kafka's broker is missing: {why}") from None
    measurement.report.show(as_json=options.json)


if __name__ == "__main__":
    main()
