"""A producer's settings, by the names of Kafka 0.7 and with its defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from model.clients.errors import InvalidConfig
from model.clients.outgoing import ENCODERS
from model.clients.partitioners import PARTITIONERS


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """What can be set of a producer."""

    brokers: tuple[tuple[int, str], ...]
    """`broker.list`: each with its id and where it listens; empty with ZooKeeper."""
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
        """How the messages of a topic are compressed: 0, not at all; 1, gzip; 2, snappy."""
        return self.codec if not self.compressed_topics or topic in self.compressed_topics else 0

    @property
    def finds_brokers(self) -> bool:
        """Whether it asks ZooKeeper which brokers there are."""
        return bool(self.zookeeper)


class Setting(NamedTuple):
    """One row of the table: a name, the field it sets, its default and what it does."""

    key: str
    field: str
    default: Any
    about: str
    least: int = 0
    choices: tuple[Any, ...] = ()
    read: Callable[[str, Any], Any] | None = None
    """What reads a value that is neither a number nor a choice."""


_BROKER = re.compile(r"(\d{1,9}):(\[[^\]]+\]|[^:,\s]+):(\d{1,5})")


def _brokers(key: str, value: Any) -> tuple[tuple[int, str], ...]:
    """Read `id:host:port,id:host:port`."""
    expected = "expected id:host:port, with commas between several"
    if not isinstance(value, str):
        raise InvalidConfig(f"{key} is {value!r}", expected)
    found = [_BROKER.fullmatch(part.strip()) for part in value.split(",") if part.strip()]
    brokers = [(int(one[1]), f"{one[2]}:{one[3]}") for one in found if one is not None]
    if len(brokers) < len(found):
        raise InvalidConfig(f"{key} is {value!r}", expected)
    if len(dict(brokers)) < len(brokers):
        raise InvalidConfig(f"{key} is {value!r}", "one id stands there twice")
    return tuple(sorted(brokers))


def _topics(key: str, value: Any) -> tuple[str, ...]:
    """Read `clicks,views`."""
    if not isinstance(value, str):
        raise InvalidConfig(f"{key} is {value!r}", "expected topics, with commas between them")
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidConfig(f"{key} is {value!r}", "expected text")
    return value


PRODUCER_SETTINGS = (
    Setting("broker.list", "brokers", (), "the brokers, where they are not found", read=_brokers),
    Setting(
        "zk.connect", "zookeeper", "", "the ZooKeeper in which brokers are found", read=_text
    ),
    Setting(
        "partitioner.class",
        "partitioner",
        "java",
        "what chooses a partition for a key: java (Java's hash), murmur2 or random",
        choices=tuple(PARTITIONERS),
    ),
    Setting(
        "producer.type",
        "type",
        "sync",
        "sync: each message is sent at once; async: several together, some time later",
        choices=("sync", "async"),
    ),
    Setting(
        "serializer.class",
        "serializer",
        "default",
        "what makes a payload of what is sent: default (it is one already) or string (UTF-8)",
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
        "the topics that are compressed; none named: all",
        read=_topics,
    ),
    Setting(
        "zk.read.num.retries",
        "table_retries",
        3,
        "how often the brokers are read anew for a message that has no broker",
    ),
    Setting("num.retries", "retries", 0, "how often a request that failed is sent again"),
    Setting(
        "buffer.size",
        "buffer_bytes",
        102_400,
        "the send buffer of a connection, where connections have one",
        least=1,
    ),
    Setting(
        "connect.timeout.ms",
        "connect_timeout_ms",
        5000,
        "how long a connection is tried again that cannot be made; -1: for ever",
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
        "after so many messages a connection is made anew",
        least=1,
    ),
    Setting(
        "reconnect.time.interval.ms",
        "reconnect_ms",
        10_000_000,
        "after so long a connection is made anew",
        least=1,
    ),
    Setting(
        "max.message.size",
        "largest_message_bytes",
        1_000_000,
        "the largest payload that is sent, as it is sent: compressed, if it is",
        least=1,
    ),
    Setting(
        "queue.time",
        "queue_time_ms",
        5000,
        "async: how long messages are gathered before they are sent",
        least=1,
    ),
    Setting(
        "queue.size",
        "queue_messages",
        10_000,
        "async: how many messages wait to be sent at most",
        least=1,
    ),
    Setting(
        "queue.enqueueTimeout.ms",
        "enqueue_timeout_ms",
        0,
        "async: how long to wait for room in the queue; 0: not at all; -1: for ever",
        least=-1,
    ),
    Setting(
        "batch.size",
        "batch_messages",
        200,
        "async: how many messages are sent together at most",
        least=1,
    ),
)

assert {row.field for row in PRODUCER_SETTINGS} == {one.name for one in fields(ProducerSettings)}

KEYS = {row.key: row for row in PRODUCER_SETTINGS}


def producer_settings(given: Mapping[str, Any]) -> ProducerSettings:
    """Put settings together from defaults and from what is given by Kafka's names.

    Raises InvalidConfig, in a sentence, for what is not understood or contradicts itself.
    """
    values = {row.field: row.default for row in PRODUCER_SETTINGS}
    for key, value in given.items():
        row = KEYS.get(key)
        if row is None:
            raise InvalidConfig(f"{key} is not a setting of producers", _near(key))
        values[row.field] = _read(row, value)
    settings = ProducerSettings(**values)
    for is_wrong, why in CONTRADICTIONS:
        if is_wrong(settings, given):
            raise InvalidConfig("settings of a producer", why)
    return settings


CONTRADICTIONS: tuple[tuple[Callable[[ProducerSettings, Mapping[str, Any]], bool], str], ...] = (
    (
        lambda settings, given: bool(settings.brokers) and settings.finds_brokers,
        "broker.list and zk.connect are both given; the brokers are either listed or found",
    ),
    (
        lambda settings, given: not settings.brokers and not settings.finds_brokers,
        "neither broker.list nor zk.connect is given; one of them has to say where brokers are",
    ),
    (
        lambda settings, given: bool(settings.brokers) and "partitioner.class" in given,
        "partitioner.class is given with broker.list, where nobody knows the partitions; each "
        "broker chooses one at random",
    ),
)
"""What must not be, and the sentence that says so."""


def _near(key: str) -> str:
    near = get_close_matches(key, KEYS, n=1)
    return f"did you mean {near[0]}?" if near else f"expected one of {', '.join(KEYS)}"


def _read(row: Setting, value: Any) -> Any:
    if row.read is not None:
        return row.read(row.key, value)
    if row.choices:
        if value not in row.choices or isinstance(value, bool):
            words = ", ".join(map(str, row.choices))
            raise InvalidConfig(f"{row.key} is {value!r}", f"expected one of {words}")
        return value
    if type(value) is not int or value < row.least:
        raise InvalidConfig(
            f"{row.key} is {value!r}", f"expected a whole number of at least {row.least}"
        )
    return value
