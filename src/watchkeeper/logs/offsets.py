"""The progress of a table of logs beside the offsets of a group in ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchkeeper.console.exit import HOLDS, VIOLATED
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry.paths import partition_07
from watchkeeper.operate.audit.audit import Request
from watchkeeper.operate.offsets import committed, set_to
from watchkeeper.pipeline.loading.commits import Held, LogKey


@dataclass(frozen=True, slots=True)
class Row:
    """The progress of the table and of the group in one partition."""

    partition: Partition
    reached: int | None
    committed: int | None

    @property
    def ahead(self) -> int | None:
        """Return the lead of the table over the group: bytes in 0.7, messages in 0.8."""
        if self.reached is None or self.committed is None:
            return None
        return self.reached - self.committed


def partition_of(key: LogKey) -> Partition:
    """The partition as it is named in ZooKeeper: 0.7 puts the broker before its number."""
    if key.broker is None:
        return Partition(key.topic, str(key.partition))
    return partition_07(key.topic, key.broker, key.partition)


def places(held: dict[LogKey, Held]) -> dict[Partition, int]:
    """Return the next offset of each partition of a table."""
    return {partition_of(key): log.reached for key, log in held.items()}


def compared(reached: dict[Partition, int], request: Request) -> list[Row]:
    """The table beside the group, for all partitions of topics that the table holds."""
    _, offsets = committed(request)
    topics = {partition.topic for partition in reached}
    known = reached.keys() | {partition for partition in offsets if partition.topic in topics}
    return [
        Row(partition, reached.get(partition), offsets.get(partition))
        for partition in sorted(known)
    ]


def exit_code(rows: list[Row]) -> int:
    """0 if the group stands where the table does, in every partition; else 1."""
    return HOLDS if all(row.ahead == 0 for row in rows) else VIOLATED


def set_there(reached: dict[Partition, int], request: Request, out: Path) -> dict[str, Any]:
    """Set the group to the offsets of the table if it has no live member; return the changes."""
    return set_to(request, reached, str(out))


def to_json(reached: dict[Partition, int], group: str | None) -> dict[str, Any]:
    """The offsets in the form that `watchkeeper offsets reset` reads."""
    offsets: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(reached.items()):
        offsets.setdefault(partition.topic, {})[partition.name] = offset
    return {"group": group, "offsets": offsets}
