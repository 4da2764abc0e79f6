"""Reads live partitions into a store of results, a task for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.result_store import (
    Make,
    ReadPosition,
    ResultStore,
    ResultWriter,
    StoreResult,
    store_to_end,
)
from watchkeeper.model.clients.consumer.simple import SimpleConsumer
from watchkeeper.real.process.tasks import Tasks

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
    """Store the results of all messages of some partitions; return the number of messages.

    Reads from the stored position of the group to the present end of each partition, from a
    broker of 0.7, and stores the results of `make`. Results and positions are stored together,
    so that the process may be killed at any moment and the call repeated. Raises `LogError`
    for a message or an offset, and `CallError` for the broker.
    """
    return asyncio.run(_keep(address, partitions, ResultWriter(group, make), store, fetch_bytes))


async def _keep(
    address: str,
    partitions: Sequence[Partition],
    keeping: ResultWriter,
    store: ResultStore,
    fetch_bytes: int,
) -> int:
    threads = Tasks(remind=_ignore, failed=_ignore)
    threads.answer_immediately(ReadPosition, store.position_of)
    threads.answer_immediately(StoreResult, store.store)
    bodies = [
        store_to_end(SimpleConsumer(address), keeping, partition, fetch_bytes=fetch_bytes)
        for partition in partitions
    ]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(threads.run(body, body)) for body in bodies]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return sum(task.result() for task in tasks)


def _ignore(*what: object) -> None:
    """Refuse notifications and failures: these tasks have no session, and none starts another."""
    raise AssertionError(what)
