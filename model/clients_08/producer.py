"""A producer of 0.8: sends at once, or through one queue with one sending task.

Kafka 0.8.2.2: kafka.producer.Producer, ProducerSendThread. A synchronous producer returns when
the brokers have acknowledged the messages, by `request.required.acks`, or raises.
"""

from __future__ import annotations

from watchkeeper.model.clients.errors import QueueClosed
from watchkeeper.model.clients.producer.batch_sender import BatchSender
from watchkeeper.model.clients.producer.interceptors import Hooks
from watchkeeper.model.clients.producer.producer import Plugins, ProducerData
from watchkeeper.model.clients.producer.record_batch import ENCODERS, RecordBatch
from watchkeeper.model.clients_08.dispatcher import Confirm, Dispatcher, Keyed
from watchkeeper.model.clients_08.settings import PARTITIONERS, ProducerSettings08
from watchkeeper.model.log.format.requests import ANY_PARTITION


class Producer08:
    """Sends the messages of an application."""

    dispatcher_class: type[Dispatcher] = Dispatcher

    def __init__(
        self,
        settings: ProducerSettings08,
        plugins: Plugins | None = None,
        *,
        name: str = "producer",
        confirm: Confirm | None = None,
    ) -> None:
        """`confirm` is called with what leaders have confirmed, which `send` does not return."""
        plugins = plugins or Plugins()
        self.settings = settings
        self.name = name
        self.is_closed = False
        self._encode = plugins.encoder or ENCODERS[settings.serializer]
        partitioner = plugins.partitioner or PARTITIONERS[settings.partitioner]
        self._dispatcher = self.dispatcher_class(
            settings, partitioner, name=name, confirm=confirm
        )
        self._has_begun = False
        self._queue = BatchSender(
            f"{name} to its brokers",
            self._dispatcher,
            settings,
            encode=self._encode,
            hooks=plugins.hooks or Hooks(),
            handler=plugins.handler or self._dispatcher,
        )

    async def send(self, *data: ProducerData) -> None:
        """Send messages, or queue them.

        A synchronous producer raises `FailedToSendMessage` if the tries are over; some of the
        messages may be appended by then. An asynchronous one raises `QueueFull` without room.
        """
        if self.is_closed:
            raise QueueClosed(self.name)
        batch = [_records(each) for each in data if each.messages]
        if self.settings.type == "sync":
            if batch:
                await self._dispatcher.handle(batch, self._dispatcher, self._encode)
            return
        if not self._has_begun:
            self._has_begun = True
            await self._queue.start()
        for records in batch:
            await self._queue.send(records)

    async def close(self) -> None:
        """Accept no more messages, and send those that are queued."""
        self.is_closed = True
        if self._has_begun:
            await self._queue.close()
        await self._dispatcher.close()


def _records(data: ProducerData) -> RecordBatch:
    assert isinstance(data.messages, tuple), "a producer of 0.8 sends what has bytes"
    keyed = tuple(Keyed(data.key, message) for message in data.messages)
    return RecordBatch(data.topic, ANY_PARTITION, keyed)
