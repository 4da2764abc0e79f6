"""A group's committed offsets: exported, set while the group is down, moved to Kafka or back."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from watchkeeper.console.exit import (
    HOLDS,
    UNKNOWN,
    USAGE,
    VIOLATED,
    Stop,
    cannot_write,
    reason_of,
)
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.audit.registry_view import RegistryView, take
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.offset_manager.migration import NAMES, Store
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.registry import paths
from watchkeeper.operate.audit.audit import Request, reader
from watchkeeper.real.net.group_offsets import OffsetsUnknown, committed_in_kafka

FORM = 'JSON of the form {"group": "G", "offsets": {"TOPIC": {"PARTITION": 42}}}'


def export(request: Request, file: Path) -> dict[str, Any]:
    """Write the offsets of a group to a file; `-` is standard output."""
    zxid, found = committed(request)
    offsets: dict[str, dict[str, int]] = {}
    for partition, value in sorted(found.items()):
        offsets.setdefault(partition.topic, {})[partition.name] = value
    document = {"group": request.group, "zxid": zxid, "offsets": offsets}
    _write(file, f"{json.dumps(document, indent=2, ensure_ascii=False)}\n")
    return {"group": request.group, "file": str(file), "exported": len(found)}


def committed(request: Request) -> tuple[int, dict[Partition, int]]:
    """Return the offsets of a group and their zxid; raise Stop unless all could be read."""
    assert request.group is not None, "offsets are a group's"
    with reader(request) as opened:
        snapshot = opened.read(request.group)
    census = _census(snapshot, request)
    doubts = [
        doubt for doubt in snapshot.doubts(request.group) if doubt.startswith("/consumers/")
    ]
    doubts += [message for path, message in census.bad if paths.parse_offset(path) is not None]
    if doubts:
        raise Stop(UNKNOWN, f"not all offsets could be read: {doubts[0]}; nothing was written")
    return snapshot.zxid, census.groups[request.group].offsets


def _census(snapshot: Snapshot, request: Request) -> RegistryView:
    census = take(snapshot)
    if request.group not in census.groups:
        doubts = snapshot.doubts(request.group)
        raise Stop(
            UNKNOWN if doubts else USAGE,
            doubts[0] if doubts else f"there is no group {request.group} at {request.hosts}",
        )
    return census


def _write(file: Path, text: str) -> None:
    if str(file) == "-":
        sys.stdout.write(text)
        return
    fresh = file.with_name(f"{file.name}.new")
    try:
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, file)
    except OSError as error:
        raise cannot_write(file, error) from None


def reset(request: Request, file: Path) -> dict[str, Any]:
    """Set the offsets of a group to those of a file, if none of its members is alive."""
    assert request.group is not None, "offsets are a group's"
    changed = set_to(request, read_file(file, request.group), str(file))
    return {"group": request.group, "file": str(file), "changed": changed}


def set_to(request: Request, wanted: dict[Partition, int], source: str) -> dict[str, Any]:
    """Set the offsets of a group if it has no live member; return the changes."""
    assert request.group is not None, "offsets are a group's"
    with reader(request) as opened:
        from watchkeeper.real.client.reset_offsets import Refused
        from watchkeeper.real.client.reset_offsets import reset as write

        snapshot = opened.read(request.group)
        census = take(snapshot)
        group = census.groups.get(request.group)
        before = {} if group is None else group.offsets  # none for a group that is to come
        _check_known(census, before, wanted, source)
        try:
            write(opened, snapshot, request.group, wanted)
        except Refused as refused:
            code = UNKNOWN if refused.is_unknown else VIOLATED
            raise Stop(code, str(refused)) from None
    return {
        str(partition): {"from": before.get(partition), "to": value}
        for partition, value in wanted.items()
        if before.get(partition) != value
    }


def _check_known(
    census: RegistryView, before: dict[Partition, int], wanted: dict[Partition, int], source: str
) -> None:
    """Refuse a misspelt name: no consumer would ever read its offset."""
    known = {partition for topic in census.topics.values() for partition in topic.partitions()}
    for partition in wanted:
        if partition not in known and partition not in before:
            raise Stop(
                USAGE,
                f"{source} has an offset for {partition}, which is no partition that is "
                "registered and has no offset yet; nothing was set",
            )


def read_file(file: Path, group: str) -> dict[Partition, int]:
    """The offsets in a file; Stop, in a sentence, if they are no such thing."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Stop(USAGE, f"{file} cannot be read: {reason_of(error)}") from None
    except ValueError as error:
        raise Stop(USAGE, f"{file} is not {FORM}: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("offsets"), dict):
        raise Stop(USAGE, f"{file} is not {FORM}")
    if value.get("group") != group:
        raise Stop(
            USAGE, f"{file} has the offsets of group {value.get('group')!r}, not of {group!r}"
        )
    wanted: dict[Partition, int] = {}
    for topic, rows in value["offsets"].items():
        for name, offset in rows.items() if isinstance(rows, dict) else [("", None)]:
            if (
                type(offset) is not int
                or not 0 <= offset < 2**63
                or not name
                or "/" in topic + name
            ):
                raise Stop(
                    USAGE,
                    f"{file} has {offset!r} for {topic}/{name}; expected a whole number of at "
                    f"least 0, in {FORM}",
                )
            wanted[Partition(topic, name)] = offset
    return wanted


def show(done: dict[str, Any]) -> int:
    """Print the result."""
    if "exported" in done:
        where = sys.stderr if done["file"] == "-" else sys.stdout
        number = counted(done["exported"], "offset")
        print(f"{number} of {done['group']} in {done['file']}", file=where)
        return HOLDS
    for partition, change in done["changed"].items():
        before = "none" if change["from"] is None else change["from"]
        print(f"{partition}: {before} -> {change['to']}")
    number = counted(len(done["changed"]), "offset")
    print(f"{number} of {done['group']} set from {done['file']}")
    return HOLDS


# --- migration -------------------------------------------------------------------------


class Compared(NamedTuple):
    """The offsets of a group in both stores."""

    group: str
    to: Store
    stores: dict[Store, dict[Partition, int]]

    @property
    def behind(self) -> tuple[Partition, ...]:
        """The partitions of which the next store has a smaller offset, or none."""
        other = next(store for store in Store if store is not self.to)
        wanted = self.stores[self.to]
        return tuple(
            partition
            for partition, offset in sorted(self.stores[other].items())
            if wanted.get(partition, -1) < offset
        )

    def as_json(self) -> dict[str, Any]:
        """The comparison as a document."""
        partitions = sorted({*self.stores[Store.ZOOKEEPER], *self.stores[Store.KAFKA]})
        return {
            "group": self.group,
            "to": str(self.to),
            "offsets": {
                str(partition): {str(store): self.stores[store].get(partition) for store in Store}
                for partition in partitions
            },
            "behind": [str(partition) for partition in self.behind],
        }


def compare(request: Request, to: Store) -> Compared:
    """Read the offsets of a group from both stores; raise Stop unless all could be read."""
    assert request.group is not None, "offsets are a group's"
    with reader(request) as opened:
        snapshot = opened.read(request.group)
    census = take(snapshot)
    in_zookeeper = _in_zookeeper(census, snapshot, request.group)
    addresses = [f"{info.host}:{info.port}" for _, info in sorted(census.brokers.items())]
    partitions = {
        partition for topic in census.topics.values() for partition in topic.partitions()
    }
    named = [each for each in {*partitions, *in_zookeeper} if each.name.isdecimal()]
    if not named:
        raise Stop(USAGE, f"no topic of the layout of 0.8 is registered at {request.hosts}")
    try:
        in_kafka = committed_in_kafka(addresses, request.group, named)
    except OffsetsUnknown as why:
        raise Stop(UNKNOWN, str(why)) from None
    if not in_zookeeper and not in_kafka:
        raise Stop(USAGE, f"group {request.group} has no offsets in ZooKeeper or in Kafka")
    stores = {Store.ZOOKEEPER: in_zookeeper, Store.KAFKA: in_kafka}
    return Compared(request.group, to, stores)


def _in_zookeeper(census: RegistryView, snapshot: Snapshot, group: str) -> dict[Partition, int]:
    doubts = [each for each in snapshot.doubts(group) if each.startswith("/consumers/")]
    if doubts:
        raise Stop(UNKNOWN, f"not all offsets could be read: {doubts[0]}")
    found = census.groups.get(group)
    return {} if found is None else dict(found.offsets)


def show_compared(compared: Compared) -> int:
    """Print a comparison; return the exit code."""
    behind = set(compared.behind)
    rows = [("partition", *(NAMES[store] for store in Store), "")]
    partitions = {*compared.stores[Store.ZOOKEEPER], *compared.stores[Store.KAFKA]}
    for partition in sorted(partitions):
        offsets = (compared.stores[store].get(partition) for store in Store)
        words = ("none" if offset is None else str(offset) for offset in offsets)
        mark = f"{NAMES[compared.to]} is behind" if partition in behind else ""
        rows.append((str(partition), *words, mark))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True))
        print("  ".join(cells).rstrip())
    print(_sentence(compared))
    return exit_code(compared)


