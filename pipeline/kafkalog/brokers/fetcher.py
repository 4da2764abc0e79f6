"""Fetches bytes of one log from its broker, and survives what may happen to that broker.

A connection that breaks is made again. In 0.8 the leader is looked up again after each failure:
it may have moved, or an election may be under way. In 0.7 the messages are at one broker alone.
"""

from __future__ import annotations

from typing import Any, Self

from watchkeeper.model.log.format import requests, requests_08
from watchkeeper.model.log.format.errors import NO_ERROR, OffsetOutOfRange, Unknown, error_of
from watchkeeper.model.log.format.requests import EARLIEST, LATEST
from watchkeeper.model.log.format.requests_08 import (
    PartitionError,
    PartitionTime,
    TopicTimes,
    error_name,
)
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import FetchRequest, PartitionFetch
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.brokers.broker_log import BrokerSplit
from watchkeeper.pipeline.kafkalog.brokers.connection import Connection
from watchkeeper.pipeline.kafkalog.brokers.listing import leaders, metadata
from watchkeeper.pipeline.kafkalog.brokers.retries import RETRIED, Failed, retried

MAX_WAIT_MS = 500
"""How long a broker of 0.8 may hold back a response without messages."""
OVERHEAD_BYTES = 4096
"""The most bytes of a response besides the messages; a topic's name is the largest part."""
WILL_CHANGE = frozenset(
    {
        PartitionError.UNKNOWN,
        PartitionError.UNKNOWN_TOPIC_OR_PARTITION,
        PartitionError.LEADER_NOT_AVAILABLE,
        PartitionError.NOT_LEADER_FOR_PARTITION,
        PartitionError.REQUEST_TIMED_OUT,
        PartitionError.BROKER_NOT_AVAILABLE,
        PartitionError.REPLICA_NOT_AVAILABLE,
    }
)
"""Codes of 0.8 that another broker may not answer, or the same one later."""


class Deleted(Exception):
    """The log begins after the offset."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


class Fetcher:
    """Fetches from the log of one range."""

    def __init__(self, split: BrokerSplit) -> None:
        self.split = split
        self._address: str | None = split.address
        """Where the leader is; None if it has to be looked up."""
        self._connection: Connection | None = None
        self._fetch, self._offset = (
            (self._fetch_07, self._offset_07)
            if split.format == "0.7"
            else (self._fetch_08, self._offset_08)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._disconnect()

    def fetch(self, offset: int, max_bytes: int) -> bytes:
        """Up to so many bytes of messages from an offset on, at least one byte.

        Raises Deleted if the log begins later, and PipelineProblem if the messages do not come
        for a while.
        """
        return retried(
            lambda: self._attempt(offset, max_bytes),
            self.split.brokers.retry_ms,
            f"{self.split} cannot be read on from offset {offset} (at {self.split.where})",
        )

    def _attempt(self, offset: int, max_bytes: int) -> bytes:
        try:
            return self._fetch(self._connected(), offset, max_bytes)
        except RETRIED:
            self._disconnect()
            if self.split.format == "0.8":
                self._address = None
            raise

    # --- the connection ----------------------------------------------------------------

    def _connected(self) -> Connection:
        if self._connection is None:
            if self._address is None:
                self._address = self._leader()
            self._connection = Connection(self._address)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _leader(self) -> str:
        """The address of the leader now; Failed if there is none."""
        split = self.split
        found = metadata(split.brokers)
        if split.topic not in {each.topic for each in found.topics}:
            raise Failed(f"there is no topic {split.topic}")
        for one in leaders(found, [split.topic], [split.partition]):
            return one.address
        raise Failed(f"topic {split.topic} has no partition {split.partition}")

    # --- 0.7 ---------------------------------------------------------------------------

    def _fetch_07(self, connection: Connection, offset: int, max_bytes: int) -> bytes:
        split = self.split
        request = requests.FetchRequest(split.topic, split.partition, offset, max_bytes)
        response = connection.ask_07(request, max_bytes + OVERHEAD_BYTES)
        code = response.error_code
        if code == Unknown.code:
            raise Failed(f"the broker answers {Unknown.__name__}")
        if code not in (NO_ERROR, OffsetOutOfRange.code):
            raise self._refused(error_of(code).__name__, offset)
        return self._checked(connection, offset, code, response.messages)

    def _offset_07(self, connection: Connection, time_ms: int) -> int:
        request = requests.OffsetsRequest(self.split.topic, self.split.partition, time_ms, 1)
        response = connection.ask_07(request, OVERHEAD_BYTES)
        if response.error_code != NO_ERROR or not response.offsets:
            raise Failed("the broker answers no offset")
        offset: int = response.offsets[0]
        return offset

    # --- 0.8 ---------------------------------------------------------------------------

    def _fetch_08(self, connection: Connection, offset: int, max_bytes: int) -> bytes:
        wanted = PartitionFetch(self.split.partition, offset, max_bytes)
        request = FetchRequest(MAX_WAIT_MS, 1, (OfTopic(self.split.topic, (wanted,)),))
        response = connection.ask_08(request, max_bytes + OVERHEAD_BYTES)
        part = self._part(response, "parts")
        code = part.error_code
        if code in WILL_CHANGE:
            raise Failed(f"the broker answers {error_name(code)}")
        if code not in (PartitionError.NONE, PartitionError.OFFSET_OUT_OF_RANGE):
            raise self._refused(error_name(code), offset)
        return self._checked(connection, offset, code, part.messages)

    def _offset_08(self, connection: Connection, time_ms: int) -> int:
        wanted = (PartitionTime(self.split.partition, time_ms),)
        request = requests_08.OffsetsRequest((TopicTimes(self.split.topic, wanted),))
        part = self._part(connection.ask_08(request, OVERHEAD_BYTES), "partitions")
        if part.error_code != PartitionError.NONE or not part.offsets:
            raise Failed(f"the broker answers {error_name(part.error_code)}")
        offset: int = part.offsets[0]
        return offset

    def _part(self, response: Any, attribute: str) -> Any:
        """The only partition of a response."""
        parts = [part for topic in response.topics for part in getattr(topic, attribute)]
        if len(parts) != 1:
            raise Failed(f"the broker answers {len(parts)} partitions; expected 1")
        return parts[0]

    # --- what came ---------------------------------------------------------------------

    def _checked(self, connection: Connection, offset: int, code: int, messages: bytes) -> bytes:
        """The messages; Deleted or Failed if there is none at the offset."""
        if code == NO_ERROR and messages:
            return messages
        if code == OffsetOutOfRange.code:
            start = self._offset(connection, EARLIEST)
            if offset < start:
                raise Deleted(start)
        end = self._offset(connection, LATEST)
        raise Failed(
            f"the broker has no message there, and its log ends at {end}; if it was longer "
            "before, it has lost messages"
        )

    def _refused(self, name: str, offset: int) -> PipelineProblem:
        return PipelineProblem(
            f"{self.split} cannot be read from offset {offset}: the broker at {self._address} "
            f"answers {name}"
        )
