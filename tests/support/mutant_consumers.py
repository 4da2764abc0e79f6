"""Consumers that break one rule each: the counter-examples of the properties.

Each is a turn as a user would write one: it registers, and then does what it must not.
Its memory is how far it has come.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from model import registry
from model.asks import Fetch, Partition, fetch_exactly, new_session, next_note, sleep, tell
from model.errors import NodeExists
from model.member import Consumer
from model.operations import ZooKeeper
from model.program import Ended, Program

MINE = Partition("clicks", "0-0")
BOTH = (MINE, Partition("clicks", "0-1"))

Act = Callable[[ZooKeeper, Consumer], Awaitable[None]]


def consumer_that(act: Act, *, only: str = "") -> Program:
    """A consumer that registers and then acts; `only` that process acts, the others rest."""

    async def turn(zk: ZooKeeper, me: Consumer, memory: int) -> int | Ended:
        if memory == 0:
            await new_session()
            await _register(zk, me)
            return 1
        if memory == 1 and only in ("", me.node):
            await act(zk, me)
            return 2
        await next_note()
        return memory

    return Program(turn, None, 0)


async def _register(zk: ZooKeeper, me: Consumer) -> None:
    for path in ("/consumers", "/consumers/group", "/consumers/group/ids"):
        await make(zk, path)
    await zk.create(me_path(me), b'{ "clicks": 1 }', ephemeral=True, purpose="register")


def me_path(me: Consumer) -> str:
    """Where a consumer registers."""
    return registry.member(me.group, f"{me.group}_{me.configured_id}")


async def make(zk: ZooKeeper, path: str) -> None:
    """Make a znode unless it is there."""
    try:
        await zk.create(path)
    except NodeExists:
        return


async def claim(zk: ZooKeeper, me: Consumer, partition: Partition) -> None:
    """Claim a partition in good order, or find it claimed."""
    owners = "/consumers/group/owners"
    for path in (owners, f"{owners}/clicks"):
        await make(zk, path)
    try:
        await zk.create(
            registry.owner(me.group, partition),
            me.configured_id.encode(),
            ephemeral=True,
            purpose="claim",
        )
    except NodeExists:
        return


async def fetch(*partitions: Partition) -> None:
    """Fetch these."""
    await fetch_exactly(Fetch(one, 0, 0, "main-b0.example:9092") for one in partitions)


# --- what each does --------------------------------------------------------------------


async def fetches_with_the_others(zk: ZooKeeper, me: Consumer) -> None:
    """Everybody claims, and fetches whether or not the claim was granted."""
    await claim(zk, me, MINE)
    await fetch(MINE)


async def fetches_unclaimed(zk: ZooKeeper, me: Consumer) -> None:
    """It never claims."""
    await fetch(*BOTH)


async def removes_what_is_not_its_own(zk: ZooKeeper, me: Consumer) -> None:
    """It deletes the registration of another."""
    await sleep(1000)
    await zk.delete(registry.member(me.group, "group_c0"))


async def commits_backwards(zk: ZooKeeper, me: Consumer) -> None:
    """It commits 9 and then 5."""
    path = registry.offset(me.group, MINE)
    for parent in ("/consumers/group/offsets", "/consumers/group/offsets/clicks"):
        await make(zk, parent)
    await zk.create(path, b"9", purpose="commit")
    await zk.set(path, b"5", purpose="commit")


async def fetches_one_of_two(zk: ZooKeeper, me: Consumer) -> None:
    """It leaves a partition to nobody."""
    await claim(zk, me, MINE)
    await fetch(MINE)


async def decides_by_itself(zk: ZooKeeper, me: Consumer) -> None:
    """Its plan is not that of the others."""
    await tell("assigned", plans={"clicks": ("the same view", me.node)})


async def takes_everything(zk: ZooKeeper, me: Consumer) -> None:
    """One member owns both partitions, the other none."""
    for partition in BOTH:
        await claim(zk, me, partition)
    await fetch(*BOTH)


async def never_rests(zk: ZooKeeper, me: Consumer) -> None:
    """It asks for ever."""
    while True:
        await sleep(200)
        await zk.get_children("/brokers/ids", purpose="read brokers")


async def rebalances_without_end(zk: ZooKeeper, me: Consumer) -> None:
    """It begins one rebalance after the other."""
    for attempt in range(1, 200):
        await tell("rebalance begins", attempt=attempt)
        await sleep(10)
