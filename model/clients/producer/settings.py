"""The settings of a producer, by the names of Kafka 0.7 and with its defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from watchkeeper.model.clients.errors import InvalidConfig
from watchkeeper.model.clients.producer.partitioners import PARTITIONERS
from watchkeeper.model.clients.producer.record_batch import ENCODERS
from watchkeeper.model.configuration.value import plain


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """The settings of one producer; the table `PRODUCER_SETTINGS` describes each field."""

    brokers: tuple[tuple[int, str], ...]
    """`broker.list`: id and address of each broker; empty with ZooKeeper."""
    zookeeper: str
    partitioner: str
    type: Literal["sync", "async"]
    serializer: str
    codec: int
    compressed_topics: tuple[str, ...]
    table_retries: int
    retries: int
    buffer_bytes: int
    connect_timeout_ms: int
    socket_timeout_ms: int
    reconnect_messages: int
    reconnect_ms: int
    largest_message_bytes: int
    queue_time_ms: int
    queue_messages: int
    enqueue_timeout_ms: int
    batch_messages: int

    def codec_for(self, topic: str) -> int:
        """Return the codec of a topic: 0 none, 1 gzip, 2 snappy."""
        return self.codec if not self.compressed_topics or topic in self.compressed_topics else 0

    @property
    def finds_brokers(self) -> bool:
        """Whether it discovers the brokers in ZooKeeper."""
        return bool(self.zookeeper)


class Setting(NamedTuple):
    """One row of the table: the key, its field, the default and a description."""

    key: str
    field: str
    default: Any
    about: str
    least: int = 0
    choices: tuple[Any, ...] = ()
    read: Callable[[str, Any], Any] | None = None
    """Parses a value that is neither a number nor a choice."""


_BROKER = re.compile(r"(\d{1,9}):(\[[^\]]+\]|[^:,\s]+):(\d{1,5})")


def _brokers(key: str, value: Any) -> tuple[tuple[int, str], ...]:
    """Parse `id:host:port,id:host:port`."""
    expected = "expected id:host:port, with commas between several"
    if not isinstance(value, str):
        raise InvalidConfig(f"{key} is {value!r}", expected)
    found = [_BROKER.fullmatch(part.strip()) for part in value.split(",") if part.strip()]
    brokers = [(int(match[1]), f"{match[2]}:{match[3]}") for match in found if match is not None]
    if len(brokers) < len(found):
        raise InvalidConfig(f"{key} is {value!r}", expected)
    if len(dict(brokers)) < len(brokers):
        raise InvalidConfig(f"{key} is {value!r}", "an id occurs twice")
    return tuple(sorted(brokers))


def topics(key: str, value: Any) -> tuple[str, ...]:
    """Parse `clicks,views`."""
    if not isinstance(value, str):
        raise InvalidConfig(f"{key} is {value!r}", "expected topics, with commas between them")
    return tuple(part.strip() for part in value.split(",") if part.strip())


def text(key: str, value: Any) -> str:
    """Check that a value is text."""
    if not isinstance(value, str):
        raise InvalidConfig(f"{key} is {value!r}", "expected text")
    return value


PRODUCER_SETTINGS = (
    Setting(
        "broker.list", "brokers", (), "the brokers, if they are not discovered", read=_brokers
    ),
    Setting(
        "zk.connect", "zookeeper", "", "the ZooKeeper in which brokers are discovered", read=text
    ),
    Setting(
        "partitioner.class",
        "partitioner",
        "java",
        "the hash that maps a key to a partition: java (Java's hash), murmur2 or random",
        choices=tuple(PARTITIONERS),
    ),
    Setting(
        "producer.type",
        "type",
        "sync",
        "sync: messages are sent at once; async: in batches, after a delay",
        choices=("sync", "async"),
    ),
    Setting(
        "serializer.class",
        "serializer",
        "default",
        "the encoder of messages: default (they are bytes already) or string (UTF-8)",
        choices=tuple(ENCODERS),
    ),
    Setting(
        "compression.codec",
        "codec",
        0,
        "0: none; 1: gzip; 2: snappy",
        choices=(0, 1, 2),
    ),
    Setting(
        "compressed.topics",
        "compressed_topics",
        (),
        "the topics that are compressed; empty: all",
        read=topics,
    ),
    Setting(
        "zk.read.num.retries",
        "table_retries",
        3,
        "how often the brokers are read again for a message that has no broker",
    ),
    Setting("num.retries", "retries", 0, "how often a failed request is sent again"),
    Setting(
        "buffer.size",
        "buffer_bytes",
        102_400,
        "the send buffer of a connection",
        least=1,
    ),
    Setting(
        "connect.timeout.ms",
        "connect_timeout_ms",
        5000,
        "how long a connection that fails is retried; -1: for ever",
        least=-1,
    ),
    Setting(
        "socket.timeout.ms",
        "socket_timeout_ms",
        30_000,
        "how long a request may take",
        least=1,
    ),
    Setting(
        "reconnect.interval",
        "reconnect_messages",
        30_000,
        "the number of messages after which a connection is renewed",
        least=1,
    ),
    Setting(
        "reconnect.time.interval.ms",
        "reconnect_ms",
        10_000_000,
        "the time after which a connection is renewed",
        least=1,
    ),
    Setting(
        "max.message.size",
        "largest_message_bytes",
        1_000_000,
        "the largest payload, as it is sent (compressed, with a codec)",
        least=1,
    ),
    Setting(
        "queue.time",
        "queue_time_ms",
        5000,
        "async: how long messages are collected before they are sent",
        least=1,
    ),
    Setting(
        "queue.size",
        "queue_messages",
        10_000,
        "async: the largest number of queued messages",
        least=1,
    ),
    Setting(
        "queue.enqueueTimeout.ms",
        "enqueue_timeout_ms",
        0,
        "async: how long `send` waits for room in the queue; 0: not at all; -1: for ever",
        least=-1,
    ),
    Setting(
        "batch.size",
        "batch_messages",
        200,
        "async: the largest number of messages in one batch",
        least=1,
    ),
)

assert {row.field for row in PRODUCER_SETTINGS} == {
    field.name for field in fields(ProducerSettings)
}


def producer_settings(given: Mapping[str, Any]) -> ProducerSettings:
    """Return settings from a mapping of Kafka's names to values; the others are defaults.

    Raises `InvalidConfig` for an unknown name, an invalid value or a contradiction.
    """
    settings = ProducerSettings(**read_settings(PRODUCER_SETTINGS, given, of="producers"))
    for is_wrong, why in CONTRADICTIONS:
        if is_wrong(settings, given):
            raise InvalidConfig("settings of a producer", why)
    return settings


OF_QUEUES = ("queue.time", "queue.size", "queue.enqueueTimeout.ms", "batch.size")
"""The settings of asynchronous producers alone."""

CONTRADICTIONS: tuple[tuple[Callable[[ProducerSettings, Mapping[str, Any]], bool], str], ...] = (
    (
        lambda settings, given: (
            settings.type == "sync" and any(key in given for key in OF_QUEUES)
        ),
        f"{', '.join(OF_QUEUES)} are about the queue of an asynchronous producer; set "
        "producer.type: async, or leave them out",
    ),
    (
        lambda settings, given: bool(settings.compressed_topics) and not settings.codec,
        "compressed.topics is given, and compression.codec is 0; set a codec",
    ),
    (
        lambda settings, given: bool(settings.brokers) and "zk.read.num.retries" in given,
        "zk.read.num.retries is given with broker.list, and nothing is read from ZooKeeper then",
    ),
    (
        lambda settings, given: bool(settings.brokers) and settings.finds_brokers,
        "broker.list and zk.connect are both given; set one of them",
    ),
    (
        lambda settings, given: not settings.brokers and not settings.finds_brokers,
        "neither broker.list nor zk.connect is given; set one of them",
    ),
    (
        lambda settings, given: bool(settings.brokers) and "partitioner.class" in given,
        "partitioner.class is given with broker.list, but without ZooKeeper the producer does "
        "not know the partitions; each broker chooses one at random",
    ),
)
"""Contradictions between settings: a test, and the error text."""


def read_settings(
    rows: Iterable[Setting], given: Mapping[str, Any], *, of: str
) -> dict[str, Any]:
    """Return the value of each field of a table; those that are not given have defaults.

    Raises `InvalidConfig` for an unknown name, with `of` as what has no such setting, and for
    an invalid value.
    """
    keys = {row.key: row for row in rows}
    values = {row.field: row.default for row in keys.values()}
    for key, value in given.items():
        row = keys.get(key)
        if row is None:
            near = get_close_matches(key, keys, n=1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(keys)}"
            raise InvalidConfig(f"{key} is not a setting of {of}", hint)
        values[row.field] = _read_setting(row, value)
    return values


def _read_setting(row: Setting, value: Any) -> Any:
    """Return the value of a setting; raise `InvalidConfig` for an invalid one."""
    if row.read is not None:
        return row.read(row.key, value)
    found = plain(value)
    if row.choices:
        if found not in row.choices or isinstance(found, bool):
            words = ", ".join(map(str, row.choices))
            raise InvalidConfig(f"{row.key} is {value!r}", f"expected one of {words}")
        return found
    if type(found) is not int or found < row.least:
        raise InvalidConfig(
            f"{row.key} is {value!r}", f"expected a whole number of at least {row.least}"
        )
    return found
