"""The logs of all replicas of a topic, which have to be equal to the last byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from watchkeeper.model.log.format.message_08 import Record, entries, records

WITHIN_S = 60.0
CHECKPOINT = "replication-offset-checkpoint"


class PartitionLog(NamedTuple):
    """The log of one replica, whose CRCs are right."""

    data: bytes
    messages: tuple[Record, ...]
    """Those in compressed ones too."""

    @property
    def end(self) -> int:
        """The offset of the next message."""
        return self.messages[-1].offset + 1 if self.messages else 0

    @property
    def entry_count(self) -> int:
        """The number of entries: compressed messages share one."""
        return sum(1 for _ in entries(self.data))


def read_log(logs: Path, topic: str, partition: int) -> PartitionLog:
    """Read all segments of a log; raises a LogError for a wrong CRC."""
    folder = logs / f"{topic}-{partition}"
    data = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
    return PartitionLog(data, tuple(records(data)) if data else ())


def marks(logs: Path, topic: str) -> dict[int, int]:
    """The high watermarks of a topic in the checkpoint of a broker."""
    path = logs / CHECKPOINT
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    found = (line.split() for line in lines)
    return {int(index): int(end) for name, index, end in found if name == topic}


def until_equal(
    folders: Mapping[int, Path],
    topic: str,
    replicas: Mapping[int, Sequence[int]],
    *,
    with_marks: bool = True,
) -> dict[int, PartitionLog]:
    """Wait until all replicas of each partition are equal, and say that all of it is committed.

    Returns one log of each partition; AssertionError with the first difference.
    """
    deadline_s = monotonic() + WITHIN_S
    while found := next(_differences(folders, topic, replicas, with_marks), ""):
        if monotonic() > deadline_s:
            raise AssertionError(f"{found}, after {WITHIN_S:g} s")
        sleep(0.2)
    return {
        partition: read_log(folders[brokers[0]], topic, partition)
        for partition, brokers in replicas.items()
    }


def _differences(
    folders: Mapping[int, Path],
    topic: str,
    replicas: Mapping[int, Sequence[int]],
    with_marks: bool,
) -> Iterator[str]:
    yield from differences(folders, topic, replicas)
    if with_marks:
        yield from behind(folders, topic, replicas)


def differences(
    folders: Mapping[int, Path], topic: str, replicas: Mapping[int, Sequence[int]]
) -> Iterator[str]:
    """Yield a sentence for each difference between replicas, and for each gap in offsets."""
    for partition, brokers in replicas.items():
        first = read_log(folders[brokers[0]], topic, partition)
        for broker in brokers[1:]:
            log = read_log(folders[broker], topic, partition)
            if log.data != first.data:
                yield (
                    f"{topic}-{partition}: {len(log.data)} bytes up to {log.end} at broker "
                    f"{broker}, {len(first.data)} up to {first.end} at broker {brokers[0]}"
                )
        offsets = [message.offset for message in first.messages]
        if offsets != [*range(first.end)]:
            yield f"{topic}-{partition}: offsets {offsets[:5]}... have gaps"


def behind(
    folders: Mapping[int, Path], topic: str, replicas: Mapping[int, Sequence[int]]
) -> Iterator[str]:
    """Yield a sentence for each high watermark in a checkpoint that is not at the end."""
    for partition, brokers in replicas.items():
        end = read_log(folders[brokers[0]], topic, partition).end
        for broker in brokers:
            mark = marks(folders[broker], topic).get(partition)
            if mark != end:
                yield (
                    f"{topic}-{partition}: the high watermark in the checkpoint of broker "
                    f"{broker} is {mark}; expected {end}"
                )
