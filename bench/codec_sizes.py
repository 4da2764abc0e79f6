"""Codecs: how large real message sets become, and how fast; the section `codecs` of a profile.

    python bench/codec_sizes.py [--messages FILE] [--profile FILE] [--repeat 20] [--json]

The messages are those of live producers, or the lines of a file. Each set is compressed and
decompressed by the codecs of `watchkeeper.model.log.format.codecs`. The size of a compressed
set is fitted as a fixed size, so much for each message, and so much for each byte of payload.
The last column is the error of the fit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Report, parser_of

from watchkeeper.model.delivery.message_id import payload_of
from watchkeeper.model.log.format.codecs import Codec, compress, decompress
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.scenarios.profiles.codecs import CodecModel, CodecsModel
from watchkeeper.scenarios.profiles.profile import VERSION, ProfileModel, save_profile
from watchkeeper.sim.engine.latency_profile import CodecProfile

PAYLOAD_BYTES = (50, 100, 300, 1000, 3000)
COUNTS = (1, 10, 50, 200, 500)
CODECS = (Codec.GZIP, Codec.SNAPPY)
COLUMNS = (
    *("codec", "fixed bytes", "of 1000 messages", "of 1000 bytes"),
    *("compress bytes/s", "decompress bytes/s", "error %"),
)


class Sample(NamedTuple):
    """One message set, compressed."""

    messages: int
    payload_bytes: int
    plain_bytes: int
    compressed_bytes: int
    compress_ns: int
    decompress_ns: int


def message_sets(lines: list[bytes]) -> list[list[bytes]]:
    """Payloads of sets of several sizes: of live producers, or the first lines of a file."""
    if lines:
        return [lines[:count] for count in COUNTS if count <= len(lines)]
    return [
        [payload_of("producer-0", 100_000 + number, size) for number in range(count)]
        for size in PAYLOAD_BYTES
        for count in COUNTS
    ]


def measured(codec: Codec, payloads: list[bytes], repeats: int) -> Sample:
    """Compress and decompress one set; the fastest of several times counts."""
    plain = encode([Message.of(payload) for payload in payloads])
    compress_ns, decompress_ns = [], []
    for _ in range(repeats):
        began = perf_counter_ns()
        compressed = compress(codec, plain)
        between = perf_counter_ns()
        decompress(codec, compressed, limit_bytes=LARGEST_FRAME_BYTES, where="")
        compress_ns.append(between - began)
        decompress_ns.append(perf_counter_ns() - between)
    size_bytes = sum(map(len, payloads))
    return Sample(
        len(payloads),
        size_bytes,
        len(plain),
        len(compressed),
        min(compress_ns),
        min(decompress_ns),
    )


def fitted(samples: list[Sample]) -> CodecModel:
    """Fit the sizes by their relative errors, and take the rates of all sets together."""
    terms = np.array(
        [(1, sample.messages, sample.payload_bytes) for sample in samples], dtype=float
    )
    sizes = np.array([sample.compressed_bytes for sample in samples], dtype=float)
    (fixed, message, payload), *_ = np.linalg.lstsq(terms / sizes[:, None], np.ones_like(sizes))
    plain_bytes = sum(sample.plain_bytes for sample in samples)
    return CodecModel(
        fixed_bytes=max(round(fixed), 1),
        message_bytes_per_1000=max(round(message * 1000), 0),
        payload_bytes_per_1000=max(round(payload * 1000), 0),
        compress_bytes_per_s=_rate(plain_bytes, sum(sample.compress_ns for sample in samples)),
        decompress_bytes_per_s=_rate(
            plain_bytes, sum(sample.decompress_ns for sample in samples)
        ),
    )


def _rate(size_bytes: int, duration_ns: int) -> int:
    """Bytes a second, rounded to megabytes."""
    return max(round(size_bytes * 1000 / duration_ns), 1) * 1_000_000


def error_percent(model: CodecModel, samples: list[Sample]) -> int:
    """The largest error of the fitted size of a set, in percent."""
    codec = CodecProfile(**model.model_dump())
    errors = [
        abs(
            codec.compressed_bytes(sample.messages, sample.plain_bytes) / sample.compressed_bytes
            - 1
        )
        for sample in samples
    ]
    return round(100 * max(errors))


def main(arguments: list[str]) -> int:
    """Measure each codec, show a table, and write a profile."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--messages", type=Path, help="a file with a message on each line")
    parser.add_argument("--profile", type=Path, help="the profile file to write")
    parser.add_argument("--repeat", type=int, default=20, help="how often (20)")
    asked = parser.parse_args(arguments)
    lines = asked.messages.read_bytes().splitlines() if asked.messages else []
    report = Report("what codecs make of message sets", COLUMNS)
    models = {}
    for codec in CODECS:
        name = codec.name.lower()
        samples = [measured(codec, payloads, asked.repeat) for payloads in message_sets(lines)]
        model = models[name] = fitted(samples)
        figures = model.model_dump()
        report.data[name] = {**figures, "error_percent": error_percent(model, samples)}
        report.rows.append([name, *(str(value) for value in report.data[name].values())])
    report.show(as_json=asked.json)
    if asked.profile:
        codecs = CodecsModel(**models)
        save_profile(
            ProfileModel(watchkeeper_profile=VERSION, zookeeper=None, disk=None, codecs=codecs),
            asked.profile,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
