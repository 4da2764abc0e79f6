"""Sends batches: chooses partitions, finds their leaders, sends, and retries what has failed.

Kafka 0.8.2.2: DefaultEventHandler. Messages with a key go where the partitioner says, among all
partitions of the topic. Those without a key go to one partition that has a leader, until leaders
are looked up the next time. A message that is sent again may be appended twice, since only the
response of the first time was lost. Without acknowledgements, what a broker drops is lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple

from watchkeeper.model.actor.effects import now_ms, sleep
from watchkeeper.model.actor.rpc import Call, CallError, HangUp
from watchkeeper.model.actor.tasks import below
from watchkeeper.model.clients.errors import InvalidKey, NoBrokersForPartition
from watchkeeper.model.clients.producer.partitioners import Partitioner, choose
from watchkeeper.model.clients.producer.record_batch import Encoder, RecordBatch
from watchkeeper.model.clients_08.errors import FailedToSendMessage
from watchkeeper.model.clients_08.metadata import Leaders
from watchkeeper.model.clients_08.settings import ProducerSettings08
from watchkeeper.model.log.format.message_08 import KeyedMessage, wrap
from watchkeeper.model.log.format.requests_08 import PartitionError, error_name
from watchkeeper.model.wire_08.by_topic import flat, grouped
from watchkeeper.model.wire_08.client_request import ClientRequest
from watchkeeper.model.wire_08.produce import PartitionMessages, ProduceRequest

AFTER_TIMEOUT_MS = 500
"""How much longer than the broker a producer waits: for the answer that the time is up."""


class Keyed(NamedTuple):
    """A message of an application, with the key that chooses its partition."""

    key: Any
    message: Any


class Outgoing(NamedTuple):
    """A message as it is sent."""

    topic: str
    key: Any
    message: KeyedMessage


class Acknowledged(NamedTuple):
    """Messages that a leader has confirmed: they are at consecutive offsets from this one on."""

    topic: str
    partition: int
    offset: int
    messages: tuple[KeyedMessage, ...]


Confirm = Callable[[Acknowledged], Awaitable[object]]
"""Called with what a leader has confirmed."""

Parts = dict[tuple[str, int], list[Outgoing]]
"""Topic and partition -> its messages, in order."""


class Dispatcher:
    """Sends the messages of one producer, a batch at a time."""

    address = ""
    """Where it sends: to no broker in particular."""

    def __init__(
        self,
        settings: ProducerSettings08,
        partitioner: Partitioner,
        *,
        name: str,
        confirm: Confirm | None = None,
    ) -> None:
        self.settings = settings
        self.partitioner = partitioner
        self.name = name
        self.confirm = confirm
        self._leaders = Leaders(settings.brokers, settings.client_id, settings.timeout_ms)
        self._refreshed_ms: int | None = None
        self._without_key: dict[str, int] = {}
        """Topic -> the partition for messages without a key."""
        self._connected: set[str] = set()
        self._why = ""
        """Why the last message that failed did so."""

    async def handle(self, batch: Sequence[RecordBatch], sender: object, encode: Encoder) -> None:
        """Send a batch; raise `FailedToSendMessage` if the tries are over."""
        left = [each for records in batch for each in _outgoing(records, encode)]
        topics = {each.topic for each in left}
        await self._refresh_in_time(topics)
        for attempt in range(self.settings.retries + 1):
            if attempt:
                await sleep(self.settings.backoff_ms)
                await self._refresh({each.topic for each in left})
            left = await self._send(left)
            if not left:
                return
        raise FailedToSendMessage(
            self.name,
            f"{len(left)} of topics {', '.join(sorted({each.topic for each in left}))}, after "
            f"{self.settings.retries + 1} tries; the last failure: {self._why}",
        )

    async def await_served(self) -> None:
        """Do nothing: what has a response was waited for."""

    async def close(self) -> None:
        """Close the connections."""
        for address in sorted(self._connected):
            await HangUp(address)
        self._connected.clear()

    # --- leaders -------------------------------------------------------------------------

    async def _refresh_in_time(self, topics: set[str]) -> None:
        unknown = {topic for topic in topics if not self._leaders.partitions_of(topic)}
        interval_ms, now = self.settings.refresh_ms, await now_ms()
        is_due = interval_ms >= 0 and (
            self._refreshed_ms is None or now - self._refreshed_ms >= interval_ms
        )
        if is_due:
            self._refreshed_ms = now
        if unknown or is_due:
            await self._refresh(topics if is_due else unknown)

    async def _refresh(self, topics: set[str]) -> None:
        try:
            await self._leaders.refresh(topics)
        except NoBrokersForPartition as error:
            self._why = str(error)  # a try with what is known follows
        self._without_key.clear()

    # --- sending -------------------------------------------------------------------------

    async def _send(self, messages: Iterable[Outgoing]) -> list[Outgoing]:
        """Send messages to the leaders of their partitions; return those that failed."""
        by_address: dict[str, Parts] = {}
        failed = []
        for each in messages:
            address, partition = await self._place_of(each)
            if address:
                parts = by_address.setdefault(address, {})
                parts.setdefault((each.topic, partition), []).append(each)
            else:
                failed.append(each)
        for address, parts in sorted(by_address.items()):
            failed += await self._send_to(address, parts)
        return failed

    async def _place_of(self, message: Outgoing) -> tuple[str, int]:
        """The leader and the partition for a message; no address if there is none."""
        led = self._leaders.partitions_of(message.topic)
        if message.key is not None and led:
            chosen = led[await choose(self.partitioner, message.key, len(led))]
        else:
            available = [one for one in led if one.address]
            if not available:
                self._why = f"topic {message.topic} has no partition with a leader"
                return "", -1
            known = {one.partition: one for one in available}
            if self._without_key.get(message.topic) not in known:
                any_of = available[await below(len(available))]
                self._without_key[message.topic] = any_of.partition
            chosen = known[self._without_key[message.topic]]
        if not chosen.address:
            self._why = f"{message.topic}-{chosen.partition} has no leader"
        return chosen.address, chosen.partition

    async def _send_to(self, address: str, parts: Parts) -> list[Outgoing]:
        """Send one request to a broker; return the messages that it has not confirmed."""
        settings = self.settings
        sets = (
            (
                topic,
                PartitionMessages(
                    partition,
                    wrap((each.message for each in some), settings.codec_for(topic)),
                ),
            )
            for (topic, partition), some in sorted(parts.items(), key=lambda item: item[0])
        )
        produce = ProduceRequest(settings.acks, settings.timeout_ms, grouped(sets))
        self._connected.add(address)
        try:
            response = await Call(
                address,
                ClientRequest(produce, settings.client_id),
                settings.timeout_ms + AFTER_TIMEOUT_MS,
                settings.buffer_bytes,
            )
        except CallError as error:
            self._why = str(error)
            await HangUp(address)
            return [each for some in parts.values() for each in some]
        return [] if response is None else await self._refused(address, parts, response)

    async def _refused(self, address: str, parts: Parts, response: Any) -> list[Outgoing]:
        """The messages of partitions that have an error, or that the response lacks."""
        found = {(topic, one.partition): one for topic, one in flat(response.topics)}
        failed = []
        for place, some in sorted(parts.items(), key=lambda item: item[0]):
            one = found.get(place)
            code = PartitionError.UNKNOWN if one is None else one.error_code
            if code != PartitionError.NONE:
                self._why = f"{address} answers {error_name(code)} for {place[0]}-{place[1]}"
                failed += some
            elif self.confirm is not None:
                sent = tuple(each.message for each in some)
                await self.confirm(Acknowledged(*place, found[place].offset, sent))
        return failed


def _outgoing(records: RecordBatch, encode: Encoder) -> Iterable[Outgoing]:
    """Encode messages; None is a message without a value, which is a tombstone."""
    assert isinstance(records.messages, tuple), "a producer of 0.8 sends what has bytes"
    for key, message in records.messages:
        value = None if message is None else encode(message)
        yield Outgoing(records.topic, key, KeyedMessage(_key_bytes(key), value))


def _key_bytes(key: Any) -> bytes | None:
    if key is None or isinstance(key, bytes):
        return key
    if not isinstance(key, str):
        raise InvalidKey(f"key {key!r}", "a key is sent as bytes; expected text or bytes")
    return key.encode()
