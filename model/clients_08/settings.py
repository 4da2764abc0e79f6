"""The settings of a producer of 0.8, by the names of Kafka 0.8.2 and with its defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from watchkeeper.model.clients.errors import InvalidConfig
from watchkeeper.model.clients.producer.partitioners import Partitioner, at_random, by_murmur2
from watchkeeper.model.clients.producer.record_batch import ENCODERS
from watchkeeper.model.clients.producer.settings import Setting, read_settings, text, topics
from watchkeeper.model.clients_08.partitioners import by_java_hash_08
from watchkeeper.model.log.format.codecs import Codec

PARTITIONERS: dict[str, Partitioner] = {
    "java": by_java_hash_08,
    "murmur2": by_murmur2,
    "random": at_random,
}
"""Partitioners by their name in `partitioner.class`."""
CODECS = {codec.name.lower(): codec for codec in Codec}


@dataclass(frozen=True, slots=True)
class ProducerSettings08:
    """The settings of one producer; the table `PRODUCER_SETTINGS_08` describes each field."""

    brokers: tuple[str, ...]
    """Addresses; empty if none is given, which is an error."""
    client_id: str
    acks: int
    timeout_ms: int
    type: Literal["sync", "async"]
    partitioner: str
    serializer: str
    codec: str
    compressed_topics: tuple[str, ...]
    retries: int
    backoff_ms: int
    refresh_ms: int
    buffer_bytes: int
    queue_time_ms: int
    queue_messages: int
    enqueue_timeout_ms: int
    batch_messages: int

    def codec_for(self, topic: str) -> Codec:
        """Return the codec of a topic."""
        is_compressed = not self.compressed_topics or topic in self.compressed_topics
        return CODECS[self.codec] if is_compressed else Codec.NONE


_ADDRESS = re.compile(r"(\[[^\]]+\]|[^:,\s]+):(\d{1,5})")


def _addresses(key: str, value: Any) -> tuple[str, ...]:
    """Parse `host:port,host:port`."""
    parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else [""]
    if not all(map(_ADDRESS.fullmatch, parts)):
        expected = "expected host:port, with commas between several"
        raise InvalidConfig(f"{key} is {value!r}", expected)
    return tuple(parts)


PRODUCER_SETTINGS_08 = (
    Setting(
        "metadata.broker.list",
        "brokers",
        (),
        "some brokers of the cluster; they name the others",
        read=_addresses,
    ),
    Setting("client.id", "client_id", "", "the name in the broker's log", read=text),
    Setting(
        "request.required.acks",
        "acks",
        0,
        "0: no response; 1: the leader has the messages; -1: every replica in sync has them; "
        "more than 1: so many of them, with the leader",
        least=-1,
    ),
    Setting(
        "request.timeout.ms",
        "timeout_ms",
        10_000,
        "how long a broker may wait for replicas, and a producer for a response",
        least=1,
    ),
    Setting(
        "producer.type",
        "type",
        "sync",
        "sync: messages are sent at once; async: in batches, after a delay",
        choices=("sync", "async"),
    ),
    Setting(
        "partitioner.class",
        "partitioner",
        "java",
        "the hash that maps a key to a partition: java (Java's hash), murmur2 or random",
        choices=tuple(PARTITIONERS),
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
        "none",
        "none, gzip, snappy or lz4",
        choices=tuple(CODECS),
    ),
    Setting(
        "compressed.topics",
        "compressed_topics",
        (),
        "the topics that are compressed; empty: all",
        read=topics,
    ),
    Setting(
        "message.send.max.retries",
        "retries",
        3,
        "how often messages that were not acknowledged are sent again",
    ),
    Setting(
        "retry.backoff.ms",
        "backoff_ms",
        100,
        "the pause before that, in which a new leader may be elected",
    ),
    Setting(
        "topic.metadata.refresh.interval.ms",
        "refresh_ms",
        600_000,
        "how often leaders are looked up without a failure; -1: never; 0: before each request",
        least=-1,
    ),
    Setting("send.buffer.bytes", "buffer_bytes", 102_400, "that of a connection", least=1),
    Setting(
        "queue.buffering.max.ms",
        "queue_time_ms",
        5000,
        "async: how long messages are collected before they are sent",
        least=1,
    ),
    Setting(
        "queue.buffering.max.messages",
        "queue_messages",
        10_000,
        "async: the largest number of queued messages",
        least=1,
    ),
    Setting(
        "queue.enqueue.timeout.ms",
        "enqueue_timeout_ms",
        -1,
        "async: how long `send` waits for room in the queue; 0: not at all; -1: for ever",
        least=-1,
    ),
    Setting(
        "batch.num.messages",
        "batch_messages",
        200,
        "async: the largest number of messages in one batch",
        least=1,
    ),
)

assert {row.field for row in PRODUCER_SETTINGS_08} == {
    field.name for field in fields(ProducerSettings08)
}

MOST_REPLICAS = 2**15 - 1
"""In a request: `request.required.acks` takes two bytes."""
OF_QUEUES = (
    "queue.buffering.max.ms",
    "queue.buffering.max.messages",
    "queue.enqueue.timeout.ms",
    "batch.num.messages",
)
"""The settings of asynchronous producers alone."""


def producer_settings_08(given: Mapping[str, Any]) -> ProducerSettings08:
    """Return settings from a mapping of Kafka's names to values; the others are defaults.

    Raises `InvalidConfig` for an unknown name, an invalid value or a contradiction.
    """
    values = read_settings(PRODUCER_SETTINGS_08, given, of="producers of 0.8")
    settings = ProducerSettings08(**values)
    if why := _contradiction(settings, given):
        raise InvalidConfig("settings of a producer of 0.8", why)
    return settings


def _contradiction(settings: ProducerSettings08, given: Mapping[str, Any]) -> str:
    if not settings.brokers:
        return "metadata.broker.list is not given; name some brokers of the cluster"
    if settings.acks > MOST_REPLICAS:
        return f"request.required.acks is {settings.acks}; expected at most {MOST_REPLICAS}"
    if settings.type == "sync" and any(key in given for key in OF_QUEUES):
        return (
            f"{', '.join(OF_QUEUES)} are about the queue of an asynchronous producer; set "
            "producer.type: async, or leave them out"
        )
    if settings.compressed_topics and settings.codec == "none":
        return "compressed.topics is given, and compression.codec is none; set a codec"
    return ""
