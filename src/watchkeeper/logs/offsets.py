"""How far a table of logs has come, beside the offsets of a group in ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.asks import Partition
from model.registry import partition_07
from pipeline.loading.commits import Held, LogKey
from watchkeeper.auditing import Request
from watchkeeper.endings import HOLDS, VIOLATED
from watchkeeper.offsets import committed, set_to


@dataclass(frozen=True, slots=True)
class Row:
    """A partition: how far the table has come, and the group."""

    partition: Partition
    reached: int | None
    committed: int | None

    @property
    def ahead(self) -> int | None:
        """By how much the table is ahead of the group: bytes in 0.7, messages in 0.8."""
        if self.reached is None or self.committed is None:
            return None
        return self.reached - self.committed


def partition_of(key: LogKey) -> Partition:
    """The partition as it is named in ZooKeeper: 0.7 puts the broker before its number."""
    if key.broker is None:
        return Partition(key.topic, str(key.partition))
    return partition_07(key.topic, key.broker, key.partition)


def places(held: dict[LogKey, Held]) -> dict[Partition, int]:
    """Each partition of a table, and the offset at which to go on."""
    return {partition_of(key): one.reached for key, one in held.items()}


def compared(reached: dict[Partition, int], request: Request) -> list[Row]:
    """The table beside the group, for all partitions of topics that the table holds."""
    _, offsets = committed(request)
    topics = {partition.topic for partition in reached}
    known = reached.keys() | {one for one in offsets if one.topic in topics}
    return [Row(one, reached.get(one), offsets.get(one)) for one in sorted(known)]


def exit_code(rows: list[Row]) -> int:
    """0 if the group stands where the table does, in every partition; else 1."""
    return HOLDS if all(row.ahead == 0 for row in rows) else VIOLATED


def set_there(reached: dict[Partition, int], request: Request, out: Path) -> dict[str, Any]:
    """Set the group to where the table is, if none of its members is alive; what changed."""
    return set_to(request, reached, str(out))


def to_json(reached: dict[Partition, int], group: str | None) -> dict[str, Any]:
    """The offsets in the form that `watchkeeper offsets reset` reads."""
    offsets: dict[str, dict[str, int]] = {}
    for partition, offset in sorted(reached.items()):
        offsets.setdefault(partition.topic, {})[partition.name] = offset
    return {"group": group, "offsets": offsets}
