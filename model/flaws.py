"""The flawed code of the zoo: steps that a flawed variant takes in its own way.

Nothing here runs in a sound variant: one with a flaw comes here by the table of `FORMS`, or
from the one line that asks for its flaw. Each is a mistake that somebody made; where, and
what it leads to, `zoo` says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from model import claims, look, registry, views
from model.asks import Partition, fetch_exactly, tell
from model.assignment import TopicView
from model.errors import NoNode
from model.member import Attempt, Consumer, Memory, stream_ids
from model.operations import Exists, GetChildren, GetData
from model.requests import Requests, ensure_parents
from model.variants import Flaw, Step

# --- which claims are mine -------------------------------------------------------------


async def look_by_memory(attempt: Attempt) -> None:
    """What I have claimed is what I remember that I have."""
    known = attempt.memory.owned
    await look.look(attempt)
    attempt.held = known
    attempt.remember(owned=known)


async def look_by_memory_too(attempt: Attempt) -> None:
    """What I remember is mine, besides what my session has claimed."""
    known = attempt.memory.owned
    await look.look(attempt)
    attempt.held = tuple(dict.fromkeys((*attempt.held, *known)))
    attempt.remember(owned=attempt.held)


async def look_by_name(attempt: Attempt) -> None:
    """What bears my name is mine, whichever session made it."""
    await look.look(attempt)
    mine = f"{attempt.memory.consumer_id}-".encode()
    for topic in attempt.topics:
        for partition in await claims.claimed_in(attempt, topic):
            name = await _claimant(attempt, partition)
            if name.startswith(mine) and partition not in attempt.held:
                attempt.held = (*attempt.held, partition)
    attempt.remember(owned=attempt.held)


async def _claimant(attempt: Attempt, partition: Partition) -> bytes:
    """What stands on a claim; empty where there is none."""
    path = attempt.owner_path(partition)
    try:
        return (await attempt.requests(GetData(path, False, "read claims"))).data or b""
    except NoNode:
        return b""


async def look_by_place(attempt: Attempt) -> None:
    """Partitions are claimed by the place of their broker in the list of brokers."""
    await look.look(attempt)
    for topic, partitions in attempt.partitions.items():
        brokers = sorted({registry.broker_of(one): None for one in partitions})
        for one in partitions:
            index = int(one.name.partition("-")[2])
            place = brokers.index(registry.broker_of(one))
            attempt.places[one] = registry.partition_07(topic, place, index)
    named = {place: one for one, place in attempt.places.items()}
    attempt.held = tuple(named.get(one, one) for one in attempt.held)
    attempt.remember(owned=attempt.held)


# --- what is read, and when ------------------------------------------------------------


async def look_once(attempt: Attempt) -> None:
    """The partitions of a topic are those that were seen when it was first looked at."""
    await look.look(attempt)
    cache = {topic: tuple(found) for topic, found in attempt.partitions.items()}
    cache |= dict(attempt.memory.cache)
    attempt.partitions = {topic: list(found) for topic, found in cache.items()}
    attempt.remember(cache=tuple(sorted(cache.items())))


async def look_then_watch(attempt: Attempt) -> None:
    """The members are read first, and watched when all has been read."""
    await look.look(attempt)
    path = registry.members(attempt.me.group)
    await attempt.requests(GetChildren(path, True, "watch members"))


async def refuse_no_brokers(attempt: Attempt) -> None:
    """Without brokers every attempt fails, and nobody watches for the first of them."""
    try:
        ids = await attempt.requests(GetChildren(registry.BROKER_IDS, False, "read brokers"))
    except NoNode:
        ids = ()
    if ids:
        await look.look(attempt)
    else:
        attempt.stopped, attempt.is_final = "there are no brokers", True


# --- shares ----------------------------------------------------------------------------


async def assign_as_listed(attempt: Attempt) -> None:
    """Partitions are dealt in an order that each member has for itself."""
    await views.assign_shares(attempt)
    names = [name for name, _ in attempt.members]
    turn = names.index(attempt.memory.consumer_id)
    attempt.view = tuple(
        TopicView(one.topic, (*one.partitions[turn:], *one.partitions[:turn]), one.streams)
        for one in attempt.view
    )
    await views.take_share(attempt)


async def assign_to_everybody(attempt: Attempt) -> None:
    """Every member has a share in every topic, whether it wants that topic or not."""
    await views.assign_shares(attempt)
    unit = attempt.me.variant.unit
    streams = tuple(
        sorted(one for name, _ in attempt.members for one in stream_ids(unit, name, 1))
    )
    attempt.view = tuple(TopicView(one.topic, one.partitions, streams) for one in attempt.view)
    await views.take_share(attempt)


# --- claims ----------------------------------------------------------------------------


async def claim_by_the_last(attempt: Attempt) -> None:
    """Try every claim; whether they are mine is what the last of them says."""
    missing = [pair for pair in attempt.wanted if pair[0] not in attempt.held]
    for pair in missing:
        claim = claims.claim_on(attempt, *pair)
        await ensure_parents(attempt.requests, claim)
        attempt.stopped = ""
        await claims.fenced(attempt, [claim], "claim")
        if attempt.memory.guard is None:
            return
    if not attempt.stopped:
        attempt.held = (*attempt.held, *(partition for partition, _ in missing))
        attempt.remember(owned=attempt.held)


async def claim_the_rest(attempt: Attempt) -> None:
    """Claim what is missing, and leave as it is what was believed to be there."""
    attempt.remember(plan=tuple((partition, stream, "") for partition, stream in attempt.wanted))
    await claims.claim_free(attempt)


async def claim_and_forget(attempt: Attempt) -> None:
    """Claim one after the other; if one is another's, forget those before it."""
    held = attempt.held
    for partition, stream in attempt.wanted:
        if partition not in held:
            await claims.fenced(attempt, [claims.claim_on(attempt, partition, stream)], "claim")
            if attempt.stopped:
                attempt.remember(owned=held)
                return
            attempt.held = (*attempt.held, partition)
    attempt.remember(owned=attempt.held)


