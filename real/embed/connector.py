"""A high-level consumer inside an application: a member of a group, and its message streams.

    with Connector("localhost:2181", group="billing") as connector:
        streams = connector.create_message_streams({"clicks": 2})
        for message in streams["clicks"][0]:
            print(message.value)

The simulation runs the same code: fetching, queues, streams and the protocol of the group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.program import Ended
from watchkeeper.model.clients.compositions.kafka_07 import clients_of
from watchkeeper.model.clients.consumer.chunks import Delivery
from watchkeeper.model.clients.consumer.positions import FetchPosition
from watchkeeper.model.clients.consumer.streams import Stream
from watchkeeper.model.clients_08.connector import Connector08
from watchkeeper.model.registry.subscription import Pattern
from watchkeeper.real.embed.member import LEAVE_WITHIN_S, READY_WITHIN_S
from watchkeeper.real.embed.reader import ReadingMember
from watchkeeper.real.embed.validation import check_name, check_number, connector_given
from watchkeeper.real.process.sync_calls import Call, Closed

LOGGER = logging.getLogger("watchkeeper.connector")
COMMIT_WITHIN_S = 10.0
T = TypeVar("T")
Decode = Callable[[bytes], T]


class Received(NamedTuple, Generic[T]):
    """A decoded message, with its partition and offsets."""

    partition: Partition
    offset: int
    next_offset: int
    """The offset of the message after it."""
    value: T
    """The decoded payload; None for a tombstone, a message of 0.8 without a payload."""
    key: bytes | None = None
    """The key of a message of 0.8."""


def as_it_is(payload: bytes) -> Any:
    """Return a payload unchanged."""
    return payload


class MessageStream(Generic[T]):
    """An iterator over the messages of some partitions, for one thread of an application.

    It ends when the connector is shut down. Raises `ConsumerTimeout` after
    `consumer.timeout.ms` without a message, `LogError` for a message that cannot be read, and
    the exceptions of `decode`; after each of them the iteration can continue. A thread that is
    interrupted while it waits loses no message. Raises `Closed` if the member has failed.
    """

    def __init__(self, stream: Stream, member: _Member, decode: Decode[T]) -> None:
        self._stream = stream
        self._member = member
        self._decode = decode
        self._call: Call[Delivery | None] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Received[T]:
        handed = self._next()
        if handed is None:
            raise StopIteration
        payload = handed.payload
        assert payload is None or isinstance(payload, bytes), "a request for one returns one"
        value: Any = None if payload is None else self._decode(payload)
        return Received(handed.partition, handed.offset, handed.next_offset, value, handed.key)

    def _next(self) -> Delivery | None:
        """Return the next message; None at the end of the stream, Closed after a failure."""
        call = self._call or Call(self._member.callers, self._stream.next())
        self._call = call
        try:
            handed = call.go_on()
        except Closed:
            self._call = None
            self._member.raise_if_it_failed()
            return None
        except Exception:
            self._call = None
            raise
        self._call = None
        return handed


class Connector:
    """A member of a group that reads messages from brokers into streams."""

    def __init__(
        self,
        hosts: str,
        *,
        group: str,
        variant: str = "hardened",
        config: Mapping[str, Any] | None = None,
        consumer_id: str = "",
        host: str | None = None,
        decode: Decode[Any] = as_it_is,
        kazoo: Mapping[str, Any] | None = None,
        protocol: Literal["0.7", "0.8"] = "0.7",
    ) -> None:
        """Describe a member; it joins its group when its streams are created.

        hosts      as for ZooKeeper: `one:2181,two:2181/chroot`
        config     Kafka's settings by Kafka's names
        decode     turns a payload into the value of a message
        kazoo      passed to kazoo unchanged: `auth_data`, `use_ssl`, `ca` ...
        protocol   what the brokers speak; with 0.8 the registry has the layout of 0.8

        Raises ValueError for an invalid argument or setting.
        """
        me = connector_given(group, variant, protocol, config, consumer_id, host)
        self.me = me
        self._hosts = hosts
        self._decode = decode
        self._kazoo = kazoo
        journal = _Journal(me.node)
        self._connector = (
            Connector08(me, journal)
            if protocol == "0.8"
            else clients_of(me.variant).connector(me, journal)
        )
        self._member: _Member | None = None

    # --- streams --------------------------------------------------------------------------

    def create_message_streams(
        self, topics: Mapping[str, int]
    ) -> dict[str, list[MessageStream[Any]]]:
        """Join the group, and return the streams of each topic.

        topics   topic -> number of streams

        The topics of one call cause one rebalance. Streams can be created only once. Raises
        ValueError for an invalid name or number.
        """
        for name, count in topics.items():
            check_name("a topic", name)
            check_number(f"the number of streams of {name}", count, least=1)
        made = self._connector.create_message_streams(topics)
        member = self._join()
        return {
            topic: [MessageStream(stream, member, self._decode) for stream in streams]
            for topic, streams in made.items()
        }

    def create_message_streams_by_filter(
        self, expression: str, streams: int = 1, pattern: Pattern = "white_list"
    ) -> list[MessageStream[Any]]:
        """Join the group for all topics that a filter allows, and return their common streams.

        Later topics are included. `pattern` is `white_list` or `black_list`. Streams can be
        created only once.
        """
        check_number("streams", streams, least=1)
        made = self._connector.create_message_streams_by_filter(expression, streams, pattern)
        member = self._join()
        return [MessageStream(stream, member, self._decode) for stream in made]

    def _join(self) -> _Member:
        self._member = _Member(self._connector, self._hosts, logger=LOGGER, kazoo=self._kazoo)
        return self._member.start()

    # --- offsets --------------------------------------------------------------------------

    def commit_offsets(self, timeout_s: float = COMMIT_WITHIN_S) -> bool:
        """Commit the offsets of all messages read; return whether they were written in time.

        A message counts as consumed when it was read from its stream. A commit whose
        connection or session is lost is answered at once, and is not known to be written.
        Raises RuntimeError before the streams are created.
        """
        member = self._joined("commit_offsets")
        return member.callers.call(self._connector.commit_offsets(int(timeout_s * 1000)))

    # --- coming and going -----------------------------------------------------------------

    def ready(self, timeout_s: float = READY_WITHIN_S) -> None:
        """Wait until the first rebalance has completed; raise TimeoutError after `timeout_s`."""
        self._joined("ready").ready(timeout_s)

    def shutdown(self, timeout_s: float = LEAVE_WITHIN_S) -> bool:
        """End the streams, commit, and leave the group; return whether it left gracefully."""
        member = self._member
        if member is None:
            return True
        if member.ended is None:
            try:
                member.callers.call(self._connector.shutdown())
            except Closed:
                LOGGER.debug("%s ended before the command to", member.name)
        return member.close(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.shutdown()

    # --- what happened --------------------------------------------------------------------

    @property
    def owned(self) -> tuple[Partition, ...]:
        """The partitions that are fetched at present."""
        return tuple(self._connector.fetcher.positions)

    @property
    def positions(self) -> dict[Partition, int]:
        """The next offset of each partition, if it is known."""
        return dict(self._connector.fetcher.known_positions())

    @property
    def ended(self) -> Ended | None:
        """How the member ended; None before it joins and while it runs."""
        return None if self._member is None else self._member.ended

    def _joined(self, method: str) -> _Member:
        if self._member is None:
            raise RuntimeError(
                f"{method} needs a member of the group; make the streams first, by "
                "create_message_streams or create_message_streams_by_filter"
            )
        return self._member


class _Member(ReadingMember):
    """The member of a connector, as its streams use it."""

    def raise_if_it_failed(self) -> None:
        """Raise Closed if the member has failed, not if the application closed it."""
        if self.ended is not None and self.ended.failed:
            raise Closed(f"{self.name} is over: {self.ended.reason}") from self._error


class _Journal:
    """Logs the events of fetching."""

    def __init__(self, name: str) -> None:
        self.name = name

    def on_fetching(self, place: FetchPosition, does: str) -> None:
        """Log that fetching of a partition begins or ends."""
        LOGGER.debug("%s %s to fetch %s", self.name, does, "/".join(place.partition))

    def on_failure(self, address: str, times: int) -> None:
        """Log that a broker did not answer."""
        LOGGER.warning("%s: %s did not answer, %d times running", self.name, address, times)

    def on_reset(self, place: FetchPosition, offset: int, why: str) -> None:
        """Log that a partition is now read from the beginning or the end of its log."""
        where = "/".join(place.partition)
        LOGGER.info("%s: %s: %s is read from %d", self.name, why, where, offset)

    def on_delivery(self, place: FetchPosition, handed: Delivery) -> None:
        """Log nothing: a message was delivered."""
