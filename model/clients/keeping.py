"""Reads one partition and keeps what is made of its messages together with the place.

For an application that is no member of a group: it knows its broker and its partitions, and
asks nobody but its own results how far it has come.
"""

from __future__ import annotations

from model.asks import Partition
from model.clients.chunks import Chunk, Handed
from model.clients.results import Keeping, PlaceOf
from model.clients.simple import SimpleConsumer
from model.log.errors import NO_ERROR, error_of
from model.log.requests import EARLIEST, FetchRequest


async def keep_up(
    consumer: SimpleConsumer, keeping: Keeping, partition: Partition, *, fetch_bytes: int
) -> int:
    """Read to the end that a partition has now; how many messages were kept.

    What is fetched at once is stored in one step. Raises what is wrong with a message, or
    what the broker says of the place.
    """
    kept = 0
    while handed := await _fetched(consumer, keeping.group, partition, fetch_bytes):
        if await keeping.store(handed):
            kept += sum(one.size for one in handed)
    await consumer.close()
    return kept


async def _fetched(
    consumer: SimpleConsumer, group: str, partition: Partition, fetch_bytes: int
) -> list[Handed]:
    """The next messages, from where the group stands; none at the end."""
    topic, index = partition.topic, int(partition.name.rpartition("-")[2])
    at = await PlaceOf(group, partition)
    if at is None:
        (at,) = await consumer.offsets_before(topic, index, EARLIEST, 1)
    response = await consumer.fetch(FetchRequest(topic, index, at, fetch_bytes))
    if response.error_code != NO_ERROR:
        await consumer.close()
        raise error_of(response.error_code)(f"{partition} at {at}")
    chunk = Chunk(partition, response.messages, at)
    handed = []
    while (one := chunk.next(1)) is not None:
        handed.append(one)
    return handed
