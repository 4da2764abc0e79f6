"""The committed offsets of a group, kept in ZooKeeper.

The pages store the maximum offset consumed; Kafka stored the next offset to be read. A
group that follows the pages reads its last message twice after a rebalance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from watchkeeper.model.actor.effects import Partition, Positions
from watchkeeper.model.actor.errors import Failure, NodeExists, NoNode, TransactionFailed
from watchkeeper.model.actor.operations import (
    Check,
    Create,
    Exists,
    GetData,
    Multi,
    Pipelined,
    SetData,
)
from watchkeeper.model.actor.retry import (
    Requests,
    create_with_parents,
    ensure_parents,
    read_or_none,
)
from watchkeeper.model.group.state import Consumer, ConsumerState, id_path
from watchkeeper.model.group.variants import OffsetMeaning, Reads
from watchkeeper.model.registry import paths as registry

EARLIEST = -2
LATEST = -1
"""Start offsets where none is committed: the special times of Kafka's OffsetRequest."""


async def read_committed(
    me: Consumer, requests: Requests, partitions: Sequence[Partition]
) -> dict[Partition, int]:
    """Read the committed offsets; partitions without one are left out.

    Raises BadPayload if a znode holds no number.
    """
    paths = [registry.offset(me.group, partition) for partition in partitions]
    reads = tuple([GetData(path, False, "read offsets") for path in paths])
    if me.variant.reads is Reads.ONE_BY_ONE:
        seen = [await read_or_none(requests, read) for read in reads]
        data = [None if view is None else view.data for view in seen]
    elif reads:
        answers = await requests(Pipelined(reads))
        data = [None if type(answer) is Failure else answer.data for answer in answers]
    else:
        data = []
    return {
        partition: registry.decode_number(path, value)
        for partition, path, value in zip(partitions, paths, data, strict=True)
        if value is not None
    }


def unknown_start(me: Consumer) -> int:
    """Return where a consumer begins without a committed offset, as `auto.offset.reset` says."""
    return EARLIEST if me.settings.auto_offset_reset == "smallest" else LATEST


def stored(me: Consumer, position: int) -> int:
    """Return the number to commit if the next message is at `position`."""
    return position if me.variant.offset_means is OffsetMeaning.NEXT else position - 1


def to_commit(
    me: Consumer, positions: Positions, partitions: Iterable[Partition]
) -> list[tuple[Partition, int]]:
    """Return the offsets to commit for these partitions; none where nothing was read."""
    known = dict(positions)
    return [
        (partition, stored(me, known[partition]))
        for partition in partitions
        if known.get(partition, 0) > 0
    ]


async def commit_blindly(
    me: Consumer, requests: Requests, offsets: Iterable[tuple[Partition, int]]
) -> None:
    """Write offsets one by one, unconditionally, as shipped.

    A write that is delayed until another member owns the partition moves its offset back.
    """
    for partition, value in offsets:
        path = registry.offset(me.group, partition)
        data = registry.encode_number(value)
        write = SetData(path, data, purpose="commit")
        try:
            await requests(write)
        except NoNode:
            try:
                await create_with_parents(requests, Create(path, data, purpose="commit"))
            except NodeExists:  # by another member, or by this one, and the reply was lost
                await requests(write)


async def commit_fenced(
    me: Consumer,
    state: ConsumerState,
    requests: Requests,
    offsets: Sequence[tuple[Partition, int]],
) -> None:
    """Write offsets in one multi that checks the version of the own registration.

    Raises TransactionFailed with index 0 if the registration is gone or has another version.
    """
    if not offsets:
        return
    assert state.fence_version is not None, "a fenced write needs the version to check"
    fence = Check(id_path(me, state), state.fence_version, "commit")
    writes: list[SetData | Create] = [
        SetData(
            registry.offset(me.group, partition), registry.encode_number(value), purpose="commit"
        )
        for partition, value in offsets
    ]
    try:
        await requests(Multi((fence, *writes), "commit"))
    except TransactionFailed as failed:
        if failed.index == 0 or failed.cause.kind is not NoNode:
            raise
        await requests(Multi((fence, *await _with_creates(requests, writes)), "commit"))


async def _with_creates(
    requests: Requests, writes: Sequence[SetData | Create]
) -> list[SetData | Create]:
    """Return the same writes, with a Create where the znode is missing."""
    reads = tuple(Exists(write.path, False, "commit") for write in writes)
    found = await requests(Pipelined(reads))
    missing = [write for write, seen in zip(writes, found, strict=True) if seen is None]
    for write in {registry.parent_of(write.path): write for write in missing}.values():
        await ensure_parents(requests, write)
    return [
        write if seen is not None else Create(write.path, write.data, purpose="commit")
        for write, seen in zip(writes, found, strict=True)
    ]
