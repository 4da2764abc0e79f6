"""Frames as a broken or hostile client of Kafka 0.8 sends them, thrown at the codec and a broker.

    python bench/kafka_hostile.py [--frames 100000] [--live 5000] [--seed 1] [--json]

A frame is drawn from requests that are right, and then changed: cut, longer, with a count, a
length, a key or a size that is wrong, with other bytes in its messages. What is owed is this.

- The codec gives a value or an error with a name, and takes no more memory than some times the
  frame (`memory`: the most bytes in one decoding, beside the size of the frame).
- The broker answers, or closes the connection with a sentence in its log. It ends no other
  connection, its memory stays bounded, and after all of it, it serves as before.

It ends with 1 if any of that is broken.
"""

from __future__ import annotations

import sys
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from socket import SHUT_WR, create_connection, socket
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.interop_clients.broker import HOST, Place, place
from bench.support.report import Report, number, parser_of

from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.frames import HEAD_BYTES, WireStruct
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode, wrap
from watchkeeper.model.log.format.requests_08 import OffsetsRequest, PartitionTime, TopicTimes
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import FetchRequest, PartitionFetch
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequest,
    CommitRequestV1,
    CommittedRequest,
    CommittedRequestV1,
    ConsumerMetadataRequest,
    PartitionCommit,
    PartitionNumber,
    TimedCommit,
)
from watchkeeper.model.wire_08.metadata import MetadataRequest
from watchkeeper.model.wire_08.produce import PartitionMessages, ProduceRequest
from watchkeeper.model.wire_08.table import decode_request, decode_response, encode_request

NUMBERS = (0, 1, -1, -2, 127, 0x7FFF, 0xFFFF, 0x7FFFFFFF, -0x80000000, 100 << 20)
TOPICS = ("clicks", "orders", "not-there", "no/name", "")
SHORT_WAIT_MS = 5
MOST_TIMES = 60
"""A decoded value may take so many times its frame: a count of small values costs the most."""
SLACK_BYTES = 20_000
MOST_GROWTH_BYTES = 64 << 20
"""How much the broker's memory may grow."""
ANSWER_S = 20.0