async def claim_or_fail(attempt: Attempt) -> None:
    """Claim what is missing, unless some of it is claimed; nothing tells when that ends."""
    missing = [pair for pair in attempt.wanted if pair[0] not in attempt.held]
    for partition, _ in missing:
        path = attempt.owner_path(partition)
        if await attempt.requests(Exists(path, False, "await owner")) is not None:
            await tell("conflict", topic=partition.topic, partitions=[str(partition)])
            attempt.stopped = f"{partition} is claimed by another"
            return
    if missing:
        await claims.fenced(
            attempt, [claims.claim_on(attempt, *pair) for pair in missing], "claim"
        )
    if not attempt.stopped:
        attempt.held = (*attempt.held, *(partition for partition, _ in missing))
        attempt.remember(owned=attempt.held)


def given_up(me: Consumer, memory: Memory) -> Memory:
    """Try so many times, and then wait until something else happens."""
    attempt = memory.attempt + 1
    if attempt >= me.settings.rebalance_retries:
        return replace(memory, attempt=0)
    return replace(memory, attempt=attempt, is_dirty=True)


async def clear_away(attempt: Attempt) -> None:
    """A claim by nobody that I have seen in the group is what somebody dead has left."""
    members = tuple(f"{name}-".encode() for name, _ in attempt.members)
    for partition, _ in attempt.wanted:
        if partition not in attempt.held:
            name = await _claimant(attempt, partition)
            if name and not name.startswith(members):
                await claims.delete_claim(attempt, partition)
    await claims.claim_free(attempt)


# --- the rest --------------------------------------------------------------------------


async def resumed(me: Consumer, memory: Memory, requests: Requests) -> Memory:
    """Go on as if nothing could have happened while the connection was down."""
    attempt = Attempt(me, memory, requests)
    attempt.wanted = tuple((partition, stream) for partition, stream, _ in memory.plan)
    attempt.addresses = {
        registry.broker_of(partition): address
        for partition, _, address in memory.plan
        if me.layout == "0.7"
    }
    await fetch_exactly(attempt.fetches(memory.owned))
    return replace(memory, is_connected=True)


def unescaped(data: bytes) -> bytes:
    """A registration as it is written by somebody who forgets to escape in it."""
    return data.replace(b"\\\\", b"\\")


FORMS: dict[tuple[Flaw, Step], Callable[[Attempt], Awaitable[None]]] = {
    ("the last claim decides", "9 claim what is free"): claim_by_the_last,
    ("what a failed attempt claimed is forgotten", "2-3 look"): look_by_memory,
    ("what a failed attempt claimed is forgotten", "9 claim what is free"): claim_and_forget,
    ("partitions are taken as listed", "4-7 assign"): assign_as_listed,
    ("partitions are read once", "2-3 look"): look_once,
    ("no brokers is a failure", "2-3 look"): refuse_no_brokers,
    ("gives up what is claimed", "9 claim what is free"): claim_or_fail,
    ("what bears my name is mine", "2-3 look"): look_by_name,
    ("claims go by the place in a list", "2-3 look"): look_by_place,
    ("claims outlive their session", "2-3 look"): look_by_memory_too,
    ("claims outlive their session", "9 claim what is free"): claim_the_rest,
    ("claims are known by memory", "2-3 look"): look_by_memory,
    ("claims of strangers are cleared away", "9 claim what is free"): clear_away,
    ("watches after it has read", "2-3 look"): look_then_watch,
    ("everybody has a share in every topic", "4-7 assign"): assign_to_everybody,
}
"""What a flaw does in place of a step."""
