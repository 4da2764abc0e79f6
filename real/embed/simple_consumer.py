"""The simple consumer inside an application: one broker, and an offset in every request.

with SimpleConsumer("localhost:6667") as consumer:
    for message in consumer.fetch("clicks", 0, 0):
        print(message.offset, message.payload)
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from threading import Lock
from typing import Any, NamedTuple, Self, TypeVar

from watchkeeper.model.clients.consumer import simple as clients
from watchkeeper.model.log.format.entries import messages_in
from watchkeeper.model.log.format.errors import NO_ERROR, error_of
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


class SimpleConsumer:
    """Requests messages and offsets from one broker.

    A request that fails is sent once more over a new connection; then `CallError` is raised.
    An error code of the broker is raised as a `LogError` by Kafka's name, such as
    `OffsetOutOfRange`.
    """

    def __init__(self, address: str, *, timeout_s: float = 30.0) -> None:
        """Describe a consumer; the first request connects to `address`, `host:port`."""
        self.address = address
        self._consumer = clients.SimpleConsumer(address, timeout_ms=int(timeout_s * 1000))
        self._home = Alone(f"simple consumer of {address}", LOGGER)
        self._turn = Lock()  # a connection carries one request at a time

    def fetch(
        self, topic: str, partition: int, offset: int, max_bytes: int = FETCH_BYTES
    ) -> list[MessageAndOffset]:
        """Return the messages of a partition from an offset on, at most `max_bytes` of them."""
        wanted = Wanted(topic, partition, offset, max_bytes)
        return _messages(wanted, self._call(self._consumer.fetch(FetchRequest(*wanted))))

    def multifetch(self, *wanted: Wanted) -> list[list[MessageAndOffset]]:
        """Return the messages of several partitions by one request, in the order of `wanted`."""
        responses = self._call(
            self._consumer.multifetch([FetchRequest(*parts) for parts in wanted])
        )
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


def _messages(wanted: Wanted, response: FetchResponse) -> list[MessageAndOffset]:
    if response.error_code != NO_ERROR:
        where = f"{wanted.topic}-{wanted.partition}, offset {wanted.offset}"
        raise error_of(response.error_code)(where)
    return list(messages_in(response.messages, wanted.offset))
