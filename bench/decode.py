"""How many messages a second are decoded and checked, in the formats of 0.7 and of 0.8.

    python bench/decode.py [--messages 200000] [--payload 100] [--rounds 7] [--json]

Message sets are of the size that a consumer fetches by default (1 MiB, uncompressed), and
each is decoded again and again. The payloads are lines of a web server's log.

  payloads   every payload, its CRC checked: the fastest way to read a set
  delivered  the same with offsets, a value for each message: what a consumer is handed
  checked    what a broker does before it appends: CRC, size, count, wrappers opened; also of
             messages whose sizes differ, between a twentieth and all of that of the others
  recovered  what a broker does when it starts after a crash: where whole entries end
  records    offset, key and value of a message of 0.8, its CRC checked

kafka-python reads the same sets of 0.8, in the same run and in turn with ours. It checks
the CRC of each entry, as its consumer does by default; of what is in a wrapper it checks
none, and ours does. Without it (`pip install "kafka-python[snappy]"`) ours is measured alone.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import CLOCKS, Bar, Clock, Report, number, parser_of, spread

from watchkeeper.model.log.format import message_08, message_set_07
from watchkeeper.model.log.format.codecs import CODECS_07, Codec
from watchkeeper.model.log.format.entries import check_set, intact_size, messages_in
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_08 import KeyedMessage

SET_BYTES = 1024 * 1024
WRAPPER_MESSAGES = 200
"""What a producer of 0.7 sends at once, so what it compresses into one wrapper."""
PARTS = (1.0, 0.2, 0.7, 0.35, 0.9, 0.55, 0.05)
"""How much of a line there is in a message, where messages are of many sizes."""
PER_SECOND = 800_000.0
LARGEST_PAYLOAD_BYTES = 1_000_000
HAS_KAFKA_PYTHON = find_spec("kafka") is not None

Decode = Callable[[bytes], Any]


# --- what is decoded -------------------------------------------------------------------


def lines(count: int, payload_bytes: int, seed: int = 7) -> list[bytes]:
    """Lines of a log, all of one size, no two of them equal."""
    draw = random.Random(seed)
    pages = [f"/page/{draw.randrange(10**6)}" for _ in range(50)]

    def line() -> bytes:
        address = ".".join(str(draw.randrange(256)) for _ in range(4))
        text = f"{address} {draw.randrange(10**9)} GET {draw.choice(pages)} 200 "
        return (text * (payload_bytes // len(text) + 1)).encode()[:payload_bytes]

    return [line() for _ in range(count)]


def cut(line: bytes, part: float) -> bytes:
    """The beginning of a line."""
    return line[: round(len(line) * part)]


def batches(payloads: Sequence[bytes]) -> Iterator[tuple[int, Sequence[bytes]]]:
    """What one wrapper holds, and the number of its first message."""
    for first in range(0, len(payloads), WRAPPER_MESSAGES):
        yield first, payloads[first : first + WRAPPER_MESSAGES]


def set_07(payloads: Sequence[bytes], codec: Codec) -> bytes:
    """A set of 0.7."""
    parts = (message_set_07.wrap(map(Message.of, some), codec) for _, some in batches(payloads))
    return b"".join(parts)


def set_08(payloads: Sequence[bytes], codec: Codec, key: bytes | None = None) -> bytes:
    """A set of 0.8."""
    return b"".join(
        message_08.wrap((KeyedMessage(key, payload) for payload in some), codec, first)
        for first, some in batches(payloads)
    )


# --- who decodes -----------------------------------------------------------------------


def delivered(data: bytes) -> list[Any]:
    """What a consumer is handed."""
    return list(messages_in(data, 0))


def checked_set(data: bytes) -> Any:
    """What a broker does before it appends."""
    return check_set(data, opens_wrappers=True, largest_payload_bytes=LARGEST_PAYLOAD_BYTES)


def records(data: bytes) -> list[Any]:
    """The messages of 0.8."""
    return list(message_08.records(data))


def kafka_python(data: bytes) -> list[Any]:
    """The messages of 0.8, read by kafka-python as its consumer reads them."""
    from kafka.record import MemoryRecords  # type: ignore[import-not-found,unused-ignore]

    found: list[Any] = []
    reader = MemoryRecords(data)
    while reader.has_next():
        batch = reader.next_batch()
        if not batch.validate_crc():
            raise SystemExit("kafka-python found a wrong CRC; this was no measurement")
        found.extend(batch)
    return found


def triples(found: Sequence[Any]) -> list[tuple[int, bytes | None, bytes | None]]:
    """What was read of 0.8, by whichever of the two, as plain values."""
    return [(message.offset, message.key, message.value) for message in found]


# --- what is measured ------------------------------------------------------------------


def rate(decode: Decode, data: bytes, in_set: int, messages: int, clock: Clock) -> float:
    """Messages a second, over as many sets as hold so many messages."""
    sets = -(-messages // in_set)
    began = clock()
    for _ in range(sets):
        decode(data)
    return sets * in_set / (clock() - began)


class Measurement:
    """Decodes, checked once and measured in turn, and the report of them."""

    def __init__(self, messages: int, payload_bytes: int, rounds: int, clock_name: str) -> None:
        self.messages = messages
        self.rounds = rounds
        self.clock = CLOCKS[clock_name]
        in_set = max(1, SET_BYTES // (payload_bytes + 10))
        self.payloads = lines(min(in_set, messages), payload_bytes)
        self.report = Report(
            f"Messages of {payload_bytes} bytes decoded a second on one core: {rounds} rounds of "
            f"{messages:,}, {clock_name} time",
            ("format", "codec", "what", "best/s", "median/s"),
        )

    def compare(self, form: str, codec: str, data: bytes, who: dict[str, Decode]) -> None:
        """Measure some on the same data, round by round in turn."""
        rates: dict[str, list[float]] = {name: [] for name in who}
        for name, decode in islice(cycle(who.items()), self.rounds * len(who)):
            found_rate = rate(decode, data, len(self.payloads), self.messages, self.clock)
            rates[name].append(found_rate)
        for name, several in rates.items():
            found = spread(several, higher_is_better=True)
            row = [form, codec, name, number(found.best), number(found.median)]
            self.report.rows.append(row)
            self.report.data.setdefault("runs", []).append(
                {"format": form, "codec": codec, "what": name, "per_second": asdict(found)}
            )
            if (form, codec, name) == ("0.7", "none", "payloads"):
                what = "0.7, plain, payloads"
                self.report.bars.append(Bar(what, "at least", PER_SECOND, "messages/s", found))
        if len(rates) > 1:
            self.against(f"{form}, {codec}: against kafka-python", *rates.values())

    def against(self, what: str, ours: list[float], theirs: list[float]) -> None:
        """Add a bar for how many times as fast as the other we are, round for round."""
        ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
        found = spread(ratios, higher_is_better=True)
        self.report.bars.append(Bar(what, "at least", 1.0, "times as fast", found))

    def old_format(self) -> None:
        """Everything of 0.7."""
        for codec in sorted(CODECS_07):
            data = set_07(self.payloads, codec)
            if message_set_07.payloads(data) != self.payloads:
                raise SystemExit("what was decoded is not what was encoded")
            name = codec.name.lower()
            self.compare("0.7", name, data, {"payloads": message_set_07.payloads})
            self.compare("0.7", name, data, {"delivered": delivered})
            self.compare("0.7", name, data, {"checked": checked_set})
        data = set_07(self.payloads, Codec.NONE)
        self.compare("0.7", "none", data, {"recovered": intact_size})
        mixed = set_07(list(map(cut, self.payloads, cycle(PARTS))), Codec.NONE)
        self.compare("0.7, of many sizes", "none", mixed, {"checked": checked_set})
        old = message_set_07.encode(Message.of(payload, magic=0) for payload in self.payloads)
        self.compare("0.7, magic 0", "none", old, {"payloads": message_set_07.payloads})

    def new_format(self) -> None:
        """0.8, with kafka-python beside us if it is there."""
        kinds = [("0.8", codec, None) for codec in Codec]
        for form, codec, key in [*kinds, ("0.8, keys", Codec.NONE, b"a key")]:
            data = set_08(self.payloads, codec, key)
            who: dict[str, Decode] = {"records": records}
            if HAS_KAFKA_PYTHON:
                who["kafka-python"] = kafka_python
            wanted = [(offset, key, value) for offset, value in enumerate(self.payloads)]
            if any(triples(decode(data)) != wanted for decode in who.values()):
                raise SystemExit("what was decoded is not what was encoded")
            self.compare(form, codec.name.lower(), data, who)


def measure(messages: int, payload_bytes: int, rounds: int, clock_name: str) -> Report:
    """Measure all of it."""
    measurement = Measurement(messages, payload_bytes, rounds, clock_name)
    measurement.old_format()
    measurement.new_format()
    if not HAS_KAFKA_PYTHON:
        measurement.report.notes.append(
            'kafka-python is not installed (pip install "kafka-python[snappy]"): ours alone.'
        )
    return measurement.report


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--messages", type=int, default=200_000, help="in a round (200,000)")
    parser.add_argument("--payload", type=int, default=100, help="bytes of a payload (100)")
    parser.add_argument("--rounds", type=int, default=7, help="how often each is run (7)")
    options = parser.parse_args(arguments)
    report = measure(options.messages, options.payload, options.rounds, options.clock)
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
