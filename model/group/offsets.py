"""A group's place in each partition, kept in ZooKeeper.

The pages say that the maximum offset consumed is stored; Kafka stored the next offset to
be read. A group that follows the pages reads its last message twice after a hand-over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from model import registry
from model.asks import Partition, Positions
from model.errors import Failure, NoNode, TransactionFailed
from model.member import Consumer, Memory, id_path
from model.operations import Check, Create, Exists, GetData, Multi, Pipelined, SetData
from model.requests import Requests, create_with_parents, ensure_parents
from model.threads import put

EARLIEST = -2
LATEST = -1
"""Asked of a broker where no offset has been committed, as OffsetRequest spells them."""

COMMITTED = "committed"
"""The queue into which a member puts what became of the commits that it was ordered to do."""
MOST_ORDERS = 1000


class Committed(NamedTuple):
    """What became of a commit that was ordered."""

    number: int
    is_done: bool


async def acknowledge(number: int, *, is_done: bool) -> None:
    """Say to the threads of this process what became of a commit that one of them ordered."""
    await put(COMMITTED, Committed(number, is_done), MOST_ORDERS, timeout_ms=0)


async def read_offsets(
    me: Consumer, requests: Requests, partitions: Sequence[Partition]
) -> tuple[tuple[Partition, int], ...]:
    """Where the group stands in these partitions: the offset to begin at."""
    paths = [registry.offset(me.group, partition) for partition in partitions]
    if me.variant.reads == "one by one":
        data = [await _read_one(requests, path) for path in paths]
    elif paths:
        reads = tuple(GetData(path, False, "read offsets") for path in paths)
        answers = await requests(Pipelined(reads))
        if me.variant.flaw == "a batch is judged by its first answer":
            answers = tuple(answers[0] if type(answers[0]) is Failure else one for one in answers)
        data = [None if type(answer) is Failure else answer.data for answer in answers]
    else:
        data = []
    return tuple(
        (partition, _start(me, path, value))
        for partition, path, value in zip(partitions, paths, data, strict=True)
    )


async def _read_one(requests: Requests, path: str) -> bytes | None:
    try:
        return (await requests(GetData(path, False, "read offsets"))).data
    except NoNode:
        return None


def _start(me: Consumer, path: str, data: bytes | None) -> int:
    if data is None:
        return EARLIEST if me.settings.auto_offset_reset == "smallest" else LATEST
    return registry.decode_number(path, data)


def stored(me: Consumer, position: int) -> int:
    """What is committed by a member whose next message is at `position`."""
    return position if me.variant.offset_means == "next" else position - 1


def to_commit(
    me: Consumer, positions: Positions, partitions: Iterable[Partition]
) -> list[tuple[Partition, int]]:
    """What to commit for these partitions; nothing for one in which nothing was read."""
    known = dict(positions)
    return [
        (partition, stored(me, known[partition]))
        for partition in partitions
        if known.get(partition, 0) > 0
    ]


async def commit_blindly(
    me: Consumer, requests: Requests, offsets: Iterable[tuple[Partition, int]]
) -> None:
    """Write offsets one by one over whatever is there, as shipped."""
    for partition, value in offsets:
        path = registry.offset(me.group, partition)
        data = registry.encode_number(value)
        try:
            await requests(SetData(path, data, purpose="commit"))
        except NoNode:
            await create_with_parents(requests, Create(path, data, purpose="commit"))


async def commit_fenced(
    me: Consumer, memory: Memory, requests: Requests, offsets: Sequence[tuple[Partition, int]]
) -> None:
    """Write offsets in one multi that only the registration I know of lets through.

    Raises TransactionFailed with index 0 when that registration is not mine any more.
    """
    if not offsets:
        return
    if me.variant.flaw == "commits are not fenced":
        await commit_blindly(me, requests, offsets)
        return
    assert memory.guard is not None, "a fenced write needs the version to check"
    guard = Check(id_path(me, memory), memory.guard, "commit")
    writes: list[SetData | Create] = [
        SetData(
            registry.offset(me.group, partition), registry.encode_number(value), purpose="commit"
        )
        for partition, value in offsets
    ]
    try:
        await requests(Multi((guard, *writes), "commit"))
    except TransactionFailed as failed:
        if failed.index == 0 or failed.cause.kind is not NoNode:
            raise
        await requests(Multi((guard, *await _with_creates(requests, writes)), "commit"))


async def _with_creates(
    requests: Requests, writes: Sequence[SetData | Create]
) -> list[SetData | Create]:
    """The same writes, as creations where there is no znode yet."""
    looks = tuple(Exists(write.path, False, "commit") for write in writes)
    found = await requests(Pipelined(looks))
    missing = [write for write, seen in zip(writes, found, strict=True) if seen is None]
    for write in {registry.parent_of(write.path): write for write in missing}.values():
        await ensure_parents(requests, write)
    return [
        write if seen is not None else Create(write.path, write.data, purpose="commit")
        for write, seen in zip(writes, found, strict=True)
    ]
