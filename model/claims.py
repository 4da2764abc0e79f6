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

from collections.abc import Iterator, Sequence

from model import registry
from model.asks import Partition, forget, sleep, tell
from model.errors import BadVersion, NodeExists, NoNode, TransactionFailed
from model.member import Attempt, id_path, owner_value
from model.operations import (
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
from model.requests import create_with_parents, ensure_parents

# --- 8: remove the entries owned by me -------------------------------------------------


async def release_all(attempt: Attempt) -> None:
    """Step 8, as shipped: delete every claim I remember, whoever made what stands there."""
    await forget(None)
    for partition in attempt.memory.owned:
        await delete_claim(attempt, partition)
    attempt.remember(owned=())


async def delete_claim(attempt: Attempt, partition: Partition) -> None:
    """Delete the claim on a partition, whoever made it."""
    path = attempt.owner_path(partition)
    try:
        await attempt.requests(Delete(path, purpose="release"))
    except NoNode:
        return


async def release_by_name(attempt: Attempt) -> None:
    """Step 8, to the letter: delete the entries of these topics that hold my id."""
    mine = attempt.memory.consumer_id.encode()
    for topic in attempt.topics:
        for partition in await claimed_in(attempt, topic):
            if await _holds(attempt, attempt.owner_path(partition), mine):
                await delete_claim(attempt, partition)
    kept = tuple(one for one in attempt.memory.owned if one.topic not in attempt.topics)
    attempt.remember(owned=kept)


async def _holds(attempt: Attempt, path: str, value: bytes) -> bool:
    try:
        return (await attempt.requests(GetData(path, False, "read claims"))).data == value
    except NoNode:
        return False


async def claimed_in(attempt: Attempt, topic: str) -> list[Partition]:
    """The partitions of a topic that somebody has claimed."""
    try:
        path = registry.topic_owners(attempt.me.group, topic)
        names = await attempt.requests(GetChildren(path, False, "read claims"))
    except NoNode:
        return []
    return [Partition(topic, name) for name in sorted(names)]


async def release_lost(attempt: Attempt) -> None:
    """Step 8, hardened: let go of what has fallen to others, in one fenced multi.

    Where I stood is forgotten before the request leaves: should its answer be lost, I must
    not go on from there when the partition comes back to me after others have read it.
    """
    lost = attempt.lost()
    if not lost:
        return
    await _let_go(attempt, lost)
    deletes = [Delete(attempt.owner_path(partition)) for partition in lost]
    await fenced(attempt, deletes, "release")
    if not attempt.stopped:
        wants = attempt.wants()
        attempt.held = tuple(partition for partition in attempt.held if partition in wants)
        attempt.remember(owned=attempt.held)


async def _let_go(attempt: Attempt, partitions: Sequence[Partition]) -> None:
    """Forget where I stood in what is, or may have been, in another's hands."""
    if attempt.me.variant.flaw != "positions outlive a hand-over":
        await forget(partitions)


async def fenced(
    attempt: Attempt, writes: Sequence[Delete | Create | SetData], purpose: Purpose
) -> None:
    """Do these writes if my registration is still the one I know; stop the attempt if not."""
    assert attempt.memory.guard is not None, "a fenced write needs the version to check"
    guard = Check(id_path(attempt.me, attempt.memory), attempt.memory.guard)
    try:
        await attempt.requests(Multi((guard, *writes), purpose))
    except TransactionFailed as failed:
        if failed.index > 0:
            await _met_another(attempt, failed, purpose)
        elif failed.cause.kind is BadVersion:
            attempt.remember(guard=None)
            attempt.stopped = "the own registration was raised"
        else:
            attempt.lose_registration()


async def _met_another(attempt: Attempt, failed: TransactionFailed, purpose: Purpose) -> None:
    if purpose == "claim" and failed.cause.kind is NoNode:
        await ensure_parents(attempt.requests, Create(failed.path, purpose="claim"))
        attempt.stopped = "the owner registry had to be made"
        return
    await tell("conflict", topic=failed.path.split("/")[-2], path=failed.path)
    attempt.stopped = f"another was quicker at {failed.path}"


# --- 9: add the newly assigned entries -------------------------------------------------


def claim_on(attempt: Attempt, partition: Partition, stream: int) -> Create:
    """A claim on a partition for one of my streams."""
    return Create(
        attempt.owner_path(partition),
        owner_value(attempt.me, attempt.memory.consumer_id, stream),
        ephemeral=True,
        purpose="claim",
    )


async def claim_one_by_one(attempt: Attempt) -> None:
    """Step 9, as shipped: try every claim; if one conflicts, take back the others and fail.

    A claim that stands already and holds my name counts as mine.
    """
    claimed: list[Partition] = []
    conflicts: list[Partition] = []
    for partition, stream in attempt.wanted:
        created = await _create_or_recognise(attempt, claim_on(attempt, partition, stream))
        (claimed if created else conflicts).append(partition)
    attempt.held = tuple(claimed)
    if conflicts:
        names = [str(partition) for partition in conflicts]
        await tell("conflict", topic=conflicts[0].topic, partitions=names)
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
    """Step 9, to the letter: try each claim until its previous owner has let go.

    There is no bound, and what was read is not read again.
    """
    for partition, stream in attempt.wanted:
        claim = claim_on(attempt, partition, stream)
        while not await _created(attempt, claim):
            await tell("conflict", topic=partition.topic, partitions=[str(partition)])
            await sleep(attempt.me.settings.rebalance_backoff_ms)
    attempt.held = tuple(partition for partition, _ in attempt.wanted)
    attempt.remember(owned=(*attempt.memory.owned, *attempt.held))


async def _created(attempt: Attempt, claim: Create) -> bool:
    try:
        await create_with_parents(attempt.requests, claim)
        return True
    except NodeExists:
        return False


async def claim_free(attempt: Attempt) -> None:
    """Step 9, hardened: claim all that is free in one fenced multi; watch what is not.

    The deletion of a claim that stands in the way wakes me, so nothing is polled.
    """
    held = frozenset(attempt.held)
    missing = [pair for pair in attempt.wanted if pair[0] not in held]
    free = await _free(attempt, missing)
    writes: list[Delete | Create | SetData] = [claim_on(attempt, *pair) for pair in free]
    writes.extend(_renamed(attempt, held))
    if not writes:
        return
    await fenced(attempt, writes, "claim")
    if not attempt.stopped:
        attempt.held = (*attempt.held, *(partition for partition, _ in free))
        attempt.remember(owned=attempt.held)


async def _free(
    attempt: Attempt, missing: list[tuple[Partition, int]]
) -> list[tuple[Partition, int]]:
    """Those that nobody has claimed; the claims on the others are watched from now on."""
    if not missing:
        return []
    await _let_go(attempt, [partition for partition, _ in missing])
    looks = (Exists(attempt.owner_path(one), True, "await owner") for one, _ in missing)
    seen = await attempt.requests(Pipelined(tuple(looks)))
    return [pair for pair, owner in zip(missing, seen, strict=True) if owner is None]


def _renamed(attempt: Attempt, held: frozenset[Partition]) -> Iterator[SetData]:
    """What I keep but give to another of my streams: the claim has to name that one."""
    known = {partition: stream for partition, stream, _ in attempt.memory.plan}
    for partition, stream in attempt.wanted:
        if partition in held and known.get(partition) != stream:
            claim = claim_on(attempt, partition, stream)
            yield SetData(claim.path, claim.data)


async def claim_freed(attempt: Attempt) -> None:
    """Step 9 again, for what was in another's hands and has been let go of since.

    Nothing else has changed, or there would be a note of it; so what fell to me when I
    last looked falls to me still, and I need not look again.
    """
    freed = frozenset(attempt.memory.freed)
    mine = [pair for pair in attempt.wanted if pair[0] in freed]
    attempt.remember(freed=())
    await _let_go(attempt, [partition for partition, _ in mine])
    claims = [claim_on(attempt, partition, stream) for partition, stream in mine]
    await fenced(attempt, claims, "claim")
    if not attempt.stopped:
        attempt.held = (*attempt.held, *(partition for partition, _ in mine))
        attempt.remember(owned=attempt.held)
