"""A real broker of 0.8 beside plain writes and plain sendfile, on this disk and over loopback.

    python bench/broker_08.py [--megabytes 64] [--rounds 5] [--folder DIR] [--json]

Message sets of 200 messages of 100 bytes, plain and snappy, produced without a response (acks 0,
as fast as the connection takes them) and with one for each set (acks 1, one set at a time). The
broker checks each CRC, writes the offset into each message, and decompresses and compresses again
what is compressed, as Kafka 0.8 does; `MB/s` counts the bytes of the messages as they are sent.
`plain writes` is a process that writes the same sets to a file; nothing is flushed, as by default
in 0.8. Fetches of 1 MiB and of 200 messages are held against a process that answers with a head
and one `sendfile`.

Each contender, the broker and the client are processes of their own; each round measures one
after the other. CPU seconds are those of server and client for a GB.
"""

from __future__ import annotations

import socket
import struct
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.broker import Measurement, Run, Served, received, serve_plain, serving, timed, write
from bench.support.report import parser_of

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


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--megabytes", type=int, default=64, help="in a round (64)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run (5)")
    parser.add_argument("--folder", help="where to write; on the disk that is to be measured")
    parser.add_argument("--serve-plain", metavar="FILE", help="be what it is held against")
    options = parser.parse_args(arguments)
    if options.serve_plain:
        serve_plain(options.serve_plain)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measurement = Measurement08(Path(folder), options.megabytes, options.rounds)
        measurement.measure()
    measurement.report.show(as_json=options.json)


if __name__ == "__main__":
    main()
