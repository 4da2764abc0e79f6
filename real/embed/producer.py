"""A producer inside an application: it sends messages to real brokers.

    with Producer({"zk.connect": "localhost:2181"}) as producer:
        producer.send("clicks", b"click 1", b"click 2", key="me")

The simulation runs the same producer. With `zk.connect` it reads the brokers from ZooKeeper and
follows their changes; with `broker.list` it needs no ZooKeeper. A producer of 0.8 learns from any
broker of `metadata.broker.list` who leads which partition, and has acknowledgements.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext
from threading import Lock
from typing import Any, Literal, Self, TypeVar

from watchkeeper.model.clients.producer import producer as clients
from watchkeeper.model.clients.producer.interceptors import EventHandler, Hooks
from watchkeeper.model.clients.producer.metadata import metadata_program
from watchkeeper.model.clients.producer.partitioners import custom
from watchkeeper.model.clients.producer.producer import Plugins, ProducerData
from watchkeeper.model.clients.producer.record_batch import Encoder
from watchkeeper.model.clients.producer.settings import producer_settings
from watchkeeper.model.clients_08.producer import Producer08
from watchkeeper.model.clients_08.settings import producer_settings_08
from watchkeeper.real.embed.task_member import Alone, TaskMember
from watchkeeper.real.process.sync_calls import Closed

LOGGER = logging.getLogger("watchkeeper.producer")
T = TypeVar("T")


class Producer:
    """Sends messages to brokers, from any thread of an application."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        protocol: Literal["0.7", "0.8"] = "0.7",
        name: str = "producer",
        partitioner: Callable[[Any, int], int] | None = None,
        encode: Encoder | None = None,
        hooks: Hooks | None = None,
        handler: EventHandler | None = None,
        kazoo: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a producer and start its threads.

        config        Kafka's settings by Kafka's names; in 0.7 `zk.connect` or
                      `broker.list` must be among them, in 0.8 `metadata.broker.list`
        protocol      what the brokers speak: 0.7 or 0.8
        partitioner   maps a key and the number of partitions to a partition, in place of
                      `partitioner.class`
        encode        turns a message into a payload, in place of `serializer.class`
        hooks         callbacks of an asynchronous producer: queued, dequeued, sent
        handler       sends the batches of an asynchronous producer
        kazoo         passed to kazoo unchanged: `auth_data`, `use_ssl`, `ca` ...

        Raises InvalidConfig for an invalid setting.
        """
        self.name = name
        chosen = custom(partitioner) if partitioner is not None else None
        plugins = Plugins(chosen, encode, hooks, handler)
        self._producer: clients.Producer | Producer08
        zookeeper = ""
        if protocol == "0.8":
            self._producer = Producer08(producer_settings_08(config), plugins, name=name)
        else:
            settings = producer_settings(config)
            self._producer, zookeeper = (
                clients.Producer(settings, plugins, name=name),
                settings.zookeeper,
            )
        self._home: Alone | TaskMember = (
            TaskMember(
                metadata_program(), zookeeper, name=name, logger=LOGGER, kazoo=kazoo
            ).start()
            if zookeeper
            else Alone(name, LOGGER)
        )
        # A connection carries one request at a time; queues let every caller in.
        self._turn = Lock() if self._producer.settings.type == "sync" else nullcontext()

    def send(self, topic: str, *messages: Any, key: Any = None) -> None:
        """Send messages of one topic; the key determines the partition.

        Raises the errors of `send_all`.
        """
        self.send_all(ProducerData(topic, messages, key))

    def send_all(self, *data: ProducerData) -> None:
        """Send messages of several topics or keys, in one request to each broker.

        A synchronous producer of 0.7 returns when all requests are written to connections: 0.7
        has no acknowledgement. One of 0.8 returns when brokers have acknowledged the messages, by
        `request.required.acks`, and raises `FailedToSendMessage` after all retries. An
        asynchronous one returns when all messages are queued, and raises `QueueFull` if a queue
        has no room. Raises `ClientError`, `CallError` or `LogError` for other failures; some of
        the messages may have been sent by then.
        """
        with self._turn:
            self._call(self._producer.send(*data))

    def close(self) -> None:
        """Send the queued messages, and end the threads of the producer."""
        try:
            self._call(self._producer.close())
        except Closed:
            LOGGER.debug("%s was closed before", self.name)
        self._home.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()

    def _call(self, body: Coroutine[Any, Any, T]) -> T:
        return self._home.callers.call(body, self)
