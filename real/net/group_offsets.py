"""Requests the offsets that a group has committed to its coordinator, in the protocol of 0.8."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Sequence
from io import BufferedRWPair
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.frames import HEAD_BYTES, WireStruct, frame_size
from watchkeeper.model.log.format.requests_08 import PartitionError, error_name
from watchkeeper.model.wire_08.by_topic import flat, grouped
from watchkeeper.model.wire_08.group_offsets import (
    NO_COMMITTED_OFFSET,
    CommittedRequestV1,
    ConsumerMetadataRequest,
    PartitionNumber,
)
from watchkeeper.model.wire_08.table import decode_response, encode_request

TIMEOUT_S = 2.0
"""Of a connection, and of each response."""
WITHIN_S = 15.0
"""How long a coordinator may take to be elected and to load."""
PAUSE_S = 0.2
CLIENT = "watchkeeper"
NOT_YET = frozenset(
    {
        PartitionError.OFFSETS_LOAD_IN_PROGRESS,
        PartitionError.CONSUMER_COORDINATOR_NOT_AVAILABLE,
        PartitionError.NOT_COORDINATOR_FOR_CONSUMER,
    }
)
NONE_COMMITTED = frozenset({PartitionError.NONE, PartitionError.UNKNOWN_TOPIC_OR_PARTITION})


class OffsetsUnknown(Exception):
    """The offsets of a group could not be read from Kafka."""


def committed_in_kafka(
    brokers: Sequence[str],
    group: str,
    partitions: Iterable[Partition],
    within_s: float = WITHIN_S,
) -> dict[Partition, int]:
    """Return the committed offsets of a group; partitions without one are left out.

    `brokers` are addresses (`host:port`). Raises `OffsetsUnknown`, in a sentence.
    """
    wanted = sorted(partitions)
    deadline_s = time.monotonic() + within_s
    while True:
        found, why = _attempt(brokers, group, wanted)
        if found is not None:
            return found
        if time.monotonic() >= deadline_s:
            raise OffsetsUnknown(f"the offsets of {group} in Kafka are unknown: {why}")
        time.sleep(PAUSE_S)


def _attempt(
    brokers: Sequence[str], group: str, wanted: Sequence[Partition]
) -> tuple[dict[Partition, int] | None, str]:
    """Return the offsets, or why they are not known yet."""
    why = "no broker is registered"
    for address in brokers:
        try:
            coordinator = _ask(address, ConsumerMetadataRequest(group))
            if coordinator.error_code:
                return None, f"{address} answers {error_name(coordinator.error_code)}"
            where = f"{coordinator.host}:{coordinator.port}"
            return _read(where, group, wanted)
        except (OSError, ValueError, LogError) as error:
            why = f"no valid response from {address} ({error})"
    return None, why


def _read(
    address: str, group: str, wanted: Sequence[Partition]
) -> tuple[dict[Partition, int] | None, str]:
    topics = grouped((each.topic, PartitionNumber(int(each.name))) for each in wanted)
    response = _ask(address, CommittedRequestV1(group, topics))
    found: dict[Partition, int] = {}
    for topic, one in flat(response.topics):
        if one.error_code in NOT_YET:
            return None, f"{address} answers {error_name(one.error_code)}"
        partition = Partition(topic, str(one.partition))
        if one.error_code not in NONE_COMMITTED:
            raise OffsetsUnknown(
                f"the offset of {group} in {partition} is unknown: {address} answers "
                f"{error_name(one.error_code)}"
            )
        if one.offset != NO_COMMITTED_OFFSET:
            found[partition] = one.offset
    return found, ""


def _ask(address: str, request: WireStruct) -> Any:
    """Send one request; raise OSError, ValueError or LogError."""
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_S) as connection,
        connection.makefile("rwb") as broker,
    ):
        broker.write(encode_request(request, 1, CLIENT))
        broker.flush()
        frame = _whole(broker, frame_size(_whole(broker, HEAD_BYTES)))
        return decode_response(request, frame, 1)


def _whole(broker: BufferedRWPair, size_bytes: int) -> bytes:
    data = broker.read(size_bytes)
    if len(data) < size_bytes:
        raise ConnectionResetError("the broker closes the connection")
    return data
