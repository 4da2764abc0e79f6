"""Messages inside an application: a member of a group, and the streams that it feeds.

    with Connector("localhost:2181", group="billing") as connector:
        streams = connector.create_message_streams({"clicks": 2})
        for message in streams["clicks"][0]:
            print(message.value)

The fetching, the queues, the streams and the member are those that the simulation runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, Self, TypeVar

from model.asks import Partition
from model.clients.chunks import Handed
from model.clients.places import Place
from model.clients.streams import Stream
from model.clients.versions import clients_of
from model.program import Ended
from model.subscriptions import Pattern
from real.callers import Call, Over
from real.living import LEAVE_WITHIN_S, READY_WITHIN_S
from real.reading import ReadingMember
from real.wishes import check_name, check_number, connector_given

LOGGER = logging.getLogger("watchkeeper.connector")
COMMIT_WITHIN_S = 10.0
T = TypeVar("T")
Decode = Callable[[bytes], T]


class Received(NamedTuple, Generic[T]):
    """A message as an application reads it."""

    partition: Partition
    offset: int
    next_offset: int
    """Where to go on after it."""
    value: T
    """Its payload, decoded."""


def as_it_is(payload: bytes) -> Any:
    """Leave a payload as it is."""
    return payload


class MessageStream(Generic[T]):
    """The messages of some partitions, one after the other, for one thread of an application.

    It ends when the connector is shut down. `consumer.timeout.ms` limits how long it waits;
    after `ConsumerTimeout`, and after a message that cannot be read or decoded, it can be read
    on. Whoever is interrupted while it waits loses no message.
    """

    def __init__(self, stream: Stream, member: _Member, decode: Decode[T]) -> None:
        self._stream = stream
        self._member = member
        self._decode = decode
        self._call: Call[Handed | None] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Received[T]:
        handed = self._next()
        if handed is None:
            raise StopIteration
        assert isinstance(handed.payload, bytes), "one message was asked for"
        value = self._decode(handed.payload)
        return Received(handed.partition, handed.offset, handed.next_offset, value)

    def _next(self) -> Handed | None:
        """The next message; None when the stream is over, an error if that was not wanted."""
        call = self._call or Call(self._member.callers, self._stream.next())
        self._call = call
        try:
            handed = call.go_on()
        except Over:
            self._call = None
            self._member.raise_if_it_failed()
            return None
        except Exception:
            self._call = None
            raise
        self._call = None
        return handed


class Connector:
    """A member of a group inside an application, that reads messages from real brokers."""

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
    ) -> None:
        """Describe a member; it joins its group when its streams are made.

        hosts    as clients of ZooKeeper write them: `one:2181,two:2181/chroot`
        config   Kafka's settings by Kafka's names
        decode   makes what the application reads of a payload
        kazoo    handed to kazoo as it is: `auth_data`, `use_ssl`, `ca` ...
        """
        me = connector_given(group, variant, config, consumer_id, host)
        self.me = me
        self._hosts = hosts
        self._decode = decode
        self._kazoo = kazoo
        self._connector = clients_of(me.variant).connector(me, _Journal(me.node))
        self._member: _Member | None = None

    # --- streams --------------------------------------------------------------------------

    def create_message_streams(
        self, topics: Mapping[str, int]
    ) -> dict[str, list[MessageStream[Any]]]:
        """Join the group for these topics; so many streams of each.

        All topics of one call cost one rebalance; there can be no second call.
        """
        for name, count in topics.items():
            check_name("a topic", name)
            check_number(f"the number of streams of {name}", count, least=1)
        made = self._connector.create_message_streams(topics)
        member = self._join()
        return {
            topic: [MessageStream(one, member, self._decode) for one in streams]
            for topic, streams in made.items()
        }

    def create_message_streams_by_filter(
        self, expression: str, streams: int = 1, pattern: Pattern = "white_list"
    ) -> list[MessageStream[Any]]:
        """Join the group for all topics that a filter allows, now or later.

        The streams are shared by all of them. `pattern` is white_list or black_list.
        """
        check_number("streams", streams, least=1)
        made = self._connector.create_message_streams_by_filter(expression, streams, pattern)
        member = self._join()
        return [MessageStream(one, member, self._decode) for one in made]

    def _join(self) -> _Member:
        self._member = _Member(self._connector, self._hosts, logger=LOGGER, kazoo=self._kazoo)
        return self._member.start()

    # --- offsets --------------------------------------------------------------------------

    def commit_offsets(self, timeout_s: float = COMMIT_WITHIN_S) -> bool:
        """Commit where the streams stand; whether that is known to be written in time.

        A message counts as consumed when it was read from its stream.
        """
        member = self._joined("commit_offsets")
        return member.callers.call(self._connector.commit_offsets(int(timeout_s * 1000)))

    # --- coming and going -----------------------------------------------------------------

    def ready(self, timeout_s: float = READY_WITHIN_S) -> None:
        """Wait until the first rebalance is over; TimeoutError if that takes longer."""
        self._joined("ready").ready(timeout_s)

    def shutdown(self, timeout_s: float = LEAVE_WITHIN_S) -> bool:
        """End the streams, commit, and leave the group; whether it left gracefully."""
        member = self._member
        if member is None:
            return True
        if member.ended is None:
            try:
                member.callers.call(self._connector.shutdown())
            except Over:
                LOGGER.debug("%s ended before it was told to", member.name)
        return member.close(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.shutdown()

    # --- what happened --------------------------------------------------------------------

    @property
    def owned(self) -> tuple[Partition, ...]:
        """The partitions that are read now."""
        return tuple(self._connector.fetching.places)

    @property
    def positions(self) -> dict[Partition, int]:
        """Where to go on in each partition, as far as that is known."""
        return dict(self._connector.fetching.known_positions())

    @property
    def ended(self) -> Ended | None:
        """How its member ended; None while it is alive, and before it has joined."""
        return None if self._member is None else self._member.ended

    def _joined(self, method: str) -> _Member:
        if self._member is None:
            raise RuntimeError(
                f"{method} needs a member of the group; make the streams first, by "
                "create_message_streams or create_message_streams_by_filter"
            )
        return self._member


class _Member(ReadingMember):
    """The member of a connector, and what its streams ask of it."""

    def raise_if_it_failed(self) -> None:
        """Tell whoever reads on that nothing comes any more, if nobody has asked for that."""
        if self.ended is not None and self.ended.failed:
            raise Over(f"{self.name} is over: {self.ended.reason}") from self._error


class _Journal:
    """What the fetching side does, as `logging` hears it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fetching(self, place: Place, does: str) -> None:
        """A partition begins or ceases to be fetched."""
        LOGGER.debug("%s %s to fetch %s", self.name, does, "/".join(place.partition))

    def fails(self, address: str, times: int) -> None:
        """A broker did not answer."""
        LOGGER.warning("%s: %s did not answer, %d times running", self.name, address, times)

    def reset(self, place: Place, offset: int, why: str) -> None:
        """A partition is read on at the beginning or the end of its log."""
        where = "/".join(place.partition)
        LOGGER.info("%s: %s: %s is read from %d", self.name, why, where, offset)

    def handed_on(self, place: Place, handed: Handed) -> None:
        """An application was handed a message."""
