"""Releasing and claiming partitions: steps 8 and 9 of the pages.

A claim is an ephemeral under the owner registry. While it exists, no other member can claim
the partition. It ends when its owner deletes it or when the owner's session ends. There are
three ways to decide whether a claim belongs to this member, and each variant uses one:

  by name     the znode holds the member's id. This also matches a claim of its previous
              session, which is about to vanish (as shipped, and what step 8 must mean).
  by state    the member remembers that it made the claim (as shipped, to release).
  by session  the ephemeral belongs to the member's current session (hardened). ZooKeeper
              lists the ephemerals of a session in one request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from watchkeeper.model.actor.effects import Partition, emit, forget, sleep
from watchkeeper.model.actor.errors import BadVersion, NodeExists, NoNode, TransactionFailed
from watchkeeper.model.actor.operations import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Pipelined,
    Purpose,
    SetData,
)
from watchkeeper.model.actor.retry import create_with_parents, ensure_all_parents
from watchkeeper.model.group.state import Attempt, id_path, owner_value
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind

# --- 8: release ---------------------------------------------------------------------


async def release_all(attempt: Attempt) -> None:
    """Step 8, as shipped: delete the claim on every partition in `owned`.

    The claim that exists may be another member's by now: nothing checks that.
    """
    await forget(None)
    for partition in attempt.state.owned:
        await delete_claim(attempt, partition)
    attempt.update(owned=())


async def delete_claim(attempt: Attempt, partition: Partition) -> None:
    """Delete the claim on a partition, whichever member made it."""
    path = attempt.owner_path(partition)
    try:
        await attempt.requests(Delete(path, purpose="release"))
    except NoNode:
        return


async def release_by_name(attempt: Attempt) -> None:
    """Step 8, to the letter: delete the claims on these topics that hold the own id."""
    mine = attempt.state.consumer_id.encode()
    for topic in attempt.topics:
        for partition in await claimed_in(attempt, topic):
            if await _holds(attempt, attempt.owner_path(partition), mine):
                await delete_claim(attempt, partition)
    kept = tuple(
        partition for partition in attempt.state.owned if partition.topic not in attempt.topics
    )
    attempt.update(owned=kept)


async def _holds(attempt: Attempt, path: str, value: bytes) -> bool:
    try:
        return (await attempt.requests(GetData(path, False, "read claims"))).data == value
    except NoNode:
        return False


async def claimed_in(attempt: Attempt, topic: str) -> list[Partition]:
    """Return the claimed partitions of a topic, sorted by name."""
    try:
        path = paths.topic_owners(attempt.me.group, topic)
        names = await attempt.requests(GetChildren(path, False, "read claims"))
    except NoNode:
        return []
    return [Partition(topic, name) for name in sorted(names)]


async def release_lost(attempt: Attempt) -> None:
    """Step 8, hardened: release the partitions assigned to others, in one fenced multi."""
    lost = attempt.lost()
    if not lost:
        return
    # Before the request, not after it: if its response is lost, another member may own the
    # partition already, and a position that is kept would be used when it comes back.
    await attempt.forget_positions(lost)
    deletes = [Delete(attempt.owner_path(partition)) for partition in lost]
    await fenced(attempt, deletes, "release")
    if not attempt.stopped:
        assigned = attempt.assigned_partitions()
        attempt.claimed = tuple(
            partition for partition in attempt.claimed if partition in assigned
        )
        attempt.update(owned=attempt.claimed)


async def fenced(
    attempt: Attempt, writes: Sequence[Delete | Create | SetData], purpose: Purpose
) -> None:
    """Do these writes in one multi if the own registration has the known version.

    The multi is refused as a whole. Index 0 is the check of the version; any other index is
    a claim of another member. Either way the attempt ends; it raises nothing but a lost
    connection or session.
    """
    assert attempt.state.fence_version is not None, "a fenced write needs the version to check"
    fence = Check(id_path(attempt.me, attempt.state), attempt.state.fence_version)
    try:
        await _with_parents(attempt, Multi((fence, *writes), purpose))
    except TransactionFailed as failed:
        if failed.index > 0:
            await _conflict(attempt, failed, purpose)
        elif failed.cause.kind is BadVersion:
            # A late request of this member took effect after all: raise the fence first.
            attempt.update(fence_version=None)
            attempt.stopped = "the own registration was raised"
        else:
            attempt.lose_registration()


async def _with_parents(attempt: Attempt, multi: Multi) -> None:
    """Send a multi; create the znodes above its claims first where some are missing.

    In a new group they all are. The multi is tried first, because in every later rebalance
    none is. The second one checks the same fence, so it is as safe as the first.
    """
    try:
        await attempt.requests(multi)
    except TransactionFailed as failed:
        refused = multi.operations[failed.index]
        if not isinstance(refused, Create) or failed.cause.kind is not NoNode:
            raise
        claims = [operation for operation in multi.operations if isinstance(operation, Create)]
        await ensure_all_parents(attempt.requests, claims)
        await attempt.requests(multi)


async def _conflict(attempt: Attempt, failed: TransactionFailed, purpose: Purpose) -> None:
    """End the attempt because a write of the multi, not its fence, was refused."""
    if purpose == "claim" and failed.cause.kind is NoNode:
        attempt.stopped = f"{failed.path} is gone"
        return
    await emit(EventKind.CLAIM_CONFLICT, topic=failed.path.split("/")[-2], path=failed.path)
    attempt.stopped = f"another was quicker at {failed.path}"


# --- 9: claim -------------------------------------------------------------------------


def claim_on(attempt: Attempt, partition: Partition, stream: int) -> Create:
    """Return the request that claims a partition for one of the own streams."""
    return Create(
        attempt.owner_path(partition),
        owner_value(attempt.me, attempt.state.consumer_id, stream),
        ephemeral=True,
        purpose="claim",
    )


async def claim_one_by_one(attempt: Attempt) -> None:
    """Step 9, as shipped: try every claim; if one conflicts, delete the others and fail.

    An existing claim that holds the own id counts as the member's own.
    """
    claimed: list[Partition] = []
    conflicts: list[Partition] = []
    for partition, stream in attempt.assigned:
        created = await _create_or_recognise(attempt, claim_on(attempt, partition, stream))
        (claimed if created else conflicts).append(partition)
    attempt.claimed = tuple(claimed)
    if conflicts:
        names = [str(partition) for partition in conflicts]
        await emit(EventKind.CLAIM_CONFLICT, topic=conflicts[0].topic, partitions=names)
        for partition in claimed:
            await delete_claim(attempt, partition)
        attempt.stopped = f"{conflicts[0]} is claimed by another"


async def _create_or_recognise(attempt: Attempt, claim: Create) -> bool:
    try:
        await create_with_parents(attempt.requests, claim)
        return True
    except NodeExists:
        return await _holds(attempt, claim.path, claim.data or b"")


async def claim_until_released(attempt: Attempt) -> None:
    """Step 9, to the letter: try each claim until its previous owner has released it.

    There is no bound, and nothing is read again meanwhile: the member goes on claiming a
    partition that is assigned to another by now.
    """
    for partition, stream in attempt.assigned:
        claim = claim_on(attempt, partition, stream)
        while not await _created(attempt, claim):
            await emit(
                EventKind.CLAIM_CONFLICT, topic=partition.topic, partitions=[str(partition)]
            )
            await sleep(attempt.me.settings.rebalance_backoff_ms)
    attempt.claimed = tuple(partition for partition, _ in attempt.assigned)
    attempt.update(owned=(*attempt.state.owned, *attempt.claimed))


async def _created(attempt: Attempt, claim: Create) -> bool:
    try:
        await create_with_parents(attempt.requests, claim)
        return True
    except NodeExists:
        return False


async def claim_free(attempt: Attempt) -> None:
    """Step 9, hardened: claim all free partitions in one fenced multi; watch the others.

    The deletion of another member's claim fires the watch, so nothing is polled.
    """
    claimed = frozenset(attempt.claimed)
    missing = [pair for pair in attempt.assigned if pair[0] not in claimed]
    free = await _free(attempt, missing)
    writes: list[Delete | Create | SetData] = [claim_on(attempt, *pair) for pair in free]
    writes.extend(_renamed(attempt, claimed))
    if not writes:
        return
    await fenced(attempt, writes, "claim")
    if not attempt.stopped:
        attempt.claimed = (*attempt.claimed, *(partition for partition, _ in free))
        attempt.update(owned=attempt.claimed)


async def _free(
    attempt: Attempt, missing: list[tuple[Partition, int]]
) -> list[tuple[Partition, int]]:
    """Return the partitions without a claim; set a watch on the claims on the others."""
    if not missing:
        return []
    await attempt.forget_positions([partition for partition, _ in missing])
    reads = [
        Exists(attempt.owner_path(partition), True, "await owner") for partition, _ in missing
    ]
    seen = await attempt.requests(Pipelined(tuple(reads)))
    return [pair for pair, owner in zip(missing, seen, strict=True) if owner is None]


def _renamed(attempt: Attempt, claimed: frozenset[Partition]) -> Iterator[SetData]:
    """Yield the writes that name another stream of this member in a claim it keeps."""
    known = {partition: stream for partition, stream, _ in attempt.state.plan}
    for partition, stream in attempt.assigned:
        if partition in claimed and known.get(partition) != stream:
            claim = claim_on(attempt, partition, stream)
            yield SetData(claim.path, claim.data)


async def claim_freed(attempt: Attempt) -> None:
    """Step 9 again, for the partitions that their previous owners have released since.

    Any other change would have fired a watch and made the state dirty. So the last
    assignment still holds, and nothing has to be read again.
    """
    freed = frozenset(attempt.state.freed)
    mine = [pair for pair in attempt.assigned if pair[0] in freed]
    attempt.update(freed=())
    await attempt.forget_positions([partition for partition, _ in mine])
    claims = [claim_on(attempt, partition, stream) for partition, stream in mine]
    await fenced(attempt, claims, "claim")
    if not attempt.stopped:
        attempt.claimed = (*attempt.claimed, *(partition for partition, _ in mine))
        attempt.update(owned=attempt.claimed)
