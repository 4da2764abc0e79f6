"""The simple consumer inside an application: one broker, and every request says where to read.

with SimpleConsumer("localhost:6667") as consumer:
    for message in consumer.fetch("clicks", 0, 0):
        print(message.offset, message.payload)
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from threading import Lock
from typing import Any, NamedTuple, Self, TypeVar

from model.clients import simple as clients
from model.log.entries import messages_in
from model.log.errors import NO_ERROR, error_of
from model.log.message_set import Delivered
from model.log.requests import EARLIEST, LATEST, FetchRequest, FetchResponse
from real.companions import Alone

LOGGER = logging.getLogger("watchkeeper.simple")
T = TypeVar("T")
FETCH_BYTES = 300 * 1024
"""`fetch.size` as it is shipped."""


class Wanted(NamedTuple):
    """What is to be read from one partition."""

    topic: str
    partition: int
    offset: int
    max_bytes: int = FETCH_BYTES


class SimpleConsumer:
    """What asks one broker for messages and offsets.

    A request that fails is sent once more over a new connection; after that its `CallError`
    is raised. What is wrong with a partition or a message is raised by the name of the pages,
    such as `OffsetOutOfRange`.
    """

    def __init__(self, address: str, *, timeout_s: float = 30.0) -> None:
        """`address` as in localhost:6667. The connection is made when it is first needed."""
        self.address = address
        self._consumer = clients.SimpleConsumer(address, timeout_ms=int(timeout_s * 1000))
        self._home = Alone(f"simple consumer of {address}", LOGGER)
        self._turn = Lock()  # a connection carries one request at a time

    def fetch(
        self, topic: str, partition: int, offset: int, max_bytes: int = FETCH_BYTES
    ) -> list[Delivered]:
        """The messages of one partition from an offset on, as many as fit into so many bytes."""
        wanted = Wanted(topic, partition, offset, max_bytes)
        return _messages(wanted, self._call(self._consumer.fetch(FetchRequest(*wanted))))

    def multifetch(self, *wanted: Wanted) -> list[list[Delivered]]:
        """The messages of several partitions by one request, in the order that was asked."""
        responses = self._call(self._consumer.multifetch([FetchRequest(*one) for one in wanted]))
        return [_messages(one, each) for one, each in zip(wanted, responses, strict=True)]

    def offsets_before(
        self, topic: str, partition: int, time_ms: int, at_most: int = 1
    ) -> tuple[int, ...]:
        """Offsets at which segments begin that were written before a moment, latest first."""
        return self._call(self._consumer.offsets_before(topic, partition, time_ms, at_most))

    def earliest(self, topic: str, partition: int) -> int:
        """Where the log of a partition begins."""
        [offset] = self.offsets_before(topic, partition, EARLIEST)
        return offset

    def latest(self, topic: str, partition: int) -> int:
        """Where the log of a partition ends, as far as it can be read."""
        [offset] = self.offsets_before(topic, partition, LATEST)
        return offset

    def close(self) -> None:
        """Give up the connection."""
        self._home.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()

    def _call(self, body: Coroutine[Any, Any, T]) -> T:
        with self._turn:
            return self._home.callers.call(body, self)


def _messages(wanted: Wanted, response: FetchResponse) -> list[Delivered]:
    if response.error_code != NO_ERROR:
        where = f"{wanted.topic}-{wanted.partition}, offset {wanted.offset}"
        raise error_of(response.error_code)(where)
    return list(messages_in(response.messages, wanted.offset))
