"""Resets a group's offsets if and only if no member of the group is registered.

ZooKeeper's `multi` can check a znode's version, but not that a znode has no children. A
delete does: it fails if there are children. So all writes go into one multi that first
deletes the parent of the registrations and creates it again. A member that registers earlier
makes the multi fail; one that registers later reads the new offsets. The version of every
offset is checked too, so that only values that the user has seen are overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NodeExistsError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.registry import paths
from watchkeeper.real.client.snapshot import Reader

MOST = 5000
"""The most offsets in one multi, well below ZooKeeper's limit of 1 MB."""


class Refused(Exception):
    """No offset was set; if `is_unknown`, perhaps all of them were."""

    def __init__(self, message: str, *, is_unknown: bool = False) -> None:
        super().__init__(message)
        self.is_unknown = is_unknown


def reset(
    reader: Reader, snapshot: Snapshot, group: str, offsets: Mapping[Partition, int]
) -> int:
    """Set these offsets, all or none; return how many changed. Raises Refused with the reason."""
    _check(snapshot, group)
    writes = {
        paths.offset(group, partition): paths.encode_number(value)
        for partition, value in offsets.items()
    }
    different = {
        path: data
        for path, data in writes.items()
        if path not in snapshot.nodes or snapshot.nodes[path].data != data
    }
    if len(different) > MOST:
        raise Refused(
            f"{len(different)} offsets do not fit into one transaction; reset at most {MOST} at "
            "a time"
        )
    if different:
        _write(reader, snapshot, group, different)
    return len(different)


def _check(snapshot: Snapshot, group: str) -> None:
    doubts = snapshot.doubts(group)
    if doubts:
        raise Refused(
            f"whether group {group} is alive is not known: {doubts[0]}; nothing was set"
        )
    alive = snapshot.children(paths.members(group))
    claims = [path for path in snapshot.nodes if _is_claim(snapshot, path, group)]
    if alive or claims:
        what = f"{alive[0]} is registered" if alive else f"{claims[0]} is claimed"
        raise Refused(
            f"group {group} is alive: {what}; nothing was set. Stop its consumers, wait until "
            "their sessions have ended, and try again"
        )


def _is_claim(snapshot: Snapshot, path: str, group: str) -> bool:
    owner = paths.parse_owner(path)
    return owner is not None and owner[0] == group and snapshot.nodes[path].session != 0


def _write(reader: Reader, snapshot: Snapshot, group: str, writes: dict[str, bytes]) -> None:
    client = reader.client
    transaction = client.transaction()
    made = {paths.GROUPS, *snapshot.nodes}
    if paths.group_home(group) not in made:  # a group that has never had a member
        client.ensure_path(paths.GROUPS)
        _create_above(transaction, paths.members(group), made)
    _add_guard(client, transaction, snapshot, group)
    made.add(paths.members(group))
    for path, data in writes.items():
        if path in snapshot.nodes:
            transaction.set_data(path, data, version=snapshot.nodes[path].stat.version)
            continue
        _create_above(transaction, path, made)
        transaction.create(path, data)
    try:
        answers = transaction.commit()
    except KazooException as error:
        raise Refused(
            f"whether the offsets of group {group} were set is not known: the connection was "
            f"lost ({type(error).__name__}); export them to see",
            is_unknown=True,
        ) from None
    failed = [answer for answer in answers if _is_cause(answer)]
    if failed:
        raise Refused(f"{_reason(failed[0], group)}; nothing was set")


def _add_guard(client: Any, transaction: Any, snapshot: Snapshot, group: str) -> None:
    """Make the transaction fail if a member is registered."""
    members = paths.members(group)
    if members not in snapshot.nodes:
        transaction.create(members)
        return
    acl, _ = client.get_acls(members)
    seen = snapshot.nodes[members]
    transaction.delete(members, version=seen.stat.version)
    transaction.create(members, seen.data or b"", acl=acl)


def _create_above(transaction: Any, path: str, made: set[str]) -> None:
    """Create the ancestors of a path that are not made yet, and note them."""
    for above in _ancestors(path):
        if above not in made:
            made.add(above)
            transaction.create(above)


def _ancestors(path: str) -> list[str]:
    """The ancestors of a path, from the top, without the root."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: at + 1]) for at in range(len(parts))]


def _is_cause(answer: Any) -> bool:
    fallout = isinstance(answer, RolledBackError | RuntimeInconsistency)
    return isinstance(answer, Exception) and not fallout


def _reason(error: Any, group: str) -> str:
    if isinstance(error, NotEmptyError | NodeExistsError):
        return f"a member of group {group} has come to life meanwhile"
    if isinstance(error, BadVersionError):
        return f"an offset of group {group} was changed meanwhile"
    return f"ZooKeeper refuses it ({type(error).__name__})"
