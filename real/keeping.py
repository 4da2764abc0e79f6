"""Reads live partitions into a store of results, a thread for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from model.asks import Partition
from model.clients.keeping import keep_up
from model.clients.results import Keeping, Make, PlaceOf, ResultStore, StoreResult
from model.clients.simple import SimpleConsumer
from real.threads import Threads

FETCH_BYTES = 300 * 1024
"""`fetch.size` as it is shipped."""


def keep_results(
    address: str,
    partitions: Sequence[Partition],
    *,
    group: str,
    store: ResultStore,
    make: Make,
    fetch_bytes: int = FETCH_BYTES,
) -> int:
    """Store what `make` gives for each message that a broker of 0.7 has, from where the group
    stands to the end that the partitions have now; how many messages that were.

    Results and places go into the store together, so that this may be killed at any moment
    and called again. Raises what is wrong with a message, a place or the broker.
    """
    return asyncio.run(_keep(address, partitions, Keeping(group, make), store, fetch_bytes))


async def _keep(
    address: str,
    partitions: Sequence[Partition],
    keeping: Keeping,
    store: ResultStore,
    fetch_bytes: int,
) -> int:
    threads = Threads(remind=_nobody, failed=_nobody)
    threads.answer_too(PlaceOf, store.place_of)
    threads.answer_too(StoreResult, store.store)
    bodies = [
        keep_up(SimpleConsumer(address), keeping, one, fetch_bytes=fetch_bytes)
        for one in partitions
    ]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(threads.run(body, body)) for body in bodies]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return sum(task.result() for task in tasks)


def _nobody(*what: object) -> None:
    """No note can come: these threads have no session; and none is started by another."""
    raise AssertionError(what)
