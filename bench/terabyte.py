"""How long it takes to simulate a terabyte a day through the storage of one broker.

    python bench/terabyte.py [--part 1] [--request 1000000] [--partitions 20] [--json]

One broker takes a terabyte in the 86,400 s of a day, in requests of a size, spread over its
partitions, and sends each to a consumer who keeps up. Segments are rolled at 512 MiB, and the
oldest of a partition are deleted so that a tenth of a terabyte is kept. Everything goes through
the pagecache to the disk; what is requested, written and read is counted, and the CPU time
that all of it costs this machine. `--part 0.1` simulates a tenth of the day.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of

from watchkeeper.experiment.apparatus.host import Host, new_host, run
from watchkeeper.model.log.format.contents import Series, whole_series
from watchkeeper.model.log.storage import Append, CreateFile, Delete, Send
from watchkeeper.sim.disk.host_costs import MACHINES, Connection
from watchkeeper.sim.storage.host_effects import Idle

TERABYTE = 10**12
DAY_US = 86_400_000_000
SEGMENT_BYTES = 512 << 20
KEPT = 10
"""A tenth of a terabyte is kept."""
WITHIN_S = 300.0
PAYLOAD_BYTES = 190
ENTRY_BYTES = 200


@dataclass(slots=True)
class Partition:
    """A log of segments, with one consumer."""

    name: str
    to: Connection
    most_segments: int
    segments: deque[str] = field(default_factory=deque)
    size_bytes: int = SEGMENT_BYTES
    """Of the last segment; a first one is made at once."""
    messages: int = 0

    async def take(self, size_bytes: int) -> None:
        """Take a request, and send it on."""
        if self.size_bytes + size_bytes > SEGMENT_BYTES:
            self.segments.append(f"{self.name}.{self.messages}")
            await CreateFile(self.segments[-1])
            self.size_bytes = 0
            if len(self.segments) > self.most_segments:
                await Delete(self.segments.popleft())
        count = size_bytes // ENTRY_BYTES
        contents = whole_series(Series(self.name, self.messages, count, PAYLOAD_BYTES))
        self.messages += count
        at = self.size_bytes
        self.size_bytes += await Append(self.segments[-1], contents)
        await Send(self.segments[-1], at, self.size_bytes - at, self.to)


async def serve(host: Host, partitions: list[Partition], requests: int, size_bytes: int) -> None:
    """Take requests at the pace of a terabyte a day."""
    for turn in range(requests):
        await partitions[turn % len(partitions)].take(size_bytes)
        rest_us = (turn + 1) * size_bytes * DAY_US // TERABYTE - host.kernel.now_us
        if rest_us > 0:
            await Idle(rest_us)


def measure(machine: str, part: float, size_bytes: int, count: int) -> Report:
    """Simulate so much of a day."""
    host = new_host(MACHINES[machine])
    most = max(TERABYTE // KEPT // count // SEGMENT_BYTES, 1)
    partitions = [Partition(f"log-{n}", host.connection(), most) for n in range(count)]
    requests = int(part * TERABYTE) // size_bytes
    begin = time.process_time()
    run(host, [host.start(host.process(), serve(host, partitions, requests, size_bytes))])
    took = time.process_time() - begin
    files, written = (
        host.storage.files,
        sum(partition.messages for partition in partitions) * ENTRY_BYTES,
    )
    report = Report(
        f"A terabyte a day on one broker ({machine}); {part:g} of a day, {requests:,} requests",
        ("what", "", "of a whole day"),
    )
    for what, value, unit in (
        ("virtual time", host.kernel.now_us / 3.6e9, "hours"),
        ("appended and sent", written / 1e9, "GB"),
        ("read from the disk", files.reader.device_bytes / 1e9, "GB"),
        ("found in memory", files.reader.hit_bytes / 1e9, "GB"),
        ("writers waited", files.writeback.throttled_us / 1e6, "s"),
        ("CPU time", took, "s"),
    ):
        report.rows.append([f"{what}, {unit}", number(value), number(value / part)])
        report.data[what] = value
    report.rows.append(["CPU time a request, us", number(took * 1e6 / requests), ""])
    report.bars.append(
        Bar("a terabyte a day", "at most", WITHIN_S, "s of CPU", once(took / part))
    )
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--part", type=float, default=1.0, help="of the day (1)")
    parser.add_argument("--request", type=int, default=1_000_000, help="bytes (1000000)")
    parser.add_argument("--partitions", type=int, default=20, help="how many (20)")
    parser.add_argument("--machine", choices=MACHINES, default="page", help="(page)")
    options = parser.parse_args(arguments)
    report = measure(options.machine, options.part, options.request, options.partitions)
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
