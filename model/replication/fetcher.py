"""What a follower does: fetch from its leader, one task for each broker that leads.

Kafka 0.8.2.2: ReplicaFetcherThread. A reply counts only for a partition that is still fetched
from that leader at the offset that was wanted. A follower's high watermark is the leader's as
of the reply, but never above its own end.

A follower may find that its log is longer than its leader's, since the leader has lost a part of
its own. As shipped the broker ends its process then, unless unclean elections are allowed.
"""

from __future__ import annotations

from watchkeeper.model.actor.effects import emit, sleep
from watchkeeper.model.actor.rpc import Call, CallError
from watchkeeper.model.actor.tasks import Start
from watchkeeper.model.replication.kafka_fetch import begin_at, fetch_parts, range_at
from watchkeeper.model.replication.leader import store
from watchkeeper.model.replication.replica import Replica
from watchkeeper.model.replication.replica_log import last_epoch
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.requests import (
    EndOfEpoch,
    EpochEnd,
    ErrorCode,
    FetchedPart,
    FetchedRecords,
    FetchRecords,
    Wanted,
)
from watchkeeper.model.replication.settings import FetchLayout
from watchkeeper.model.replication.truncation import KIP_101
from watchkeeper.model.replication.variants import LongerLog
from watchkeeper.model.trace.kinds import EventKind

BACKOFF_MS = 200
"""The pause after a fetch that has failed."""
SOCKET_TIMEOUT_MS = 30_000
"""`replica.socket.timeout.ms`."""


class BrokerHalted(Exception):
    """A broker ends its process, since it may not cut a log; the text says why."""


async def start_fetcher(all_of: Replicas, leader: int) -> None:
    """Start the task that fetches from a leader."""
    await Start(f"fetch from {leader}", lambda: fetch_from(all_of, leader))


async def fetch_from(all_of: Replicas, leader: int) -> None:
    """Fetch what follows a leader, until nothing does."""
    while all_of.followed(leader):
        await _cut_first(all_of, leader)
        wanted = tuple(
            Wanted(replica.partition, replica.end, replica.leader_epoch)
            for replica in all_of.followed(leader)
            if not replica.must_cut
        )
        if not wanted or not await _fetch(all_of, leader, wanted):
            await sleep(BACKOFF_MS)
    del all_of.fetchers[leader]


async def _fetch(all_of: Replicas, leader: int, wanted: tuple[Wanted, ...]) -> bool:
    """Fetch once; whether the leader has answered for every partition without an error."""
    try:
        parts = await _parts(all_of, all_of.addresses[leader], wanted)
        for asked, part in zip(wanted, parts, strict=True):
            await _take(all_of, leader, asked, part)
    except CallError:
        return False
    return not any(part.error for part in parts)


async def _parts(
    all_of: Replicas, address: str, wanted: tuple[Wanted, ...]
) -> tuple[FetchedPart, ...]:
    if all_of.me.fetch_layout is FetchLayout.KAFKA_08:
        return await fetch_parts(all_of, address, wanted)
    request = FetchRecords(all_of.me.broker_id, wanted, all_of.me.fetch_wait_ms)
    fetched: FetchedRecords = await Call(address, request, SOCKET_TIMEOUT_MS)
    return fetched.parts


async def _take(all_of: Replicas, leader: int, asked: Wanted, part: FetchedPart) -> None:
    """Take over what a leader has of a partition, if it is still fetched as it was wanted."""
    replica = all_of.by_partition.get(part.partition)
    if replica is None:
        return
    await all_of.settled(replica)
    if not _is_fetched(replica, leader, asked, part):
        return
    if part.error is ErrorCode.OFFSET_OUT_OF_RANGE:
        await _return_into_range(all_of, leader, asked, part)
    if part.error is not ErrorCode.NONE:
        return
    if part.records:
        await store(all_of, replica, part.records)
    replica.high_watermark = min(replica.end, part.high_watermark)


async def _return_into_range(
    all_of: Replicas, leader: int, asked: Wanted, part: FetchedPart
) -> None:
    """Cut a log that is longer than its leader's, or begin where the leader's begins."""
    replica = all_of.by_partition[part.partition]
    begin = 0
    if all_of.me.fetch_layout is FetchLayout.KAFKA_08:
        found = await range_at(all_of, all_of.addresses[leader], part.partition)
        await all_of.settled(replica)
        if found is None or not _is_fetched(replica, leader, asked, part):
            return
        begin, part = found[0], part._replace(end=found[1])
    if begin > replica.end:
        await begin_at(all_of, replica, begin)
    elif part.end < replica.end:
        if _may_not_cut(all_of, replica):
            await _halt(replica, leader, part)
        await all_of.cut(replica, part.end)


def _may_not_cut(all_of: Replicas, replica: Replica) -> bool:
    """Whether this broker believes that what it has beyond its leader's log may not be lost."""
    halts = all_of.me.variant.longer_log is LongerLog.HALTS
    return halts and not all_of.allows_unclean(replica.partition.topic)


async def _halt(replica: Replica, leader: int, part: FetchedPart) -> None:
    await emit(
        EventKind.FOLLOWER_HALTED,
        topic=replica.partition.topic,
        partition=replica.partition.name,
        epoch=replica.leader_epoch,
        leader=leader,
        end=replica.end,
        leader_end=part.end,
    )
    raise BrokerHalted(
        f"the log of {replica.partition} ends at {replica.end} and that of its leader {leader} "
        f"at {part.end}; unclean elections are forbidden, so it may not be cut"
    )


def _is_fetched(replica: Replica, leader: int, asked: Wanted, part: FetchedPart) -> bool:
    return (
        replica.leader == leader
        and replica.leader_epoch == asked.leader_epoch
        and replica.end == part.offset
        and not replica.must_cut
        and not replica.is_stopped
    )


# --- where to cut ----------------------------------------------------------------------


async def _cut_first(all_of: Replicas, leader: int) -> None:
    """Ask the leader where the logs part, and cut there, before the first fetch of an epoch."""
    for replica in all_of.followed(leader):
        while replica.must_cut and _still_follows(all_of, replica, leader):
            if not replica.log:
                replica.must_cut = False
            elif not await _cut_once(all_of, replica, leader):
                break


def _still_follows(all_of: Replicas, replica: Replica, leader: int) -> bool:
    is_here = all_of.by_partition.get(replica.partition) is replica
    return is_here and all_of.follows(replica, leader)


async def _cut_once(all_of: Replicas, replica: Replica, leader: int) -> bool:
    """Ask once; False if there is no usable answer now."""
    epoch, own = replica.leader_epoch, last_epoch(replica.log)
    request = EndOfEpoch(all_of.me.broker_id, replica.partition, own, epoch)
    try:
        found: EpochEnd = await Call(all_of.addresses[leader], request, SOCKET_TIMEOUT_MS)
    except CallError:
        return False
    if found.error is not ErrorCode.NONE or replica.leader_epoch != epoch:
        return False
    await _cut_at(all_of, replica, found)
    return True


async def _cut_at(all_of: Replicas, replica: Replica, found: EpochEnd) -> None:
    """Cut by what the leader says; further questions follow until both know the last epoch."""
    if all_of.me.variant.truncation == KIP_101:
        end = replica.high_watermark if found.end < 0 else found.end
        await all_of.cut(replica, end)
        replica.must_cut = False
        return
    mine = sum(1 for record in replica.log if record.epoch <= found.epoch)
    await all_of.cut(replica, min(found.end, mine))
    replica.must_cut = bool(replica.log) and last_epoch(replica.log) != found.epoch
