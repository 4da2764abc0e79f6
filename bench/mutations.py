"""Damaged frames, message sets and logs: each gives a value or an error that has a name.

    python bench/mutations.py [--mutations 100000] [--seed 1] [--json]

Well-formed bytes of every kind are damaged in one to four places (bits, bytes, numbers that
are put to their extremes, parts cut out, doubled or taken from elsewhere) and given to
whatever reads that kind. Often what would hide the damage is mended: the size of a frame, the
CRC of a first entry; and often what was damaged is compressed into a sound wrapper. Each has
to come to an end with a value or with a `LogError`, within its time, and with no more memory
than a few times the limit, which holds for frames and for what is decompressed. Among the
samples are some that decompress to fifteen times the limit.

Exit code 1 if anything else happened; what did is printed with the bytes that make it happen.
"""

from __future__ import annotations

import random
import signal
import struct
import sys
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of

from watchkeeper.model.log.format import message_08, message_set_07, requests
from watchkeeper.model.log.format.bulk_checksum import intact_prefix
from watchkeeper.model.log.format.codecs import Codec, compress
from watchkeeper.model.log.format.entries import check_set, intact_size, messages_in, valid_size
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.frames import frame_size
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_08 import KeyedMessage

LIMIT_BYTES = 64 * 1024
"""The largest frame, and the most that may be decompressed, in this bench."""
TIMES_THE_LIMIT = 8.0
"""How much memory may be taken at once: so many times the limit."""
LONGEST_S = 5.0
MOST_SHOWN = 5
BOMB_TIMES = 15
"""How much more than the limit a bomb holds; with snappy it is as large as a frame then."""

Use = Callable[[bytes], Any]


# --- samples ---------------------------------------------------------------------------

TEXTS = [b"", b"42", b"hello", b"x" * 100, bytes(range(256))]
MESSAGES = [Message.of(text, magic=magic) for text in TEXTS for magic in (0, 1)]
COMPRESSING_07 = (Codec.GZIP, Codec.SNAPPY)
COMPRESSING_08 = (*COMPRESSING_07, Codec.LZ4)
KEYED = [KeyedMessage(key, value) for key in (None, b"", b"key") for value in (None, b"value")]


def wrapper(inner: bytes, codec: Codec) -> bytes:
    """A wrapper of 0.7 round anything."""
    return message_set_07.encode([Message.of(compress(codec, inner), codec=codec)])


def wrapper_08(inner: bytes, codec: Codec) -> bytes:
    """A wrapper of 0.8 round anything."""
    return message_08.encode([KeyedMessage(None, compress(codec, inner), int(codec))])


