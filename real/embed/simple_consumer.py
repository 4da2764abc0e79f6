"""The simple consumer inside an application: one broker, and an offset in every request.

with SimpleConsumer("localhost:6667") as consumer:
    for message in consumer.fetch("clicks", 0, 0):
        print(message.offset, message.payload)
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from threading import Lock
from typing import Any, Literal, NamedTuple, Self, TypeVar

from watchkeeper.model.clients.consumer import simple as clients
from watchkeeper.model.clients_08.simple import SimpleConsumer08, WantedMessages
from watchkeeper.model.log.format.entries import messages_in
from watchkeeper.model.log.format.errors import NO_ERROR, error_of
from watchkeeper.model.log.format.message_08 import Record
from watchkeeper.model.log.format.message_set_07 import MessageAndOffset
from watchkeeper.model.log.format.requests import EARLIEST, LATEST, FetchRequest, FetchResponse
from watchkeeper.real.embed.task_member import Alone

LOGGER = logging.getLogger("watchkeeper.simple")
T = TypeVar("T")
FETCH_BYTES = 300 * 1024
"""`fetch.size` as it is shipped."""


class Wanted(NamedTuple):
    """A partition, an offset, and the most bytes to read from there."""

    topic: str
    partition: int
    offset: int
    max_bytes: int = FETCH_BYTES


class KeyedMessageAndOffset(NamedTuple):
    """A message of 0.8, and the offset to resume at after it."""

    offset: int
    next_offset: int
    payload: bytes | None
    """None in a tombstone."""
    key: bytes | None


Found = MessageAndOffset | KeyedMessageAndOffset


class SimpleConsumer:
    """Requests messages and offsets from one broker.

    A request that fails is sent once more over a new connection; then `CallError` is raised.
    An error code of a broker of 0.7 is raised as a `LogError` by Kafka's name, such as
    `OffsetOutOfRange`; one of 0.8 as `RefusedByBroker`, with the name.
    """

    def __init__(
        self, address: str, *, timeout_s: float = 30.0, protocol: Literal["0.7", "0.8"] = "0.7"
    ) -> None:
        """Describe a consumer; the first request connects to `address`, `host:port`."""
        self.address = address
        timeout_ms = int(timeout_s * 1000)
        self._consumer: clients.SimpleConsumer | SimpleConsumer08 = (
            SimpleConsumer08(address, timeout_ms=timeout_ms)
            if protocol == "0.8"
            else clients.SimpleConsumer(address, timeout_ms=timeout_ms)
        )
        self._home = Alone(f"simple consumer of {address}", LOGGER)
        self._turn = Lock()  # a connection carries one request at a time

    def fetch(
        self, topic: str, partition: int, offset: int, max_bytes: int = FETCH_BYTES
    ) -> list[Found]:
        """Return the messages of a partition from an offset on, at most `max_bytes` of them.

        Those of 0.8 are `KeyedMessageAndOffset`.
        """
        [found] = self.multifetch(Wanted(topic, partition, offset, max_bytes))
        return found

    def multifetch(self, *wanted: Wanted) -> list[list[Found]]:
        """Return the messages of several partitions by one request, in the order of `wanted`."""
        if isinstance(self._consumer, SimpleConsumer08):
            found = self._call(self._consumer.fetch([WantedMessages(*each) for each in wanted]))
            return [[_of_08(each) for each in some] for some in found]
        requests = [FetchRequest(*parts) for parts in wanted]
        if len(requests) == 1:
            return [_messages(wanted[0], self._call(self._consumer.fetch(requests[0])))]
        responses = self._call(self._consumer.multifetch(requests))
        return [
            _messages(requested, each) for requested, each in zip(wanted, responses, strict=True)
        ]

    def offsets_before(
        self, topic: str, partition: int, time_ms: int, at_most: int = 1
    ) -> tuple[int, ...]:
        """Return the first offsets of segments older than `time_ms`, latest first.

        `time_ms` is in milliseconds since the epoch; at most `at_most` offsets are returned.
        """
        return self._call(self._consumer.offsets_before(topic, partition, time_ms, at_most))

    def earliest(self, topic: str, partition: int) -> int:
        """Return the first offset of the log of a partition."""
        [offset] = self.offsets_before(topic, partition, EARLIEST)
        return offset

    def latest(self, topic: str, partition: int) -> int:
        """Return the offset after the last readable message of a partition."""
        [offset] = self.offsets_before(topic, partition, LATEST)
        return offset

    def leaders(self, topic: str) -> dict[int, str]:
        """Return the partitions of a topic of 0.8, with the addresses of their leaders.

        The address is empty while there is no leader. The request creates a topic that is not
        there, if the broker does that.
        """
        if not isinstance(self._consumer, SimpleConsumer08):
            raise ValueError("a broker of 0.7 knows of no leaders; expected protocol='0.8'")
        return self._call(self._consumer.leaders(topic))

    def close(self) -> None:
        """Close the connection."""
        self._home.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()

    def _call(self, body: Coroutine[Any, Any, T]) -> T:
        with self._turn:
            return self._home.callers.call(body, self)


def _of_08(record: Record) -> KeyedMessageAndOffset:
    return KeyedMessageAndOffset(record.offset, record.offset + 1, record.value, record.key)


def _messages(wanted: Wanted, response: FetchResponse) -> list[Found]:
    if response.error_code != NO_ERROR:
        where = f"{wanted.topic}-{wanted.partition}, offset {wanted.offset}"
        raise error_of(response.error_code)(where)
    return list(messages_in(response.messages, wanted.offset))
