"""Produces the events of a site: to brokers, or into the logs of one that does not run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.model.actor.effects import Emit
from watchkeeper.model.clients.errors import ClientError
from watchkeeper.model.clients.producer.partitioners import by_java_hash, choose
from watchkeeper.model.clients.producer.producer import Producer, ProducerData
from watchkeeper.model.clients.producer.settings import ProducerSettings, producer_settings
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import wrap
from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.log.settings import BrokerLogSettings, LogSettings
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.pipeline.activity.events import TOPICS, Event, topic_of
from watchkeeper.pipeline.activity.generator import encoded
from watchkeeper.real.process.tasks import Tasks
from watchkeeper.real.storage.file_storage import FileStorage

MESSAGES_TOGETHER = 200
"""The largest number of messages in one batch; the default of Kafka 0.7."""
NEVER = 2**31 - 1
"""So many messages are never appended without a flush: the logs are flushed in the end."""


Send = Callable[[str, str, bytes], Awaitable[None]]
"""Sends a payload to a topic; payloads of one key stay in order."""


async def produce(events: Iterable[Event], send: Send) -> Counter[str]:
    """Send every event; return the number of events of each topic."""
    sent: Counter[str] = Counter()
    for event in events:
        topic = topic_of(event)
        await send(topic, TOPICS[topic].key(event), encoded(event))
        sent[topic] += 1
    return sent


# --- into logs -------------------------------------------------------------------------


def into_logs(
    folder: Path, events: Iterable[Event], *, partitions: int, codec: Codec
) -> Counter[str]:
    """Append events to logs in a folder, each in the partition of its key."""
    settings = LogSettings(partitions=partitions, flush_messages=NEVER)
    try:
        storage = FileStorage(folder)
        try:
            return storage.run(_appended(BrokerLogSettings(settings), events, codec))
        finally:
            storage.close()
    except (LogError, OSError) as error:
        raise Stop(USAGE, f"{folder} takes no events: {error}; name another folder") from None


async def _appended(
    settings: BrokerLogSettings, events: Iterable[Event], codec: Codec
) -> Counter[str]:
    logs = LogManager(settings)
    await logs.start()
    appending = Appending(logs, settings.default.partitions, codec)
    sent = await produce(events, appending.send)
    await appending.finish()
    await logs.close()
    return sent


class Appending:
    """Appends to logs as a producer and a broker would, without either."""

    def __init__(self, logs: LogManager, partitions: int, codec: Codec) -> None:
        self.logs = logs
        self.partitions = partitions
        self.codec = codec
        self._waiting: dict[tuple[str, int], list[Message]] = {}

    async def send(self, topic: str, key: str, payload: bytes) -> None:
        """Put a message into the batch of its partition, and append a full batch."""
        place = (topic, await choose(by_java_hash, key, self.partitions))
        waiting = self._waiting.setdefault(place, [])
        waiting.append(Message.of(payload))
        if len(waiting) == MESSAGES_TOGETHER:
            await self._append(place)

    async def finish(self) -> None:
        """Append the remaining batches."""
        for place in sorted(self._waiting):
            await self._append(place)

    async def _append(self, place: tuple[str, int]) -> None:
        log = await self.logs.get_or_create(*place)
        await log.append(wrap(self._waiting.pop(place, []), self.codec))


# --- to brokers ------------------------------------------------------------------------


def settings_for(brokers: str, codec: Codec) -> ProducerSettings:
    """Return a producer's settings; raise Stop for invalid brokers."""
    numbered = ",".join(
        f"{at}:{address.strip()}" for at, address in enumerate(brokers.split(","))
    )
    try:
        return producer_settings(
            {
                "broker.list": numbered,
                "producer.type": "async",
                "queue.enqueueTimeout.ms": -1,
                "batch.size": MESSAGES_TOGETHER,
                "compression.codec": codec.value,
            }
        )
    except ClientError:
        raise Stop(
            USAGE, f"--brokers {brokers} is not understood; expected HOST:PORT,HOST:PORT"
        ) from None


def to_brokers(settings: ProducerSettings, events: Iterable[Event]) -> Counter[str]:
    """Send events by the project's producer; Stop where not all of them went."""
    sending = Sending(settings)
    try:
        return asyncio.run(sending.all(events))
    except (ClientError, LogError) as error:
        raise Stop(USAGE, f"the events could not be sent: {error}") from None


class Sending:
    """A producer in this process, and its reports of failed batches."""

    def __init__(self, settings: ProducerSettings) -> None:
        self.producer = Producer(settings)
        self._given_up = ""

    async def all(self, events: Iterable[Event]) -> Counter[str]:
        """Send all, and wait until nothing is on the way."""
        threads = Tasks(remind=lambda notification: None, failed=self._failed)
        threads.answer_immediately(Emit, self._hear)
        try:
            return await threads.run(self._run(events), "producer")
        finally:
            await threads.end()

    async def _run(self, events: Iterable[Event]) -> Counter[str]:
        send: Send = self._send
        sent = await produce(events, send)
        await self.producer.close()
        self._check()
        return sent

    async def _send(self, topic: str, key: str, payload: bytes) -> None:
        self._check()
        await self.producer.send(ProducerData(topic, (payload,), key))

    def _hear(self, event: Emit) -> None:
        if event.kind == EventKind.SEND_FAILED:
            self._given_up = str(dict(event.detail)["why"])

    def _failed(self, thread: str, error: Exception) -> None:
        self._given_up = f"{thread}: {error}"

    def _check(self) -> None:
        """An asynchronous producer goes on without a batch that it could not send; not here."""
        if self._given_up:
            raise Stop(
                USAGE,
                f"not all events were sent: {self._given_up}; see whether the brokers run, and "
                "produce into empty logs",
            )
