"""How long things take: the latencies of a simulated ensemble, in microseconds.

The default was measured on ZooKeeper 3.9 over loopback with a disk that syncs in 0.17 ms:
a read is answered in 0.18 ms at the median and 3.4 ms at the 99th percentile, a write in
0.42 ms by one server and 0.8 ms by three, a session of 6 s ends 6.0 to 6.5 s after its
last sign of life. The codecs were measured by `python bench/codec_sizes.py` on messages as live
producers write them: a name, a number, and a filler, which compresses well.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.contents import ENTRY_OVERHEAD_BYTES
from watchkeeper.sim.engine.random_streams import Quantiles, quantiles


@dataclass(frozen=True, slots=True)
class CodecProfile:
    """What a codec makes of a message set, and how long it takes."""

    fixed_bytes: int
    """The size of a compressed set, beside what its messages add."""
    message_bytes_per_1000: int
    """What a thousand messages add, whatever their payloads."""
    payload_bytes_per_1000: int
    """What a thousand bytes of payload add."""
    compress_bytes_per_s: int
    decompress_bytes_per_s: int

    def compressed_bytes(self, messages: int, plain_bytes: int) -> int:
        """The size of so many messages of so many bytes, compressed together."""
        payload_bytes = plain_bytes - messages * ENTRY_OVERHEAD_BYTES
        of_messages = messages * self.message_bytes_per_1000
        of_payloads = payload_bytes * self.payload_bytes_per_1000
        return self.fixed_bytes + (of_messages + of_payloads) // 1000


@dataclass(frozen=True, slots=True)
class Profile:
    """The durations of one kind of installation."""

    hop: Quantiles
    """From one process to another, one way."""
    sync: Quantiles
    """Until a server's log is on its disk."""
    read_us: int
    """What a server spends on a read, on a write, and on firing a watch."""
    write_us: int
    fire_us: int
    reconnect: Quantiles
    """Until a client that lost its connection tries again."""
    break_spreads: Quantiles
    """Until everyone has noticed that the leader is gone."""
    election: Quantiles
    restart: Quantiles
    """Until a server that was started can take part in an election."""
    expiry_lateness: Quantiles
    """From the end of a tick to the end of the sessions that were due."""
    wake_lag: Quantiles
    """After a pause, how long the process believes what it believed before."""
    stale_service: Quantiles
    """How long a leader that was deposed while it stood still goes on answering reads."""
    fetch: Quantiles
    """A fetch request, there and back, without its data."""
    bytes_per_ms: int
    gzip: CodecProfile
    snappy: CodecProfile

    def codec(self, number: int) -> CodecProfile:
        """The profile of a codec, by its number in `compression.codec`."""
        return {Codec.GZIP: self.gzip, Codec.SNAPPY: self.snappy}[Codec(number)]

    @property
    def digest(self) -> str:
        """A short name that another profile has not: the beginning of its SHA-256."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:DIGITS]


DIGITS = 12


DEFAULT = Profile(
    hop=quantiles(
        [(0, 45), (10, 55), (50, 75), (90, 95), (98, 160), (99, 600), (99.9, 1800), (100, 4000)]
    ),
    sync=quantiles([(0, 90), (10, 120), (50, 170), (90, 260), (98, 900), (100, 6000)]),
    read_us=25,
    write_us=40,
    fire_us=30,
    reconnect=quantiles([(0, 60_000), (50, 100_000), (100, 140_000)]),
    break_spreads=quantiles([(0, 9_000), (50, 15_000), (100, 26_000)]),
    election=quantiles([(0, 250_000), (50, 380_000), (100, 470_000)]),
    restart=quantiles([(0, 700_000), (50, 900_000), (100, 1_400_000)]),
    expiry_lateness=quantiles([(0, 2_000), (50, 10_000), (100, 30_000)]),
    wake_lag=quantiles([(0, 0), (60, 0), (70, 2_000), (100, 13_000)]),
    stale_service=quantiles([(0, 1_000), (50, 6_000), (100, 20_000)]),
    fetch=quantiles([(0, 300), (50, 700), (90, 1_500), (99, 8_000), (100, 30_000)]),
    bytes_per_ms=100_000,
    gzip=CodecProfile(43, 8729, 3, 448_000_000, 629_000_000),
    snappy=CodecProfile(42, 9497, 48, 8_011_000_000, 7_139_000_000),
)
