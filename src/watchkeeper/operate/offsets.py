"""A group's committed offsets: written to a file, and set from one while the group is down."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

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
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.registry import paths
from watchkeeper.operate.audit.audit import Request, reader

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
