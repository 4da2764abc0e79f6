"""Mutated steps of a rebalance.

Each replaces a step of `rebalance.STEPS` in one member of `members`; the catalogue names the
system that made the mistake, and its consequence.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.errors import NoNode
from watchkeeper.model.actor.operations import Exists, GetChildren, GetData
from watchkeeper.model.actor.retry import ensure_parents
from watchkeeper.model.group import claims, pipelined_reads, reads
from watchkeeper.model.group.assignment import TopicView
from watchkeeper.model.group.state import Attempt, ConsumerState, PartitionList, stream_ids
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind

# --- the own claims --------------------------------------------------------------------


async def read_claims_from_state(attempt: Attempt) -> None:
    """Take the own claims from the state, and ignore the registry."""
    known = attempt.state.owned
    await pipelined_reads.read_in_batches(attempt)
    attempt.claimed = known
    attempt.update(owned=known)


async def read_claims_and_state(attempt: Attempt) -> None:
    """Add the claims in the state to the claims of the current session."""
    known = attempt.state.owned
    await pipelined_reads.read_in_batches(attempt)
    attempt.claimed = tuple(dict.fromkeys((*attempt.claimed, *known)))
    attempt.update(owned=attempt.claimed)


async def read_claims_by_name(attempt: Attempt) -> None:
    """Add every claim that holds the own name, whichever session made it."""
    await pipelined_reads.read_in_batches(attempt)
    mine = f"{attempt.state.consumer_id}-".encode()
    for topic in attempt.topics:
        for partition in await claims.claimed_in(attempt, topic):
            name = await _claimant(attempt, partition)
            if name.startswith(mine) and partition not in attempt.claimed:
                attempt.claimed = (*attempt.claimed, partition)
    attempt.update(owned=attempt.claimed)


async def _claimant(attempt: Attempt, partition: Partition) -> bytes:
    """Return the data of a claim; empty if there is none."""
    path = attempt.owner_path(partition)
    try:
        return (await attempt.requests(GetData(path, False, "read claims"))).data or b""
    except NoNode:
        return b""


# --- reads -----------------------------------------------------------------------------


class CachingState(ConsumerState, frozen=True):
    """The state of a member that reads the partitions of a topic once."""

    cache: tuple[tuple[str, tuple[Partition, ...]], ...] = ()
    """Topic -> its partitions at the first read."""


async def read_partitions_once(attempt: Attempt) -> None:
    """Take the partitions of a topic as they were at the first read."""
    await pipelined_reads.read_in_batches(attempt)
    cache = {topic: found.partitions for topic, found in attempt.partitions.items()}
    if isinstance(attempt.state, CachingState):
        cache |= dict(attempt.state.cache)
    attempt.partitions = {topic: PartitionList(found) for topic, found in cache.items()}
    if cache:
        known: dict[str, Any] = asdict(attempt.state)
        attempt.state = CachingState(**known | {"cache": tuple(sorted(cache.items()))})


async def watch_after_read(attempt: Attempt) -> None:
    """Set the watch on the members when everything has been read."""
    await pipelined_reads.read_in_batches(attempt)
    path = paths.members(attempt.me.group)
    await attempt.requests(GetChildren(path, True, "watch members"))


async def fail_without_brokers(attempt: Attempt) -> None:
    """Fail without brokers, and set no watch for the first of them."""
    try:
        ids = await attempt.requests(GetChildren(paths.BROKER_IDS, False, "read brokers"))
    except NoNode:
        ids = ()
    if ids:
        await pipelined_reads.read_in_batches(attempt)
    else:
        attempt.stopped, attempt.is_final = "there are no brokers", True


# --- assignment ----------------------------------------------------------------------------


async def assign_unsorted(attempt: Attempt) -> None:
    """Assign the partitions in an order that differs from member to member."""
    await reads.assign_shares(attempt)
    names = [name for name, _ in attempt.members]
    turn = names.index(attempt.state.consumer_id)
    attempt.view = tuple(
        TopicView(
            topic.topic, (*topic.partitions[turn:], *topic.partitions[:turn]), topic.streams
        )
        for topic in attempt.view
    )
    await reads.take_share(attempt)


async def assign_to_all_members(attempt: Attempt) -> None:
    """Give every member a share in every topic, subscribed or not."""
    await reads.assign_shares(attempt)
    unit = attempt.me.variant.unit
    streams = tuple(
        sorted(
            stream_id for name, _ in attempt.members for stream_id in stream_ids(unit, name, 1)
        )
    )
    attempt.view = tuple(
        TopicView(topic.topic, topic.partitions, streams) for topic in attempt.view
    )
    await reads.take_share(attempt)


# --- claims ----------------------------------------------------------------------------


async def claim_by_last(attempt: Attempt) -> None:
    """Try every claim; the result of the last one counts for all."""
    missing = [pair for pair in attempt.assigned if pair[0] not in attempt.claimed]
    for pair in missing:
        claim = claims.claim_on(attempt, *pair)
        await ensure_parents(attempt.requests, claim)
        attempt.stopped = ""
        await claims.fenced(attempt, [claim], "claim")
        if attempt.state.fence_version is None:
            return
    if not attempt.stopped:
        attempt.claimed = (*attempt.claimed, *(partition for partition, _ in missing))
        attempt.update(owned=attempt.claimed)


async def claim_missing(attempt: Attempt) -> None:
    """Claim the partitions that the state lacks, and rename no claim."""
    attempt.update(plan=tuple((partition, stream, "") for partition, stream in attempt.assigned))
    await claims.claim_free(attempt)


async def claim_and_forget(attempt: Attempt) -> None:
    """Claim one by one; if a claim fails, forget those before it."""
    claimed = attempt.claimed
    for partition, stream in attempt.assigned:
        if partition not in claimed:
            await claims.fenced(attempt, [claims.claim_on(attempt, partition, stream)], "claim")
            if attempt.stopped:
                attempt.update(owned=claimed)
                return
            attempt.claimed = (*attempt.claimed, partition)
    attempt.update(owned=attempt.claimed)


async def claim_or_fail(attempt: Attempt) -> None:
    """Claim the missing partitions unless one is claimed already; set no watch on it."""
    missing = [pair for pair in attempt.assigned if pair[0] not in attempt.claimed]
    for partition, _ in missing:
        path = attempt.owner_path(partition)
        if await attempt.requests(Exists(path, False, "await owner")) is not None:
            await emit(
                EventKind.CLAIM_CONFLICT, topic=partition.topic, partitions=[str(partition)]
            )
            attempt.stopped = f"{partition} is claimed by another"
            return
    if missing:
        await claims.fenced(
            attempt, [claims.claim_on(attempt, *pair) for pair in missing], "claim"
        )
    if not attempt.stopped:
        attempt.claimed = (*attempt.claimed, *(partition for partition, _ in missing))
        attempt.update(owned=attempt.claimed)


async def delete_claims_of_strangers(attempt: Attempt) -> None:
    """Delete each claim that holds the name of no known member, then claim."""
    members = tuple(f"{name}-".encode() for name, _ in attempt.members)
    for partition, _ in attempt.assigned:
        if partition not in attempt.claimed:
            name = await _claimant(attempt, partition)
            if name and not name.startswith(members):
                await claims.delete_claim(attempt, partition)
    await claims.claim_free(attempt)
