"""The tree from what a data folder holds.

How it works
  The newest snapshot that can be read, and the transactions after it in the order of their
  zxids. A snapshot that cannot be read is passed over, and the log reaches back to the one
  before it. Then no transaction is lost, but if one were, its zxid would be missing: zxids
  have no gaps, but where a leader begins a new epoch and counts from 1. A gap is an error, and
  never passed over.

  The first record of a log file that is not whole ends the file (see `txn_log`). If the file
  is the newest, nothing after that record was answered. An older one ends in such a record
  when its server stopped in the middle of it; the server then began the next file with the
  same zxid. The torn end is cut off, since Apache's servers refuse some of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from watchkeeper.model.wire.fields import Malformed
from watchkeeper.model.zookeeper.tree import Tree, empty_tree
from watchkeeper.model.zookeeper_files.replay import Replay
from watchkeeper.model.zookeeper_files.snapshot import NotASnapshot, decode_snapshot
from watchkeeper.model.zookeeper_files.transactions import Transaction
from watchkeeper.model.zookeeper_files.txn_log import NotALog, decode_log
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper_data.file_layer import Disk

EPOCH_BITS = 32
EPOCHS = ("acceptedEpoch", "currentEpoch")
"""The files of a member of an ensemble."""
_NAME = re.compile(r"(log|snapshot)\.([0-9a-f]{1,16})")
_COMPRESSED = re.compile(r"snapshot\.[0-9a-f]+\.(gz|snappy)")


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a folder held."""

    tree: Tree
    snapshot_zxid: int | None
    """The snapshot that was read; None if there is none."""
    replayed: int
    """How many transactions came after it."""
    notices: tuple[str, ...] = ()
    """What was passed over or cut off, a sentence each."""


@dataclass(frozen=True, slots=True)
class Torn:
    """A log file whose end is not whole."""

    name: str
    whole_bytes: int
    torn_bytes: int


def log_name(zxid: int) -> str:
    """The name of the log file that begins with this transaction."""
    return f"log.{zxid:x}"


def snapshot_name(zxid: int) -> str:
    """The name of the snapshot that ends with this transaction."""
    return f"snapshot.{zxid:x}"


def zxids_of(disk: Disk, kind: str) -> list[int]:
    """The zxids that the names of the `log` or `snapshot` files have, smallest first."""
    found = (_NAME.fullmatch(name) for name in disk.names())
    return sorted(int(match[2], 16) for match in found if match is not None and match[1] == kind)


def recover(disk: Disk, where: str) -> Recovered:
    """Read what the folder holds, and cut torn ends off.

    `where` names the folder in errors. Raises EnvironmentProblem for files that are not of
    this format, or that lack transactions, and OSError.
    """
    _refuse_foreign(disk, where)
    tree, snapshot_zxid, unreadable = _newest_snapshot(disk)
    replay = Replay(tree)
    number = 0
    torn: list[Torn] = []
    for name, transaction in _after(disk, where, tree.zxid, torn):
        _check_order(replay.zxid, transaction.zxid, f"{where}/{name}", unreadable)
        try:
            replay.apply(transaction)
        except Malformed as error:
            raise EnvironmentProblem(
                f"{where}/{name} cannot be replayed: {error}; restore the folder from a copy"
            ) from None
        number += 1
    if snapshot_zxid is None and unreadable and not number:
        raise EnvironmentProblem(
            f"no snapshot in {where} can be read ({unreadable}); restore the folder from a copy"
        )
    # Only now: if transactions are missing, what is left of them stays for a closer look.
    notices = [_cut_off(disk, where, end) for end in torn]
    if unreadable:
        notices.append(
            f"an earlier snapshot in {where} was read, since a later one is not whole "
            f"({unreadable})"
        )
    return Recovered(replay.tree(), snapshot_zxid, number, tuple(notices))


def _cut_off(disk: Disk, where: str, torn: Torn) -> str:
    name = torn.name
    if torn.whole_bytes:
        disk.cut(name, torn.whole_bytes)
        return (
            f"the last {torn.torn_bytes} bytes of {where}/{name} were cut off: they begin with a "
            "record that is not whole, as a stop in the middle of a commit leaves it"
        )
    disk.remove(name)
    disk.sync_names()
    return f"{where}/{name} was removed: a stop has left it without a header"


def _refuse_foreign(disk: Disk, where: str) -> None:
    for name in disk.names():
        if name in EPOCHS:
            raise EnvironmentProblem(
                f"{where} belongs to a member of an ensemble, as {name} in it shows: what it has "
                "logged last may be undone by the others, and what is written here is unknown to "
                f"them; use a copy of the folder without {' and '.join(EPOCHS)}"
            )
        if _COMPRESSED.fullmatch(name):
            raise EnvironmentProblem(
                f"{where}/{name} is compressed, but only plain snapshots can be read; let the "
                "server that wrote it take one with zookeeper.snapshot.compression.method unset"
            )


def _newest_snapshot(disk: Disk) -> tuple[Tree, int | None, str]:
    """The tree of the newest readable snapshot, its zxid, and what is wrong with newer ones."""
    unreadable: list[str] = []
    for zxid in reversed(zxids_of(disk, "snapshot")):
        name = snapshot_name(zxid)
        try:
            return decode_snapshot(disk.read(name), zxid), zxid, "; ".join(unreadable)
        except NotASnapshot as error:
            unreadable.append(f"{name}: {error}")
    return empty_tree(), None, "; ".join(unreadable)


def _after(
    disk: Disk, where: str, zxid: int, torn: list[Torn]
) -> Iterator[tuple[str, Transaction]]:
    """The transactions after a zxid, each with the name of its file.

    The files that end in something else are added to `torn`.
    """
    zxids = zxids_of(disk, "log")
    # The last file that begins at or before the zxid may hold the next ones too.
    first = max((begin for begin in zxids if begin <= zxid), default=0)
    for begin in zxids:
        if begin < first:
            continue
        name = log_name(begin)
        data = disk.read(name)
        try:
            log = decode_log(data)
        except NotALog as error:
            raise EnvironmentProblem(
                f"{where}/{name} is not a transaction log: {error}; is it the right folder?"
            ) from None
        if log.is_torn:
            torn.append(Torn(name, log.whole_bytes, len(data) - log.whole_bytes))
        yield from (
            (name, transaction) for transaction in log.transactions if transaction.zxid > zxid
        )


def _check_order(last: int, zxid: int, where: str, unreadable: str) -> None:
    is_next = zxid == last + 1
    begins_epoch = zxid >> EPOCH_BITS > last >> EPOCH_BITS and zxid & (1 << EPOCH_BITS) - 1 == 1
    if is_next or begins_epoch:
        return
    because = f" (a snapshot cannot be read: {unreadable})" if unreadable else ""
    raise EnvironmentProblem(
        f"in {where} transaction 0x{zxid:x} follows 0x{last:x}, so there are transactions "
        f"missing{because}; restore the folder from a copy"
    )