def exit_code(compared: Compared) -> int:
    """Return the exit code of a comparison."""
    return VIOLATED if compared.behind else HOLDS


def _sentence(compared: Compared) -> str:
    name = NAMES[compared.to]
    if compared.behind:
        number = counted(len(compared.behind), "partition")
        return f"not yet: {name} is behind in {number}"
    return f"go on, if each member commits to both: {name} is behind in no partition"


def copy(request: Request, to: Store) -> dict[str, Any]:
    """Write to ZooKeeper what is behind there, if no member of the group is alive."""
    if to is not Store.ZOOKEEPER:
        raise Stop(
            USAGE,
            "--copy writes to ZooKeeper only; members write to Kafka: set "
            "offsets.storage=kafka and dual.commit.enabled=true in them",
        )
    compared = compare(request, to)
    wanted = {partition: compared.stores[Store.KAFKA][partition] for partition in compared.behind}
    changed = set_to(request, wanted, "Kafka") if wanted else {}
    return {"group": compared.group, "file": "Kafka", "changed": changed}


def check_plan_only(hosts: str | None, group: str | None, *, copy: bool, as_json: bool) -> None:
    """Refuse options that say nothing to a plan; raise Stop."""
    missing = "HOSTS" if hosts is None else "--group"
    given = {
        "HOSTS": hosts is not None,
        "--group": group is not None,
        "--copy": copy,
        "--json": as_json,
    }
    for name, is_given in given.items():
        if is_given:
            raise Stop(USAGE, f"{name} needs {missing} too; the plan alone needs only --to")
