"""What the leader of a partition does: append, serve followers, and keep the ISR.

A fetch of a follower says how far that follower is. With it the leader raises the high
watermark, below which every member of the ISR has everything, and lets a follower that has
caught up join the ISR. A follower that is silent or behind for too long leaves it.

The leader writes the ISR into ZooKeeper first and takes it over afterwards. While the write is
under way nothing else may change: the high watermark must not pass a member that the registry
has already and the memory has not.

Kafka 0.8.2.2: Partition, ReplicaManager.fetchMessages; KIP-101, KIP-279, KIP-320 where said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition, emit, sleep
from watchkeeper.model.actor.errors import (
    BadVersion,
    ConnectionLoss,
    NodeExists,
    NoNode,
    SessionExpired,
)
from watchkeeper.model.actor.operations import Create, SetData
from watchkeeper.model.actor.tasks import take
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import NO_LEADER, IsrChange, PartitionState
from watchkeeper.model.replication.messages import ENTRY_BYTES, message_ranges, size_of
from watchkeeper.model.replication.registry import RECONNECT_MS, read_states
from watchkeeper.model.replication.replica import Arrival, Follower, Replica, WaitingAppend
from watchkeeper.model.replication.replica_log import Record, end_of_epoch, epoch_up_to
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.requests import (
    ALL,
    CONSUMER,
    Appended,
    AppendRecords,
    EndOfEpoch,
    EpochEnd,
    ErrorCode,
    FetchedPart,
    FetchedRecords,
    FetchRecords,
    Wanted,
)
from watchkeeper.model.replication.truncation import KIP_101, Agreement
from watchkeeper.model.replication.variants import RefusedIsr, SlowFollower
from watchkeeper.model.trace.kinds import EventKind

RECORDS_A_FETCH = 1_000
"""About `replica.fetch.max.bytes`."""
THE_LEADER = 1
"""`acks`: the leader has the messages."""
CONFIRMATION_MS = 5
"""The pause between two looks at what followers have fetched."""


# --- producers -------------------------------------------------------------------------


async def append(all_of: Replicas, request: AppendRecords) -> Appended:
    """Append what a producer sends, and wait for the ISR if it says so."""
    contents = [Content(number) for number in request.numbers]
    return await append_all(
        all_of, request.partition, contents, acks=request.acks, timeout_ms=request.timeout_ms
    )


class Content(NamedTuple):
    """What a record holds beside the epoch of the leader that appends it."""

    number: int
    message: bytes = b""


async def append_all(
    all_of: Replicas,
    partition: Partition,
    contents: Sequence[Content],
    *,
    acks: int,
    timeout_ms: int,
) -> Appended:
    """Append records to a partition that this broker leads, and wait as `acks` says."""

    def records(offset: int, epoch: int) -> list[Record]:
        return [Record(epoch, *each) for each in contents]

    return await append_records(all_of, partition, records, acks=acks, timeout_ms=timeout_ms)


async def append_records(
    all_of: Replicas,
    partition: Partition,
    records: Callable[[int, int], Sequence[Record]],
    *,
    acks: int,
    timeout_ms: int,
) -> Appended:
    """Append the records that a function makes of the first offset and the leader's epoch.

    With `acks` above 1 so many members of the ISR have to have them, whatever
    `min.insync.replicas` says. An ISR that is smaller never does: the time runs out.
    """
    replica = all_of.by_partition.get(partition)
    if replica is None:
        return Appended(ErrorCode.UNKNOWN_PARTITION)
    await all_of.settled(replica)
    if not all_of.leads(replica):
        return Appended(ErrorCode.NOT_LEADER)
    if acks == ALL and len(replica.isr) < all_of.min_in_sync(partition.topic):
        return Appended(ErrorCode.NOT_ENOUGH_REPLICAS)
    offset = replica.end
    await store(all_of, replica, records(offset, replica.leader_epoch))
    queue = all_of.fresh_queue("append")
    waits = acks == ALL or acks > THE_LEADER
    if waits:
        replica.waiting.append(WaitingAppend(replica.end, queue, max(acks, 0)))
    await all_of.raise_high_watermark(replica)
    await all_of.wake_fetches(replica, of_consumers=False)
    if not waits:
        return Appended(ErrorCode.NONE, offset)
    code = await take(queue, timeout_ms=timeout_ms)
    if code is None:
        replica.waiting = [one for one in replica.waiting if one.queue != queue]
        return Appended(ErrorCode.TIMED_OUT, offset)
    return Appended(code, offset)


async def store(all_of: Replicas, replica: Replica, records: Sequence[Record]) -> None:
    """Append records to the log of a replica that is settled, and say so in the trace.

    The trace is first, the file is second, and memory is last: what followers and consumers are
    given, the process still has after a restart.
    """
    await all_of.hold(replica)
    await emit(
        EventKind.APPENDED,
        topic=replica.partition.topic,
        partition=replica.partition.name,
        epoch=replica.leader_epoch,
        leads=all_of.leads(replica),
        start=replica.end,
        records=[[record.epoch, record.number] for record in records],
    )
    if all_of.leads(replica):
        await _note_stored(replica, records)
    await all_of.files.append(replica.partition, replica.end, records)
    replica.log.extend(records)
    await all_of.let_go(replica)


async def _note_stored(replica: Replica, records: Sequence[Record]) -> None:
    """Say what is in the log of a partition now, as brokers of 0.7 do."""
    ranges = [list(each) for each in message_ranges(replica.partition, replica.end, records)]
    if not ranges:
        return
    await emit(
        EventKind.STORED,
        topic=replica.partition.topic,
        partition=replica.partition.name,
        ranges=ranges,
        entry_bytes=ENTRY_BYTES,
    )


async def is_confirmed(all_of: Replicas, replica: Replica, within_ms: int) -> bool:
    """Whether this broker led at a moment after the call.

    It did if each member of the ISR has sent a fetch after the call: no clean election lets a
    broker lead that is not in the ISR, and a member that leads fetches no more. The first fetch
    that arrives may have been sent before; the one after it follows a response.
    """
    epoch, deadline_ms = replica.leader_epoch, all_of.now_ms() + within_ms
    others = [broker for broker in replica.isr if broker != all_of.me.broker_id]
    before = {broker: _fetched(replica, broker) for broker in others}
    while all_of.leads(replica) and replica.leader_epoch == epoch:
        if all(_fetched(replica, broker) >= before[broker] + 2 for broker in others):
            return True
        if all_of.now_ms() >= deadline_ms:
            return False
        await all_of.wake_fetches(replica, of_consumers=False)
        await sleep(CONFIRMATION_MS)
    return False


def _fetched(replica: Replica, broker: int) -> int:
    follower = replica.followers.get(broker)
    return 0 if follower is None else follower.fetched


# --- followers and consumers -----------------------------------------------------------


async def serve_fetch(
    all_of: Replicas, request: FetchRecords, *, min_bytes: int = 1
) -> FetchedRecords:
    """Answer a follower or a consumer; without anything new, wait for something to come.

    Where `min_bytes` are wanted, it waits for so much, unless a partition has an error.
    """
    of_consumer = request.replica == CONSUMER
    parts = _parts(all_of, request)
    for wanted, part in zip(request.wanted, parts, strict=True):
        if part.error is ErrorCode.NONE and not of_consumer:
            await _note_fetch(all_of, request.replica, wanted)
    if request.wait_ms:
        deadline_ms = all_of.now_ms() + request.wait_ms
        while not _is_enough(parts, min_bytes):
            await _arrival(all_of, request, deadline_ms - all_of.now_ms())
            parts = _parts(all_of, request)
            # For any bytes at all one arrival is waited for: what woke it up is for the caller.
            if min_bytes <= 1 or all_of.now_ms() >= deadline_ms:
                break
    return FetchedRecords(_parts(all_of, request))


def _is_enough(parts: Sequence[FetchedPart], min_bytes: int) -> bool:
    """Whether a fetch is answered: enough records, or an error."""
    if any(part.error for part in parts):
        return True
    if min_bytes <= 1:
        return any(part.records for part in parts)
    return sum(size_of(part.records) for part in parts) >= min_bytes


async def _arrival(all_of: Replicas, request: FetchRecords, wait_ms: int) -> None:
    """Wait until something new has come to one of the partitions, or for so long."""
    queue = all_of.fresh_queue("fetch")
    partitions = frozenset(wanted.partition for wanted in request.wanted)
    all_of.arrivals[queue] = Arrival(partitions, request.replica == CONSUMER)
    await take(queue, timeout_ms=max(wait_ms, 0))
    all_of.arrivals.pop(queue, None)


def _parts(all_of: Replicas, request: FetchRecords) -> tuple[FetchedPart, ...]:
    of_consumer = request.replica == CONSUMER
    return tuple(_part(all_of, wanted, of_consumer) for wanted in request.wanted)


def _part(all_of: Replicas, wanted: Wanted, of_consumer: bool) -> FetchedPart:
    """Return what a leader has of a partition from an offset on; for a consumer, committed."""
    partition, offset, _ = wanted
    replica = all_of.by_partition.get(partition)
    if replica is None:
        return FetchedPart(partition, offset, ErrorCode.UNKNOWN_PARTITION)
    if not all_of.leads(replica):
        return FetchedPart(partition, offset, ErrorCode.NOT_LEADER)
    if not of_consumer and _is_of_another_epoch(all_of, replica, wanted.leader_epoch):
        return FetchedPart(partition, offset, ErrorCode.STALE_LEADER_EPOCH)
    mark, end = replica.high_watermark, replica.end
    if offset > end:
        code = ErrorCode.OFFSET_OUT_OF_RANGE
        return FetchedPart(partition, offset, code, high_watermark=mark, end=end)
    limit = mark if of_consumer else end
    most = _whole(replica.log, min(offset + RECORDS_A_FETCH, limit), limit)
    records = tuple(replica.log[offset:most])
    if records and records[-1].is_hidden:
        records = ()
    return FetchedPart(partition, offset, ErrorCode.NONE, records, mark, end)


def _whole(log: Sequence[Record], end: int, limit: int) -> int:
    """Return the first end from this one on that is not inside of a compressed message."""
    while 0 < end < limit and log[end - 1].is_hidden:
        end += 1
    return end


def _is_of_another_epoch(all_of: Replicas, replica: Replica, epoch: int) -> bool:
    rule = all_of.me.variant.truncation
    return rule.agreement is Agreement.EPOCH and epoch != replica.leader_epoch


async def _note_fetch(all_of: Replicas, broker: int, wanted: Wanted) -> None:
    """Know how far a follower is: it may join the ISR, and the high watermark may rise."""
    replica = all_of.by_partition[wanted.partition]
    await all_of.settled(replica)
    if not all_of.leads(replica) or broker not in replica.replicas:
        return
    now = all_of.now_ms()
    follower = replica.followers.setdefault(broker, Follower(now))
    follower.fetches(wanted.offset, replica.end, now)
    if broker not in replica.isr and _may_join(all_of, replica, wanted.offset):
        follower.caught_up_ms = now
        await change_isr(all_of, replica, (*replica.isr, broker))
    await all_of.raise_high_watermark(replica)
    await all_of.answer_waiting(replica, _reached(replica), ErrorCode.NONE)


def _reached(replica: Replica) -> list[WaitingAppend]:
    """Return the producers whose messages as many members of the ISR have as they wait for."""
    ends = [
        follower.end
        for broker, follower in replica.followers.items()
        if broker in replica.isr and follower.end is not None
    ]
    return [
        one
        for one in replica.waiting
        if one.members and THE_LEADER + sum(end >= one.end for end in ends) >= one.members
    ]


def _may_join(all_of: Replicas, replica: Replica, end: int) -> bool:
    """Whether a follower that has this much may join the ISR.

    KIP-320: only once the high watermark has reached the epoch of this leader. What lies above
    an older one may be committed, and a member that does not have it would lose it.
    """
    if end < replica.high_watermark:
        return False
    return not all_of.me.variant.truncation.admits_after_own_epoch or end >= replica.epoch_start


def serve_end_of_epoch(all_of: Replicas, request: EndOfEpoch) -> EpochEnd:
    """Say where an epoch ends in the log of this leader."""
    replica = all_of.by_partition.get(request.partition)
    if replica is None:
        return EpochEnd(ErrorCode.UNKNOWN_PARTITION)
    if not all_of.leads(replica):
        return EpochEnd(ErrorCode.NOT_LEADER)
    if _is_of_another_epoch(all_of, replica, request.leader_epoch):
        return EpochEnd(ErrorCode.STALE_LEADER_EPOCH)
    if all_of.me.variant.truncation == KIP_101:
        end = end_of_epoch(replica.log, request.epoch)
        return EpochEnd(ErrorCode.NONE, request.epoch, -1 if end is None else end)
    return EpochEnd(ErrorCode.NONE, *epoch_up_to(replica.log, request.epoch))


# --- the ISR ---------------------------------------------------------------------------


async def shrink_isrs(all_of: Replicas) -> None:
    """Let followers that are silent or too far behind leave the ISRs of this leader."""
    for replica in all_of.led():
        await all_of.settled(replica)
        kept = tuple(broker for broker in replica.isr if not _lags(all_of, replica, broker))
        if all_of.leads(replica) and kept != replica.isr:
            await change_isr(all_of, replica, kept)
            await all_of.raise_high_watermark(replica)


def _lags(all_of: Replicas, replica: Replica, broker: int) -> bool:
    me = all_of.me
    follower = replica.followers.get(broker)
    if broker == me.broker_id or follower is None:
        return False
    oldest_ms = all_of.oldest_ms()
    if me.variant.slow_follower is SlowFollower.LONG_BEHIND:
        return not follower.was_caught_up(oldest_ms)
    is_behind = follower.end is not None and replica.end - follower.end > me.lag_messages
    return follower.heard_ms < oldest_ms or is_behind


async def change_isr(all_of: Replicas, replica: Replica, isr: tuple[int, ...]) -> None:
    """Write another ISR into ZooKeeper, and take it over if that succeeds."""
    await all_of.hold(replica)
    state = PartitionState(
        all_of.me.broker_id, isr, replica.leader_epoch, replica.controller_epoch
    )
    version = await _write(replica, state)
    if version is None:
        await _refused(all_of, replica)
    else:
        replica.version, replica.isr = version, isr
        all_of.changed_isrs[replica.partition] = None
        await _note_isr(all_of, replica)
    await all_of.let_go(replica)


async def _note_isr(all_of: Replicas, replica: Replica) -> None:
    await emit(
        EventKind.ISR_CHANGED,
        topic=replica.partition.topic,
        partition=replica.partition.name,
        epoch=replica.leader_epoch,
        isr=list(replica.isr),
        version=replica.version,
    )


async def _write(replica: Replica, state: PartitionState) -> int | None:
    """Write a state over the version that is known; None if there is another one.

    A write whose reply was lost is repeated. Then it is refused, and the registry has what it
    was to write: an earlier attempt took effect (KAFKA-1382).
    """
    path = paths.partition_state(replica.partition)
    while True:
        try:
            return await SetData(path, state.encode(), replica.version, "write isr")
        except BadVersion:
            [found] = await read_states([replica.partition])
            if found is not None and found.state.is_same(state):
                return found.version
            return None
        except NoNode:
            return None
        except (ConnectionLoss, SessionExpired):
            await sleep(RECONNECT_MS)


async def _refused(all_of: Replicas, replica: Replica) -> None:
    """The registry has another state: as shipped that is logged, and no more."""
    await emit(
        EventKind.ISR_REFUSED,
        topic=replica.partition.topic,
        partition=replica.partition.name,
        epoch=replica.leader_epoch,
        version=replica.version,
    )
    if all_of.me.variant.refused_isr is RefusedIsr.KEEPS_VERSION:
        return
    [found] = await read_states([replica.partition])
    if found is None or found.state.leader_epoch != replica.leader_epoch:
        # The controller has written since. Its request is on the way, and says who leads.
        replica.leader = NO_LEADER
        await all_of.cease_to_lead(replica)
        return
    state, replica.version = found
    replica.isr = state.isr
    all_of.changed_isrs[replica.partition] = None


async def announce_isrs(all_of: Replicas) -> None:
    """Let the controller know of the ISRs that were changed since the last time.

    It tells every broker, and deletes the notification. As shipped there is none (KAFKA-1367).
    """
    changed, all_of.changed_isrs = all_of.changed_isrs, {}
    if not changed:
        return
    rows = tuple((partition.topic, int(partition.name)) for partition in changed)
    creation = Create(
        paths.ISR_CHANGE, IsrChange(rows).encode(), sequential=True, purpose="announce isr"
    )
    while True:
        try:
            await creation
        except NoNode:
            with suppress(NodeExists, ConnectionLoss, SessionExpired):
                await Create(paths.ISR_CHANGES, b"", purpose="announce isr")
        except (ConnectionLoss, SessionExpired):
            await sleep(RECONNECT_MS)
        else:
            return
