"""The simple consumer of 0.8: a client of one broker; each request names its offset.

Its only state is the address. A request that fails is retried once, over a new connection. Only
the leader of a partition answers for it; `leaders` says which broker that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from watchkeeper.model.actor.rpc import Call, CallError, HangUp
from watchkeeper.model.clients_08.errors import RefusedByBroker
from watchkeeper.model.log.format.frames import WireStruct
from watchkeeper.model.log.format.message_08 import Record, records
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    PartitionError,
    PartitionTime,
    TopicTimes,
)
from watchkeeper.model.wire_08.by_topic import grouped
from watchkeeper.model.wire_08.client_request import ClientRequest
from watchkeeper.model.wire_08.fetch import FetchRequest, PartitionFetch
from watchkeeper.model.wire_08.metadata import MetadataRequest, leaders_in

CLIENT = "watchkeeper"


class WantedMessages(NamedTuple):
    """A partition, an offset, and the most bytes to read from there."""

    topic: str
    partition: int
    offset: int
    max_bytes: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}, offset {self.offset}"


class SimpleConsumer08:
    """Fetches messages, offsets and metadata from one broker."""

    def __init__(self, address: str, *, timeout_ms: int = 30_000) -> None:
        self.address = address
        self.timeout_ms = timeout_ms

    async def fetch(
        self, wanted: Sequence[WantedMessages], *, max_wait_ms: int = 0, min_bytes: int = 1
    ) -> list[list[Record]]:
        """Fetch from partitions; return the messages of each, from its offset on.

        The broker waits up to `max_wait_ms` for `min_bytes` of messages. Raises `RefusedByBroker`
        for an error of a partition, and a `LogError` for damaged messages.
        """
        ordered = sorted(wanted, key=lambda one: one.topic)
        parts = [
            (one.topic, PartitionFetch(one.partition, one.offset, one.max_bytes))
            for one in ordered
        ]
        response = await self._call(FetchRequest(max_wait_ms, min_bytes, grouped(parts)))
        found = {(topic, one.partition): one for topic, some in response.topics for one in some}
        messages = []
        for one in wanted:
            part = found.get((one.topic, one.partition))
            code = PartitionError.UNKNOWN if part is None else part.error_code
            if part is None or code != PartitionError.NONE:
                raise RefusedByBroker(str(one), code)
            entries = records(part.messages) if part.messages else ()
            messages.append([each for each in entries if each.offset >= one.offset])
        return messages

    async def offsets_before(
        self, topic: str, partition: int, time_ms: int, max_offsets: int
    ) -> tuple[int, ...]:
        """Offsets at which segments begin that were written before a moment, latest first."""
        times = (PartitionTime(partition, time_ms, max_offsets),)
        response = await self._call(OffsetsRequest((TopicTimes(topic, times),)))
        [part] = response.topics[0].partitions
        if part.error_code != PartitionError.NONE:
            raise RefusedByBroker(f"{topic}-{partition} at {self.address}", part.error_code)
        offsets: tuple[int, ...] = part.offsets
        return offsets

    async def leaders(self, topic: str) -> dict[int, str]:
        """The partitions of a topic with the addresses of their leaders; empty without one.

        A topic that is not there is created, if the broker does that.
        """
        found = await self._call(MetadataRequest((topic,)))
        [described] = found.topics
        if described.error_code and not described.partitions:
            raise RefusedByBroker(f"topic {topic} at {self.address}", described.error_code)
        return leaders_in(found, described)

    async def close(self) -> None:
        """Close the connection."""
        await HangUp(self.address)

    async def _call(self, request: WireStruct) -> Any:
        call = Call(self.address, ClientRequest(request, CLIENT), self.timeout_ms)
        try:
            return await call
        except CallError:
            await HangUp(self.address)
            return await call
