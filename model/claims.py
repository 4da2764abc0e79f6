"""Letting go of partitions and claiming them: steps 8 and 9 of the pages.

A claim is an ephemeral under the owner registry. While it stands, nobody else can claim
the partition; it ends when its owner deletes it or when its owner's session ends. Whether
a claim is *mine* can be asked in three ways, and each variant asks in one of them:

  by name     the znode holds my id. True of a claim of my earlier session, too, which
              is about to vanish (as shipped, and what the pages' step 8 must mean).
  by memory   I made it, as far as I remember (as shipped, for letting go).
  by session  the ephemeral belongs to the session I have now (hardened). ZooKeeper lists
              a session's ephemerals in one request.
"""

from __future__ import annotations

from dataclasses import replace

from model import registry
from model.asks import Partition, forget, sleep, tell
from model.errors import (
    BadVersion,
    Failure,
    NodeExists,
    NoNode,
    TransactionFailed,
    Unimplemented,
)
from model.member import Round, id_path, owner_value
from model.operations import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    GetEphemerals,
    Multi,
    Pipelined,
    Purpose,
)
from model.requests import create_with_parents, ensure_parents

# --- 8: remove the entries owned by me -------------------------------------------------


async def release_all(step: Round) -> Round:
    """Step 8, as shipped: delete every claim I remember, whoever made what stands there."""
    await forget(None)
    for partition in step.memory.owned:
        await _delete(step, partition)
    return replace(step, memory=replace(step.memory, owned=()))


async def _delete(step: Round, partition: Partition) -> None:
    path = registry.owner(step.me.group, partition)
    try:
        await step.requests(Delete(path, purpose="release"))
    except NoNode:
        return


async def release_by_name(step: Round) -> Round:
    """Step 8, to the letter: delete the entries of these topics that hold my id."""
    mine = step.memory.consumer_id.encode()
    for topic in step.topics:
        for partition in await _claimed(step, topic):
            path = registry.owner(step.me.group, partition)
            seen = await step.requests(Exists(path, False, "read claims"))
            if seen is not None and await _holds(step, path, mine):
                await _delete(step, partition)
    kept = tuple(one for one in step.memory.owned if one.topic not in step.topics)
    return replace(step, memory=replace(step.memory, owned=kept))


async def _holds(step: Round, path: str, value: bytes) -> bool:
    try:
        return (await step.requests(GetData(path, False, "read claims"))).data == value
    except NoNode:
        return False


async def _claimed(step: Round, topic: str) -> list[Partition]:
    try:
        path = registry.topic_owners(step.me.group, topic)
        names = await step.requests(GetChildren(path, False, "read claims"))
    except NoNode:
        return []
    return [Partition(topic, name) for name in sorted(names)]


async def read_claims(step: Round) -> Round:
    """Ask ZooKeeper which claims belong to the session I have now."""
    prefix = registry.owners(step.me.group)
    try:
        paths = await step.requests(GetEphemerals(prefix, purpose="read claims"))
    except Unimplemented:
        paths = tuple(await _owners_that_are_mine(step))
    parsed = [registry.parse_owner(path) for path in paths]
    held = tuple(found[1] for found in parsed if found is not None and found[0] == step.me.group)
    return replace(step, held=held, memory=replace(step.memory, owned=held))


async def _owners_that_are_mine(step: Round) -> list[str]:
    """The same by reading every owner, for servers that cannot list ephemerals."""
    mine: list[str] = []
    for topic in await _topics_with_owners(step):
        partitions = await _claimed(step, topic)
        paths = [registry.owner(step.me.group, partition) for partition in partitions]
        looks = tuple(Exists(path, False, "read claims") for path in paths)
        seen = await step.requests(Pipelined(looks)) if looks else ()
        mine.extend(
            path for path, one in zip(paths, seen, strict=True) if one is not None and one.mine
        )
    return mine


async def _topics_with_owners(step: Round) -> tuple[str, ...]:
    try:
        path = registry.owners(step.me.group)
        return await step.requests(GetChildren(path, False, "read claims"))
    except NoNode:
        return ()


async def release_lost(step: Round) -> Round:
    """Step 8, hardened: let go of what has fallen to others, in one fenced multi.

    Where I stood is forgotten before the request leaves: should its answer be lost, I must
    not go on from there when the partition comes back to me after others have read it.
    """
    wants = step.wants()
    lost = tuple(partition for partition in step.held if partition not in wants)
    if not lost:
        return step
    await forget(lost)
    deletes = [Delete(registry.owner(step.me.group, partition)) for partition in lost]
    after = await _fenced(step, deletes, "release")
    if after.stopped:
        return after
    held = tuple(partition for partition in step.held if partition in wants)
    return replace(after, held=held, memory=replace(after.memory, owned=held))


