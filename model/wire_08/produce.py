"""Produce, key 0, version 0: append messages, and learn their offsets.

With `acks` 0 there is no response: a broker that cannot append closes the connection instead.
"""

from __future__ import annotations

from watchkeeper.model.log.format.fields import INT16, INT32, INT64, MESSAGE_SET
from watchkeeper.model.log.format.frames import Field, WireStruct
from watchkeeper.model.log.format.requests import ERROR, Response
from watchkeeper.model.log.format.requests_08 import PARTITION, PartitionError
from watchkeeper.model.wire_08.by_topic import CORRELATION_ID, OfTopic, topics_field

NO_RESPONSE, ALL_IN_SYNC = 0, -1
"""In place of a number of replicas: send no response; wait for every replica in sync."""
NO_OFFSET = -1
"""The offset of messages that were not appended."""


class PartitionMessages(WireStruct, frozen=True):
    """A message set for a partition; the offsets in it are the producer's and have no meaning."""

    partition: int
    messages: bytes
    layout = (PARTITION, Field("messages", MESSAGE_SET, "the messages to append"))


class ProduceRequest(WireStruct, frozen=True):
    """Append messages to partitions."""

    acks: int
    timeout_ms: int
    topics: tuple[OfTopic[PartitionMessages], ...]
    layout = (
        Field(
            "acks",
            INT16,
            "the replicas that must have the messages before the response; 0: no response; -1: "
            "all that are in sync",
        ),
        Field("timeout_ms", INT32, "how long the response may wait for replicas"),
        topics_field(PartitionMessages),
    )


class PartitionAppended(WireStruct, frozen=True):
    """The offset of the first message that was appended to a partition, or an error."""

    partition: int
    error_code: int = PartitionError.NONE
    offset: int = NO_OFFSET
    layout = (
        PARTITION,
        ERROR,
        Field("offset", INT64, "of the first message; -1: nothing was appended"),
    )


class ProduceResponse(Response, frozen=True):
    """What was appended to each partition."""

    correlation_id: int
    topics: tuple[OfTopic[PartitionAppended], ...] = ()
    layout = (CORRELATION_ID, topics_field(PartitionAppended))
