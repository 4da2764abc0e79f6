"""Fetch, key 1, version 0: read messages, and wait for some if there are none.

A broker holds the response back until it has `min_bytes` in all, or `max_wait_ms` are over. The
first entry of a fetched set may begin before the offset that was requested, since messages that
are compressed together have one entry; the last one may be partial.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Protocol

from watchkeeper.model.log.format.fields import INT32, INT64, MESSAGE_SET, STRING
from watchkeeper.model.log.format.frames import Field, WireStruct
from watchkeeper.model.log.format.requests import ERROR, Response
from watchkeeper.model.log.format.requests_08 import CONSUMER, PARTITION, PartitionError
from watchkeeper.model.wire_08.by_topic import CORRELATION_ID, REPLICA_ID, OfTopic, topics_field

UNKNOWN_OFFSET = -1
"""The high watermark in an answer with an error."""
RESPONSE_HEAD = Struct(">iii")
"""The size of a response, its correlation id, and the number of its topics."""
COUNT = Struct(">i")
PART_HEAD = Struct(">ihqi")
"""Partition, error code, high watermark, and the size of the messages."""


class PartitionFetch(WireStruct, frozen=True):
    """Read up to `max_bytes` of a partition at an offset."""

    partition: int
    offset: int
    max_bytes: int
    layout = (
        PARTITION,
        Field("offset", INT64, "the offset of the first message to read"),
        Field("max_bytes", INT32, "the largest size of the messages; the last may be partial"),
    )


class FetchRequest(WireStruct, frozen=True):
    """Read from partitions."""

    max_wait_ms: int
    min_bytes: int
    topics: tuple[OfTopic[PartitionFetch], ...]
    replica_id: int = CONSUMER
    layout = (
        REPLICA_ID,
        Field("max_wait_ms", INT32, "how long the response may wait for messages"),
        Field("min_bytes", INT32, "with so many bytes of messages, it does not wait"),
        topics_field(PartitionFetch),
    )


class PartitionFetched(WireStruct, frozen=True):
    """The messages of a partition, and how far it can be read; or an error."""

    partition: int
    error_code: int = PartitionError.NONE
    high_watermark: int = UNKNOWN_OFFSET
    messages: bytes = b""
    layout = (
        PARTITION,
        ERROR,
        Field("high_watermark", INT64, "the offset up to which consumers can read"),
        Field("messages", MESSAGE_SET, "the messages read"),
    )


class FetchResponse(Response, frozen=True):
    """What was read of each partition."""

    correlation_id: int
    topics: tuple[OfTopic[PartitionFetched], ...] = ()
    layout = (CORRELATION_ID, topics_field(PartitionFetched))


class SizedPart(Protocol):
    """A part of a response whose messages are elsewhere, such as in a file."""

    @property
    def partition(self) -> int:
        """The number of the partition in its topic."""

    @property
    def error_code(self) -> int:
        """0, or the code of an error."""

    @property
    def high_watermark(self) -> int:
        """The offset up to which consumers can read."""

    @property
    def size_bytes(self) -> int:
        """The size of the messages."""


def heads(correlation_id: int, fetched: Iterable[OfTopic[SizedPart]]) -> Iterator[bytes]:
    """Yield the bytes that come before the messages of each part of a response, in order.

    A response without parts is one piece of bytes. The messages of a part follow its bytes.
    """
    of_topics = tuple(fetched)
    size_bytes = RESPONSE_HEAD.size - COUNT.size
    for topic, parts in of_topics:
        size_bytes += STRING.size_of(topic) + COUNT.size + PART_HEAD.size * len(parts)
        size_bytes += sum(part.size_bytes for part in parts)
    before = RESPONSE_HEAD.pack(size_bytes, correlation_id, len(of_topics))
    for topic, parts in of_topics:
        before += b"".join(STRING.parts(topic)) + COUNT.pack(len(parts))
        for part in parts:
            yield before + PART_HEAD.pack(
                part.partition, part.error_code, part.high_watermark, part.size_bytes
            )
            before = b""
    if before:
        yield before
