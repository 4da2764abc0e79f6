"""Consumers that break one rule each: the counter-examples of the properties.

Each is a turn as a user would write one: it registers, and then does what it must not.
Its memory is how far it has come.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from watchkeeper.model.actor.effects import (
    Fetch,
    Partition,
    emit,
    fetch_exactly,
    new_session,
    next_event,
    sleep,
)
from watchkeeper.model.actor.errors import NodeExists
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.group.consumer import SHIPPED
from watchkeeper.model.group.state import Consumer, ConsumerState
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind

MINE = Partition("clicks", "0-0")
BOTH = (MINE, Partition("clicks", "0-1"))

Act = Callable[[ZooKeeper, Consumer], Awaitable[None]]


def scenario(*, settle: str = "14s", **fields: Any) -> dict[str, Any]:
    """One broker, two partitions, two consumers, nothing else."""
    return {
        "name": "broken",
        "about": "a rule is broken",
        "clusters": {
            "main": {
                "layout": "0.7",
                "brokers": 1,
                "topics": {"clicks": {"partitions_per_broker": 2}},
            }
        },
        "groups": {
            "group": {
                "consumers": 2,
                "streams": {"clicks": 1},
                "config": {"zookeeper.session.timeout.ms": 2000, "auto.commit.interval.ms": 1000},
            }
        },
        "timeline": [{"at": "0s", "produce": "clicks", "rate": "10/s"}],
        "settle": settle,
        **fields,
    }


def consumer_that(act: Act, *, only: str = "") -> Program:
    """A consumer that registers and then acts; `only` that process acts, the others rest."""

    async def turn(zk: ZooKeeper, me: Consumer, state: int) -> int | Ended:
        if state == 0:
            await new_session()
            await _register(zk, me)
            return 1
        if state == 1 and only in ("", me.node):
            await act(zk, me)
            return 2
        await next_event()
        return state

    return Program(turn, None, 0)


async def _register(zk: ZooKeeper, me: Consumer) -> None:
    for path in ("/consumers", "/consumers/group", "/consumers/group/ids"):
        await make(zk, path)
    await zk.create(me_path(me), b'{ "clicks": 1 }', ephemeral=True, purpose="register")


def consumer_that_stays() -> Program:
    """The shipped consumer, in a process that goes on after the member has left."""
    shipped = SHIPPED.turn

    async def turn(zk: ZooKeeper, me: Consumer, state: ConsumerState | None) -> Any:
        if state is None:
            while True:
                await next_event()
        after = await shipped(zk, me, state)
        return None if isinstance(after, Ended) else after

    return Program(turn, None, ConsumerState())


def me_path(me: Consumer) -> str:
    """Where a consumer registers."""
    return paths.member(me.group, f"{me.group}_{me.configured_id}")


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
            paths.owner(me.group, partition),
            me.configured_id.encode(),
            ephemeral=True,
            purpose="claim",
        )
    except NodeExists:
        return


async def fetch(*partitions: Partition) -> None:
    """Fetch these."""
    await fetch_exactly(
        Fetch(partition, 0, 0, "main-b0.example:9092") for partition in partitions
    )


# --- what each does --------------------------------------------------------------------


async def fetches_with_the_others(zk: ZooKeeper, me: Consumer) -> None:
    """Every member claims, and fetches whether or not the claim was granted."""
    await claim(zk, me, MINE)
    await fetch(MINE)


async def fetches_unclaimed(zk: ZooKeeper, me: Consumer) -> None:
    """It never claims."""
    await fetch(*BOTH)


async def removes_what_is_not_its_own(zk: ZooKeeper, me: Consumer) -> None:
    """It deletes the registration of another."""
    await sleep(1000)
    await zk.delete(paths.member(me.group, "group_c0"))


async def commits_backwards(zk: ZooKeeper, me: Consumer) -> None:
    """It commits 9 and then 5."""
    path = paths.offset(me.group, MINE)
    for parent in ("/consumers/group/offsets", "/consumers/group/offsets/clicks"):
        await make(zk, parent)
    await zk.create(path, b"9", purpose="commit")
    await zk.set(path, b"5", purpose="commit")


async def fetches_one_of_two(zk: ZooKeeper, me: Consumer) -> None:
    """It leaves a partition without an owner."""
    await claim(zk, me, MINE)
    await fetch(MINE)


async def decides_by_itself(zk: ZooKeeper, me: Consumer) -> None:
    """Its view is not that of the others."""
    await emit(EventKind.ASSIGNED, plans={"clicks": ("the same view", me.node)})


async def shares_with_all(zk: ZooKeeper, me: Consumer) -> None:
    """Its view is that of the others, but it takes a partition that another takes, too."""
    shares = {"clicks": [consumer.name for consumer in BOTH]}
    await emit(EventKind.ASSIGNED, plans={"clicks": ("one view", "one order")}, shares=shares)


async def does_nothing(zk: ZooKeeper, me: Consumer) -> None:
    """It registers, and no more."""


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
        await emit(EventKind.REBALANCE_STARTED, attempt=attempt)
        await sleep(10)