def sets_07() -> list[bytes]:
    """Message sets of 0.7."""
    plain = message_set_07.encode(MESSAGES)
    packed = [wrapper(plain, codec) for codec in COMPRESSING_07]
    bombs = [wrapper(bytes(BOMB_TIMES * LIMIT_BYTES), codec) for codec in COMPRESSING_07]
    tiny = message_set_07.encode([Message.of(b"42", magic=0)] * (LIMIT_BYTES // 11))
    most = wrapper(tiny, Codec.GZIP)
    nested = wrapper(wrapper(packed[0] + plain, Codec.SNAPPY) * 3, Codec.GZIP)
    many = packed[0] * 50
    return [plain, *packed, *bombs, most, nested, many, plain * 20, b""]


def sets_08() -> list[bytes]:
    """Message sets of 0.8."""
    plain = message_08.encode(KEYED, 7)
    packed = [wrapper_08(plain, codec) for codec in COMPRESSING_08]
    bombs = [wrapper_08(bytes(BOMB_TIMES * LIMIT_BYTES), codec) for codec in COMPRESSING_08]
    tiny = message_08.encode([KeyedMessage(None, b"42")] * (LIMIT_BYTES // 28))
    most = wrapper_08(tiny, Codec.GZIP)
    nested = wrapper_08(wrapper_08(packed[0] + plain, Codec.SNAPPY) * 3, Codec.GZIP)
    return [plain, *packed, *bombs, most, nested, packed[1] * 50, b""]


FETCH = requests.FetchRequest("clicks", 0, 1000, 1024)
MULTIFETCH = requests.MultiFetchRequest((FETCH,) * 3)
OFFSETS = requests.OffsetsRequest("clicks", 0, requests.LATEST, 10)


def request_frames() -> list[bytes]:
    """Every request, as a frame."""
    produces = [requests.ProduceRequest("clicks", 3, data) for data in sets_07()[:3]]
    several = requests.MultiProduceRequest(tuple(produces))
    return [
        requests.encode_request(request)
        for request in (*produces, several, FETCH, MULTIFETCH, OFFSETS)
    ]


def response_frames() -> list[bytes]:
    """Every response, as a frame."""
    parts = tuple(requests.FetchResponse(data) for data in sets_07()[:3])
    responses = (
        *parts,
        requests.MultiFetchResponse(parts),
        requests.OffsetsResponse(tuple(range(0, 9000, 1000))),
    )
    return [requests.encode_response(response) for response in responses]


# --- who reads them --------------------------------------------------------------------


def read_request(frame: bytes) -> Any:
    """What a broker does with a frame: all of it, down to the messages."""
    size_bytes = frame_size(frame, limit_bytes=LIMIT_BYTES)
    request = requests.decode_request(frame[4 : 4 + size_bytes])
    produces = getattr(request, "produces", (request,))
    for produce in produces:
        if isinstance(produce, requests.ProduceRequest):
            append(produce.messages)  # type: ignore[arg-type]
    return request


def response_to(request: requests.Request) -> Use:
    """What a client does with the frame that answers a request."""

    def read(frame: bytes) -> Any:
        size_bytes = frame_size(frame, limit_bytes=LIMIT_BYTES)
        response = requests.decode_response(request, frame[4 : 4 + size_bytes])
        for part in getattr(response, "responses", (response,)):
            if isinstance(part, requests.FetchResponse):
                consume(part.messages)  # type: ignore[arg-type]
        return response

    return read


def append(data: bytes) -> Any:
    """What a broker does with a set; what it sees at once has to be what it appends."""
    seen = intact_prefix(data, largest_payload_bytes=10**6)
    for opens_wrappers in (False, True):
        kept = check_set(
            data,
            opens_wrappers=opens_wrappers,
            largest_payload_bytes=10**6,
            limit_bytes=LIMIT_BYTES,
        )
    assert (seen.message_count, seen.size_bytes) <= (kept.message_count, kept.size_bytes)
    return kept


def consume(data: bytes) -> Any:
    """What a consumer does with a set, message by message."""
    for message in messages_in(data, 1000, limit_bytes=LIMIT_BYTES):
        assert 1000 <= message.offset <= message.next_offset <= 1000 + len(data)
    return valid_size(data)


def payloads(data: bytes) -> Any:
    """Decode a set as a bulk reader does."""
    return message_set_07.payloads(data, limit_bytes=LIMIT_BYTES)


def recover(data: bytes) -> Any:
    """What a broker does with a file; what is left has to be read without an error."""
    intact = intact_size(data)
    assert intact == intact_size(data[:intact]) == valid_size(data[:intact])
    return list(message_set_07.shallow(data[:intact]))


def read_08(data: bytes) -> Any:
    """What a consumer of 0.8 does with a set."""
    return sum(1 for _ in message_08.records(data, limit_bytes=LIMIT_BYTES))


def assign_08(data: bytes) -> Any:
    """What a broker of 0.8 does with a set; it has to be as good as new then."""
    found = message_08.assign_offsets(data, 1000, limit_bytes=LIMIT_BYTES)
    assert message_08.intact_size(found.data) == len(found.data)
    return found


# --- damage ----------------------------------------------------------------------------

EXTREMES = (0, 1, -1, 4, 5, 127, 255, 2**15 - 1, 2**31 - 1, -(2**31), 2**24)
Damage = Callable[[bytearray, random.Random, bytes], None]


def flip(data: bytearray, draw: random.Random, other: bytes) -> None:
    """Turn a bit over."""
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def overwrite(data: bytearray, draw: random.Random, other: bytes) -> None:
    """Put any byte somewhere."""
    data[draw.randrange(len(data))] = draw.randrange(256)


def extreme(data: bytearray, draw: random.Random, other: bytes) -> None:
    """Put a number to its extreme, often near the start, where sizes are."""
    at = draw.randrange(draw.choice((8, 40, len(data))))
    form, mask = draw.choice(((">I", 2**32 - 1), (">H", 2**16 - 1)))
    packed = struct.pack(form, draw.choice(EXTREMES) & mask)
    data[at : at + len(packed)] = packed


def cut(data: bytearray, draw: random.Random, other: bytes) -> None:
    """Cut the end off."""
    del data[draw.randrange(len(data)) :]


def remove(data: bytearray, draw: random.Random, other: bytes) -> None:
    """Take a part out."""
    at = draw.randrange(len(data))
    del data[at : at + draw.randrange(1, 20)]


def insert(data: bytearray, draw: random.Random, other: bytes) -> None:
    """Put a part of something else in, or some zeros."""
    at, begin = draw.randrange(len(data)), draw.randrange(len(other) + 1)
    data[at:at] = draw.choice((other[begin : begin + draw.randrange(1, 60)], bytes(20)))


def double(data: bytearray, draw: random.Random, other: bytes) -> None:
    """Put a part in twice."""
    at = draw.randrange(len(data))
    data[at:at] = data[at : at + draw.randrange(1, 60)]


DAMAGES: tuple[Damage, ...] = (flip, overwrite, extreme, cut, remove, insert, double)


def mend_frame(data: bytearray) -> None:
    """Make the size of a frame right again."""
    if len(data) >= 4:
        struct.pack_into(">i", data, 0, len(data) - 4)


def mend_07(data: bytearray) -> None:
    """Make the CRC of the first entry right again."""
    if len(data) >= 10:
        (size,) = struct.unpack_from(">i", data)
        if 6 <= size <= len(data) - 4:
            struct.pack_into(">I", data, 6, zlib.crc32(data[10 : 4 + size]))


def mend_08(data: bytearray) -> None:
    """Make the CRC of the first entry right again."""
    if len(data) >= 26:
        (size,) = struct.unpack_from(">i", data, 8)
        if 14 <= size <= len(data) - 12:
            struct.pack_into(">I", data, 12, zlib.crc32(data[16 : 12 + size]))


# --- the kinds of bytes ----------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A kind of bytes: what it looks like, who reads it, and how its damage is hidden."""

    samples: Sequence[bytes]
    use: Use
    mend: Callable[[bytearray], None]
    wrap: Callable[[bytes, Codec], bytes] | None = None
    codecs: tuple[Codec, ...] = COMPRESSING_07

    def damaged(self, draw: random.Random) -> bytes:
        """A sample with one to four damages, often hidden."""
        data, other = bytearray(draw.choice(self.samples)), draw.choice(self.samples)
        for _ in range(draw.randrange(1, 5)):
            if data:
                draw.choice(DAMAGES)(data, draw, other)
        if draw.random() < 0.5:
            self.mend(data)
        if self.wrap is not None and draw.random() < 0.25:
            return self.wrap(bytes(data), draw.choice(self.codecs))
        return bytes(data)


def subjects() -> dict[str, Subject]:
    """All there are."""
    frames, old, new = response_frames(), sets_07(), sets_08()
    return {
        "request": Subject(request_frames(), read_request, mend_frame),
        "fetch response": Subject(frames, response_to(FETCH), mend_frame),
        "multifetch response": Subject(frames, response_to(MULTIFETCH), mend_frame),
        "offsets response": Subject(frames, response_to(OFFSETS), mend_frame),
        "0.7, appended": Subject(old, append, mend_07, wrapper),
        "0.7, consumed": Subject(old, consume, mend_07, wrapper),
        "0.7, payloads": Subject(old, payloads, mend_07, wrapper),
        "0.7, recovered": Subject(old, recover, mend_07),
        "0.8, consumed": Subject(new, read_08, mend_08, wrapper_08, COMPRESSING_08),
        "0.8, assigned": Subject(new, assign_08, mend_08, wrapper_08, COMPRESSING_08),
        "0.8, recovered": Subject(new, message_08.intact_size, mend_08),
    }


# --- judging ---------------------------------------------------------------------------


class TooLong(Exception):
    """Something did not come to an end."""


def too_long(number: int, frame: FrameType | None) -> None:
    """End what takes too long."""
    raise TooLong(f"longer than {LONGEST_S} s")


def outcome_of(use: Use, data: bytes) -> str:
    """What came of it, in a word; what must not happen begins with an exclamation mark."""
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        use(data)
    except LogError as error:
        return type(error).__name__
    except BaseException as error:  # a library in another language may raise anything
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"! {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "a value"


class Judge:
    """Counts what came of every mutation, and keeps what must not happen."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = {}
        self.peaks: dict[str, int] = {}
        self.wrong: list[str] = []

    def judge(self, name: str, use: Use, data: bytes) -> None:
        """Read damaged bytes, and look what comes of it and how much memory it takes."""
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        outcome = outcome_of(use, data)
        _, peak = tracemalloc.get_traced_memory()
        self.peaks[name] = max(self.peaks.get(name, 0), peak - before)
        if peak - before > TIMES_THE_LIMIT * LIMIT_BYTES:
            outcome = f"! {peak - before} bytes of memory for {len(data)}"
        if outcome.startswith("!"):
            self.wrong.append(f"{name} {outcome[2:]}: {data.hex()}")
            outcome = "wrong"
        self.outcomes.setdefault(name, Counter())[outcome] += 1


def mutations(count: int, seed: int) -> Iterator[tuple[str, Use, bytes]]:
    """Every sample as it is, then damaged ones, kind by kind in turn."""
    draw = random.Random(seed)
    kinds = subjects()
    for name, subject in kinds.items():
        yield from ((name, subject.use, sample) for sample in subject.samples)
    for turn in range(count):
        name = list(kinds)[turn % len(kinds)]
        subject = kinds[name]
        yield name, subject.use, subject.damaged(draw)


def report_of(judge: Judge, count: int, seed: int) -> Report:
    """What came of it all."""
    report = Report(
        f"{count:,} damaged frames, sets and logs, seed {seed}; limit {LIMIT_BYTES:,} bytes",
        ("read as", "read", "values", "errors", "kinds of error", "wrong", "peak / limit"),
    )
    for name, outcomes in judge.outcomes.items():
        errors = {what: n for what, n in outcomes.items() if what not in ("a value", "wrong")}
        total = sum(outcomes.values())
        peak = number(judge.peaks[name] / LIMIT_BYTES)
        cells = (total, outcomes["a value"], sum(errors.values()), len(errors), outcomes["wrong"])
        report.rows.append([name, *map(str, cells), peak])
        report.data.setdefault("runs", []).append(
            {"read_as": name, "outcomes": dict(outcomes), "peak_bytes": judge.peaks[name]}
        )
    peak_times = max(judge.peaks.values()) / LIMIT_BYTES
    report.bars += [
        Bar("anything but a value or a named error", "at most", 0, "", once(len(judge.wrong))),
        Bar("memory at once", "at most", TIMES_THE_LIMIT, "times the limit", once(peak_times)),
    ]
    report.notes += [sentence[:400] for sentence in judge.wrong[:MOST_SHOWN]]
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Damage, read, count and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--mutations", type=int, default=100_000, help="how many (100,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the damage (1)")
    options = parser.parse_args(arguments)
    judge = Judge()
    signal.signal(signal.SIGALRM, too_long)
    tracemalloc.start()
    for name, use, data in mutations(options.mutations, options.seed):
        judge.judge(name, use, data)
    tracemalloc.stop()
    report_of(judge, options.mutations, options.seed).show(as_json=options.json)
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