class Frames:
    """Draws frames by a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)

    def frame(self) -> bytes:
        """One frame, or what is left of one."""
        mutation = self._chance.choices(tuple(_WEIGHTS), tuple(_WEIGHTS.values()))[0]
        data = encode_request(self.request(), self._chance.randrange(1000), "hostile")
        return mutation(self, data[HEAD_BYTES:])

    # --- requests that are right -------------------------------------------------------

    def request(self) -> WireStruct:
        """A request with all its fields in their places."""
        return self._chance.choice(_REQUESTS)(self)

    def _topics(self, part: Callable[[], Any]) -> tuple[OfTopic[Any], ...]:
        chance = self._chance
        return tuple(
            OfTopic(chance.choice(TOPICS), tuple(part() for _ in range(chance.randrange(1, 4))))
            for _ in range(chance.randrange(1, 3))
        )

    def _partition(self) -> int:
        return self._chance.choice((0, 0, 0, 1, 1, 2, -1, 0x7FFFFFFF))

    def _messages(self) -> bytes:
        chance = self._chance
        messages = [
            KeyedMessage(chance.choice((None, b"k")), chance.randbytes(chance.randrange(40)))
            for _ in range(chance.randrange(4))
        ]
        data = bytearray(
            wrap(messages, chance.choice(tuple(Codec))) if messages else encode(messages)
        )
        if data and chance.random() < 0.5:
            data[chance.randrange(len(data))] = chance.randrange(256)
        return bytes(data)

    def _produce(self) -> WireStruct:
        parts = self._topics(lambda: PartitionMessages(self._partition(), self._messages()))
        return ProduceRequest(self._chance.choice((0, 1, -1, 2, -2)), SHORT_WAIT_MS, parts)

    def _fetch(self) -> WireStruct:
        offsets = (0, 0, 1, -1, 1 << 40)
        parts = self._topics(
            lambda: PartitionFetch(
                self._partition(), self._chance.choice(offsets), self._chance.choice(NUMBERS)
            )
        )
        return FetchRequest(SHORT_WAIT_MS, self._chance.choice((0, 1, 1 << 30)), parts)

    def _offsets(self) -> WireStruct:
        time = PartitionTime(self._partition(), self._chance.choice((-1, -2, 0)), 5)
        return OffsetsRequest((TopicTimes(self._chance.choice(TOPICS), (time,)),))

    def _metadata(self) -> WireStruct:
        return MetadataRequest(tuple(self._chance.choices(TOPICS, k=self._chance.randrange(3))))

    def _commit(self) -> WireStruct:
        parts = self._topics(lambda: PartitionCommit(self._partition(), 7, "text"))
        return CommitRequest("group", parts)

    def _commit_v1(self) -> WireStruct:
        return CommitRequestV1("group", self._topics(lambda: TimedCommit(self._partition(), 7)))

    def _committed(self) -> WireStruct:
        kind = self._chance.choice((CommittedRequest, CommittedRequestV1))
        return kind("group", self._topics(lambda: PartitionNumber(self._partition())))

    def _coordinator(self) -> WireStruct:
        return ConsumerMetadataRequest("group")

    # --- mutations ---------------------------------------------------------------------

    def _as_it_is(self, payload: bytes) -> bytes:
        return _framed(payload)

    def _cut(self, payload: bytes) -> bytes:
        return _framed(payload[: self._chance.randrange(1, len(payload) + 1)])

    def _longer(self, payload: bytes) -> bytes:
        return _framed(payload + self._chance.randbytes(self._chance.choice((1, 4, 100))))

    def _turned(self, payload: bytes) -> bytes:
        data = bytearray(payload)
        for _ in range(self._chance.choice((1, 1, 2, 8))):
            data[self._chance.randrange(len(data))] = self._chance.randrange(256)
        return _framed(bytes(data))

    def _another_number(self, payload: bytes) -> bytes:
        """Some four bytes are a number at the edge: a length, a count, an offset."""
        at = self._chance.randrange(max(1, len(payload) - 3))
        value = self._chance.choice(NUMBERS).to_bytes(4, signed=True)
        return _framed(payload[:at] + value + payload[at + 4 :])

    def _another_key(self, payload: bytes) -> bytes:
        key, version = self._chance.randrange(-2, 20), self._chance.randrange(-1, 3)
        return _framed(
            key.to_bytes(2, signed=True) + version.to_bytes(2, signed=True) + payload[4:]
        )

    def _another_size(self, payload: bytes) -> bytes:
        """A frame whose size is wrong: what follows is read as something else."""
        return self._chance.choice(NUMBERS).to_bytes(4, signed=True) + payload

    def _noise(self, payload: bytes) -> bytes:
        return _framed(self._chance.randbytes(len(payload)))


_REQUESTS: tuple[Callable[[Frames], WireStruct], ...] = (
    Frames._produce,
    Frames._produce,
    Frames._fetch,
    Frames._offsets,
    Frames._metadata,
    Frames._commit,
    Frames._commit_v1,
    Frames._committed,
    Frames._coordinator,
)
_WEIGHTS: dict[Callable[[Frames, bytes], bytes], int] = {
    Frames._as_it_is: 3,
    Frames._cut: 3,
    Frames._longer: 2,
    Frames._turned: 4,
    Frames._another_number: 6,
    Frames._another_key: 2,
    Frames._another_size: 1,
    Frames._noise: 1,
}


def _framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(HEAD_BYTES) + payload


# --- the codec -------------------------------------------------------------------------


def throw_at_codec(frames: Frames, count: int, report: Report) -> list[str]:
    """Decode frames; return what is broken."""
    outcomes: Counter[str] = Counter()
    broken, worst = [], (0, 0)
    tracemalloc.start()
    for _ in range(count):
        frame = frames.frame()
        tracemalloc.clear_traces()
        try:
            decode_request(memoryview(frame)[HEAD_BYTES:])
            outcomes["a value"] += 1
        except LogError as error:
            outcomes[type(error).__name__] += 1
        except Exception as error:
            broken.append(f"{type(error).__name__}: {error} of {frame.hex()[:200]}")
        used_bytes = tracemalloc.get_traced_memory()[1]
        worst = max(worst, (used_bytes, len(frame)))
        if used_bytes > MOST_TIMES * len(frame) + SLACK_BYTES:
            broken.append(f"{used_bytes} bytes for a frame of {len(frame)}: {frame.hex()[:200]}")
    tracemalloc.stop()
    for name, times in outcomes.most_common():
        report.rows.append(["codec", name, number(times)])
    report.rows.append([f"codec, memory for a frame of {worst[1]} bytes", "", number(worst[0])])
    return broken


# --- a broker --------------------------------------------------------------------------


def throw_at_broker(frames: Frames, count: int, report: Report, folder: Path) -> list[str]:
    """Send frames to a live broker, each over a connection of its own; return what is broken."""
    broken: list[str] = []
    outcomes: Counter[str] = Counter()
    with place(folder) as broker, _connected(broker) as other:
        _ask(other, MetadataRequest(("clicks", "orders")))
        before_bytes = _resident_bytes(broker)
        for _ in range(count):
            outcomes[_answer_to(broker, frames.frame())] += 1
        grown_bytes = _resident_bytes(broker) - before_bytes
        if grown_bytes > MOST_GROWTH_BYTES:
            broken.append(f"the broker's memory grew by {grown_bytes} bytes")
        try:
            _ask(other, MetadataRequest(("clicks",)))
        except (OSError, LogError) as error:
            broken.append(f"a connection from before the frames is of no use: {error}")
        if "defect" in broker.log():
            broken.append(f"the broker's log has a defect: {broker.log_file}")
        if broker.end():
            broken.append("the broker did not end with code 0")
    for name, times in outcomes.most_common():
        report.rows.append(["broker", name, number(times)])
    report.rows.append(["broker, memory grown by so many bytes", "", number(max(grown_bytes, 0))])
    return broken


def _answer_to(broker: Place, frame: bytes) -> str:
    """Send a frame and the end of the connection; say what came back."""
    with _connected(broker) as connection:
        try:
            connection.sendall(frame)
            connection.shutdown(SHUT_WR)
            came = False
            while data := connection.recv(1 << 16):
                came |= bool(data)
        except ConnectionError:
            return "reset"
    return "answered" if came else "closed"


def _connected(broker: Place) -> socket:
    _, _, port = broker.address.rpartition(":")
    return create_connection((HOST, int(port)), ANSWER_S)


def _ask(connection: socket, request: WireStruct) -> Any:
    connection.sendall(encode_request(request, 1, "other"))
    with connection.makefile("rb") as answers:
        size_bytes = int.from_bytes(answers.read(HEAD_BYTES))
        return decode_response(request, answers.read(size_bytes), 1)


def _resident_bytes(broker: Place) -> int:
    fields = Path(f"/proc/{broker.process.pid}/statm").read_text().split()
    return int(fields[1]) * 4096


def main(arguments: Sequence[str] | None = None) -> int:
    """Throw and print; return 1 if something is broken."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--frames", type=int, default=100_000, help="for the codec (100,000)")
    parser.add_argument("--live", type=int, default=5_000, help="for a broker (5,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the frames (1)")
    options = parser.parse_args(arguments)
    report = Report("Mutated frames of Kafka 0.8", ("at", "outcome", "frames"))
    broken = throw_at_codec(Frames(options.seed), options.frames, report)
    if options.live:
        with tempfile.TemporaryDirectory() as folder:
            live = Frames(options.seed + 1)
            broken += throw_at_broker(live, options.live, report, Path(folder))
    report.data["rows"], report.data["broken"] = report.rows, broken
    report.notes += broken[:20] or ["nothing is broken"]
    report.show(as_json=options.json)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