async def _fenced(step: Round, writes: list[Delete] | list[Create], purpose: Purpose) -> Round:
    """Do these writes if my registration is still the one I know; stop the attempt if not."""
    assert step.memory.guard is not None, "a fenced write needs the version to check"
    guard = Check(id_path(step.me, step.memory), step.memory.guard)
    try:
        await step.requests(Multi((guard, *writes), purpose))
        return step
    except TransactionFailed as failed:
        if failed.index > 0:
            return await _conflict(step, failed, purpose)
        if failed.cause.kind is BadVersion:
            unsure = replace(step.memory, guard=None)
            return replace(step, memory=unsure, stopped="the own registration was raised")
        gone = replace(step.memory, is_registered=False, guard=None)
        return replace(step, memory=gone, stopped="the own registration is gone")


async def _conflict(step: Round, failed: TransactionFailed, purpose: Purpose) -> Round:
    if purpose == "claim" and failed.cause.kind is NoNode:
        await ensure_parents(step.requests, Create(failed.path, purpose="claim"))
        return replace(step, stopped="the owner registry had to be made")
    await tell("conflict", topic=failed.path.split("/")[-2], path=failed.path)
    return replace(step, stopped=f"another was quicker at {failed.path}")


# --- 9: add the newly assigned entries -------------------------------------------------


def _claim(step: Round, partition: Partition, stream: int) -> Create:
    return Create(
        registry.owner(step.me.group, partition),
        owner_value(step.me, step.memory.consumer_id, stream),
        ephemeral=True,
        purpose="claim",
    )


async def claim_one_by_one(step: Round) -> Round:
    """Step 9, as shipped: try every claim; if one conflicts, take back the others and fail.

    A claim that stands already and holds my name counts as mine.
    """
    claimed: list[Partition] = []
    conflicts: list[Partition] = []
    for partition, stream in step.wanted:
        created = await _create_or_recognise(step, _claim(step, partition, stream))
        (claimed if created else conflicts).append(partition)
    if not conflicts:
        return replace(step, held=tuple(claimed))
    await tell("conflict", topic=conflicts[0].topic, partitions=[str(one) for one in conflicts])
    for partition in claimed:
        await _delete(step, partition)
    return replace(step, stopped=f"{conflicts[0]} is claimed by another")


async def _create_or_recognise(step: Round, claim: Create) -> bool:
    try:
        await create_with_parents(step.requests, claim)
        return True
    except NodeExists:
        return await _holds(step, claim.path, claim.data or b"")


async def claim_until_released(step: Round) -> Round:
    """Step 9, to the letter: try each claim until its previous owner has let go.

    There is no bound, and what was read is not read again.
    """
    for partition, stream in step.wanted:
        claim = _claim(step, partition, stream)
        while not await _created(step, claim):
            await tell("conflict", topic=partition.topic, partitions=[str(partition)])
            await sleep(step.me.settings.rebalance_backoff_ms)
    claimed = tuple(partition for partition, _ in step.wanted)
    owned = (*step.memory.owned, *claimed)
    return replace(step, held=claimed, memory=replace(step.memory, owned=owned))


async def _created(step: Round, claim: Create) -> bool:
    try:
        await create_with_parents(step.requests, claim)
        return True
    except NodeExists:
        return False


async def claim_free(step: Round) -> Round:
    """Step 9, hardened: claim all that is free in one fenced multi; watch what is not.

    The deletion of a claim that stands in the way wakes me, so nothing is polled.
    """
    held = frozenset(step.held)
    missing = [pair for pair in step.wanted if pair[0] not in held]
    if not missing:
        return step
    await forget(partition for partition, _ in missing)
    claims = [_claim(step, partition, stream) for partition, stream in missing]
    looks = tuple(Exists(claim.path, True, "await owner") for claim in claims)
    seen = await step.requests(Pipelined(looks))
    free = [index for index, one in enumerate(seen) if _is_free(one)]
    if not free:
        return step
    after = await _fenced(step, [claims[index] for index in free], "claim")
    if after.stopped:
        return after
    held_now = (*step.held, *(missing[index][0] for index in free))
    return replace(after, held=held_now, memory=replace(after.memory, owned=held_now))


def _is_free(seen: object) -> bool:
    assert type(seen) is not Failure, "exists fails for no path that the registry makes"
    return seen is None
