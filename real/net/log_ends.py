"""Requests the ends of logs from brokers, in the protocol of Kafka 0.7 or of 0.8.

The name of a partition says which: `2-0` is a partition of 0.7 at broker 2, `0` one of 0.8. At
the address of a broker may be anything, so a response has the size that it must have at most,
and nothing is waited for longer than a few seconds.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedRWPair
from itertools import groupby

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.format import requests, requests_08
from watchkeeper.model.log.format.errors import NO_ERROR, LogError, error_of
from watchkeeper.model.log.format.frames import HEAD_BYTES, frame_size, size_on_wire
from watchkeeper.model.log.format.requests import LATEST
from watchkeeper.model.log.format.requests_08 import (
    PartitionError,
    PartitionOffsets,
    PartitionTime,
    TopicOffsets,
    TopicTimes,
    error_name,
)

TIMEOUT_S = 2.0
"""Of the connection, and of each response."""
AT_ONCE = 100
"""Requests of 0.7 that are sent before their responses are read."""
CLIENT = "watchkeeper"

Ends = dict[Partition, int | str]
"""Partition -> the end of its log, or why it is unknown."""


def log_ends(
    partitions: Mapping[str, Iterable[Partition]],
) -> tuple[dict[Partition, int], list[str]]:
    """Request the ends of logs from brokers (address -> partitions).

    Returns the ends, and a sentence for each broker or partition that has none.
    """
    ends: dict[Partition, int] = {}
    reasons = []
    for address, requested in sorted(partitions.items()):
        try:
            with connect(address) as broker:
                found = ends_over(broker, list(requested))
        except (OSError, ValueError, LogError) as error:
            reasons.append(
                f"the lag at {address} is unknown: no valid response to a request of offsets "
                f"({error})"
            )
            continue
        ends |= {one: end for one, end in found.items() if isinstance(end, int)}
        reasons += [
            f"the lag of {one} is unknown: the broker at {address} answers {end!r}"
            for one, end in found.items()
            if isinstance(end, str)
        ]
    return ends, reasons


def connect(address: str) -> BufferedRWPair:
    """Connect to a broker (`host:port`); raise OSError or ValueError."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_S) as connection:
        return connection.makefile("rwb")


def ends_over(broker: BufferedRWPair, partitions: list[Partition]) -> Ends:
    """Request the ends of logs over a connection; raise OSError, ValueError or LogError."""
    of_08 = [partition for partition in partitions if "-" not in partition.name]
    ends = _ends_07(broker, [partition for partition in partitions if "-" in partition.name])
    return ends | _ends_08(broker, of_08) if of_08 else ends


def _send(broker: BufferedRWPair, frames: bytes) -> None:
    broker.write(frames)
    broker.flush()


def _frame(broker: BufferedRWPair, limit_bytes: int) -> bytes:
    """Read a frame without its size; raise ConnectionError if it does not come whole."""
    size_bytes = frame_size(_whole(broker, HEAD_BYTES), limit_bytes=limit_bytes)
    return _whole(broker, size_bytes)


def _whole(broker: BufferedRWPair, size_bytes: int) -> bytes:
    data = broker.read(size_bytes)
    if len(data) < size_bytes:
        raise ConnectionResetError("the broker closes the connection")
    return data


# --- 0.7: a request for each partition -------------------------------------------------


def _ends_07(broker: BufferedRWPair, partitions: list[Partition]) -> Ends:
    ends: Ends = {}
    for at in range(0, len(partitions), AT_ONCE):
        some = partitions[at : at + AT_ONCE]
        sent = [_request_07(partition) for partition in some]
        _send(broker, b"".join(map(requests.encode_request, sent)))
        for partition, request in zip(some, sent, strict=True):
            ends[partition] = _end_07(broker, request)
    return ends


def _request_07(partition: Partition) -> requests.OffsetsRequest:
    _, _, number = partition.name.rpartition("-")
    return requests.OffsetsRequest(partition.topic, int(number), LATEST, 1)


def _end_07(broker: BufferedRWPair, request: requests.OffsetsRequest) -> int | str:
    limit_bytes = size_on_wire(requests.OffsetsResponse((0,)))
    response = requests.decode_response(request, _frame(broker, limit_bytes))
    assert isinstance(response, requests.OffsetsResponse)
    if response.error_code != NO_ERROR:
        return error_of(response.error_code).__name__
    return response.offsets[0] if response.offsets else "no offset"


# --- 0.8: one request for all partitions -----------------------------------------------


def _ends_08(broker: BufferedRWPair, partitions: list[Partition]) -> Ends:
    wanted = {partition: int(partition.name) for partition in partitions}
    topics = tuple(
        TopicTimes(topic, tuple(PartitionTime(wanted[one]) for one in some))
        for topic, some in groupby(sorted(partitions), key=lambda one: one.topic)
    )
    _send(broker, requests_08.encode_request(requests_08.OffsetsRequest(topics), 1, CLIENT))
    response = requests_08.decode_response(_frame(broker, _largest_08(topics)))
    found = dict(_found_08(response))
    return {
        partition: found.get((partition.topic, number), "nothing of this partition")
        for partition, number in wanted.items()
    }


def _largest_08(topics: Iterable[TopicTimes]) -> int:
    """Return the size of the response in which every partition has an offset."""
    of_topics = tuple(
        TopicOffsets(
            one.topic,
            tuple(PartitionOffsets(each.partition, offsets=(0,)) for each in one.partitions),
        )
        for one in topics
    )
    return size_on_wire(requests_08.OffsetsResponse(0, of_topics))


def _found_08(
    response: requests_08.OffsetsResponse,
) -> Iterator[tuple[tuple[str, int], int | str]]:
    """Yield topic and partition, and the end of the log or the name of an error."""
    for topic in response.topics:
        for one in topic.partitions:
            place = (topic.topic, one.partition)
            if one.error_code != PartitionError.NONE:
                yield place, error_name(one.error_code)
            else:
                yield place, one.offsets[0] if one.offsets else "no offset"
