"""A producer inside an application: it sends messages to real brokers.

    with Producer({"zk.connect": "localhost:2181"}) as producer:
        producer.send("clicks", b"click 1", b"click 2", key="me")

Everything that it does is done by the producer that the simulation runs. With `zk.connect`
it finds the brokers in ZooKeeper and follows them; with `broker.list` it needs none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext
from threading import Lock
from typing import Any, Self, TypeVar

from model.clients import producer as clients
from model.clients.discovery import discovery
from model.clients.hooks import EventHandler, Hooks
from model.clients.outgoing import Encoder
from model.clients.partitioners import custom
from model.clients.producer import Data, Plugins
from model.clients.producer_settings import producer_settings
from real.callers import Over
from real.companions import Alone, Companion

LOGGER = logging.getLogger("watchkeeper.producer")
T = TypeVar("T")


class Producer:
    """What an application sends messages with, from any of its threads."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        name: str = "producer",
        partitioner: Callable[[Any, int], int] | None = None,
        encode: Encoder | None = None,
        hooks: Hooks | None = None,
        handler: EventHandler | None = None,
        kazoo: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin at once; a setting that cannot be is refused with `InvalidConfig`.

        config        Kafka's settings by Kafka's names; `zk.connect` or `broker.list` must
                      be among them
        partitioner   which of so many partitions for a key, in place of `partitioner.class`
        encode        makes a payload of a message, in place of `serializer.class`
        hooks         what is called on a message's way through an asynchronous producer
        handler       sends the batches of an asynchronous producer
        kazoo         handed to kazoo as it is: `auth_data`, `use_ssl`, `ca` ...
        """
        self.name = name
        settings = producer_settings(config)
        chosen = custom(partitioner) if partitioner is not None else None
        plugins = Plugins(chosen, encode, hooks, handler)
        self._producer = clients.Producer(settings, plugins, name=name)
        self._home: Alone | Companion = (
            Companion(
                discovery(), settings.zookeeper, name=name, logger=LOGGER, kazoo=kazoo
            ).start()
            if settings.finds_brokers
            else Alone(name, LOGGER)
        )
        # A connection carries one request at a time; queues let everybody in.
        self._turn = Lock() if settings.type == "sync" else nullcontext()

    def send(self, topic: str, *messages: Any, key: Any = None) -> None:
        """Send messages of one topic; the key says to which partition.

        `send_all` says what may be raised.
        """
        self.send_all(Data(topic, messages, key))

    def send_all(self, *data: Data) -> None:
        """Send messages of several topics or with several keys, in one request to each broker.

        A synchronous producer comes back when all of it was handed to connections; 0.7 has no
        acknowledgement. An asynchronous one comes back when it is in the queues; `QueueFull`
        says that there was no room. A `ClientError` or `CallError` says what is wrong
        otherwise; a part may have been sent then.
        """
        with self._turn:
            self._call(self._producer.send(*data))

    def close(self) -> None:
        """Send what is waiting, and end; nothing can be sent any more."""
        try:
            self._call(self._producer.close())
        except Over:
            LOGGER.debug("%s was closed before", self.name)
        self._home.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.close()

    def _call(self, body: Coroutine[Any, Any, T]) -> T:
        return self._home.callers.call(body, self)
