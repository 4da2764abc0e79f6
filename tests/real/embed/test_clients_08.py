"""Producers and simple consumers of 0.8 in an application, with brokers that speak it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.live.broker_process import HOST, BrokerProcess, brokers
from tests.support.live.moving_leader import OF_08, address_of, two_brokers
from tests.support.live_zookeeper import until
from watchkeeper import Producer, SimpleConsumer
from watchkeeper.model.clients.errors import (
    ClientError,
    InvalidConfig,
    InvalidKey,
    QueueClosed,
    QueueFull,
)
from watchkeeper.model.clients_08.errors import FailedToSendMessage, RefusedByBroker
from watchkeeper.model.clients_08.partitioners import array_hash
from watchkeeper.real.embed.simple_consumer import Wanted
from watchkeeper.real.ports import free_ports
from watchkeeper.real.process.sync_calls import Closed

PARTITIONS = 3
TOPICS = (f"topic-{number}" for number in count())
AT_ONCE = {"producer.type": "async", "queue.buffering.max.ms": 1}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker of 0.8 with three partitions a topic; each test uses its own topic."""
    with brokers(tmp_path_factory.mktemp("broker") / "logs") as start:
        yield start(f"num.partitions={PARTITIONS}", more=OF_08)


def producer_of(process: BrokerProcess, **config: Any) -> Producer:
    """A producer; settings have `_` where Kafka's names have a dot."""
    given = {key.replace("_", "."): value for key, value in config.items()}
    return Producer({"metadata.broker.list": address_of(process), **given}, protocol="0.8")


def read(process: BrokerProcess, topic: str) -> list[list[Any]]:
    """The messages of a topic, partition by partition."""
    with SimpleConsumer(address_of(process), protocol="0.8") as consumer:
        partitions = consumer.leaders(topic)
        return [consumer.fetch(topic, partition, 0) for partition in partitions]


def payloads(process: BrokerProcess, topic: str) -> list[bytes]:
    """All payloads of a topic, sorted."""
    return sorted(each.payload for some in read(process, topic) for each in some)


# --- sending ---------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_what_is_sent_is_read(acks: int, codec: str, broker: BrokerProcess) -> None:
    """At once or through the queue; without a key to one partition, in order."""
    topic, sent = next(TOPICS), [b"message %d" % number for number in range(20)]
    with producer_of(broker, request_required_acks=acks, compression_codec=codec) as producer:
        producer.send(topic, *sent[:7])
        producer.send(topic, *sent[7:10])
    config = {"metadata.broker.list": address_of(broker), "request.required.acks": acks}
    with Producer(config | AT_ONCE, protocol="0.8") as producer:
        for message in sent[10:]:
            producer.send(topic, message)
    until(lambda: len(payloads(broker, topic)) == len(sent))
    found = read(broker, topic)
    assert payloads(broker, topic) == sorted(sent)
    for some in found:
        assert [each.offset for each in some] == list(range(len(some)))
        numbers = [int(each.payload.split()[1]) for each in some]
        assert [each for each in numbers if each < 10] == sorted(n for n in numbers if n < 10)
    assert sum(any(int(m.payload.split()[1]) < 10 for m in some) for some in found) == 1


def test_a_key_chooses_the_partition(broker: BrokerProcess) -> None:
    """By Java's hash, whose absolute value is 0 where there is none; or by another one."""
    topic = next(TOPICS)
    keys = [*(f"key {number}" for number in range(9)), "polygenelubricants", b"abc", b"\xff\x01"]
    with producer_of(broker, request_required_acks=1) as producer:
        for key in keys:
            producer.send(topic, b"x", key=key)
            producer.send(topic, b"y", None, key=key)
    found = read(broker, topic)
    for partition, some in enumerate(found):
        assert {_java(each.key) for each in some} <= {partition}
    sent = {key if isinstance(key, bytes) else key.encode() for key in keys}
    values = {key: [] for key in sent}  # type: ignore[var-annotated]
    for some in found:
        for each in some:
            values[each.key].append(each.payload)
    assert values == {key: [b"x", b"y", None] for key in sent}
    assert array_hash(b"abc") == 126145

    other = next(TOPICS)
    config = {"metadata.broker.list": address_of(broker), "request.required.acks": 1}
    with Producer(config, protocol="0.8", partitioner=lambda key, number: number - 1) as last:
        last.send(other, b"x", key="any")
    assert [len(some) for some in read(broker, other)] == [0, 0, 1]


def _java(key: bytes) -> int:
    """The partition of a key of these tests: those that are not text are two."""
    if key in (b"abc", b"\xff\x01"):
        return abs(array_hash(key)) % PARTITIONS
    value = 0
    for letter in key.decode():
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return 0 if signed == -(1 << 31) else abs(signed) % PARTITIONS


def test_a_queue_that_is_full_and_a_producer_that_is_closed(broker: BrokerProcess) -> None:
    """While a batch is retried, others wait; a producer that closes sends what is queued."""
    [port] = free_ports(1)
    small = {"queue.buffering.max.messages": 1, "queue.enqueue.timeout.ms": 0}
    nowhere = {"metadata.broker.list": f"{HOST}:{port}", "retry.backoff.ms": 300}
    config = {**nowhere, **AT_ONCE, **small, "batch.num.messages": 1}

    def send_many() -> None:
        with Producer(config, protocol="0.8") as full:
            for number in range(5):
                full.send("clicks", b"m%d" % number)

    with pytest.raises(QueueFull):
        send_many()

    topic = next(TOPICS)
    slow = {"producer.type": "async", "queue.buffering.max.ms": 60_000}
    acknowledged = {"metadata.broker.list": address_of(broker), "request.required.acks": 1}
    producer = Producer({**acknowledged, **slow}, protocol="0.8")
    producer.send(topic, b"sent", b"too")
    producer.close()
    assert payloads(broker, topic) == [b"sent", b"too"]
    with pytest.raises((QueueClosed, Closed)):
        producer.send(topic, b"late")


# --- brokers that fail, leaders that move ----------------------------------------------


def test_a_broker_that_comes_back(tmp_path: Path) -> None:
    """What is sent meanwhile is retried; when the retries are over, an error says why."""
    with brokers(tmp_path / "logs") as start:
        broker = start(more=OF_08)
        again = (*OF_08, "--port", str(broker.port))
        few = producer_of(
            broker, request_required_acks=1, retry_backoff_ms=10, message_send_max_retries=1
        )
        many = producer_of(
            broker, request_required_acks=1, retry_backoff_ms=50, message_send_max_retries=1000
        )
        with few, many:
            many.send("clicks", b"one")
            broker.kill()
            with pytest.raises(FailedToSendMessage, match="clicks, after 2 tries; the last"):
                few.send("clicks", b"never")
            broker = start(more=again)
            many.send("clicks", b"two")
        assert payloads(broker, "clicks") == [b"one", b"two"]


def test_a_leader_that_moves(tmp_path: Path) -> None:
    """The old leader refuses what is sent to it; it is sent to the new one."""
    config = {"request_required_acks": 1, "message_send_max_retries": 1000}
    with two_brokers(tmp_path, leader=1) as two, producer_of(two.first, **config) as producer:
        producer.send("clicks", b"one")
        two.move_leader(2)
        producer.send("clicks", b"two", b"three")
        with SimpleConsumer(address_of(two.second), protocol="0.8") as consumer:
            found = [each.payload for each in consumer.fetch("clicks", 0, 0)]
        assert found == [b"two", b"three"]
        with (
            SimpleConsumer(address_of(two.first), protocol="0.8") as consumer,
            pytest.raises(RefusedByBroker, match="NOT_LEADER_FOR_PARTITION"),
        ):
            consumer.fetch("clicks", 0, 0)


# --- the simple consumer ---------------------------------------------------------------


def test_a_simple_consumer_reads_from_any_offset(broker: BrokerProcess) -> None:
    topic = next(TOPICS)
    with producer_of(broker, request_required_acks=1, compression_codec="gzip") as producer:
        for key in ("a", "b", "c"):
            producer.send(topic, *(b"%d" % number for number in range(6)), key=key)
    with SimpleConsumer(address_of(broker), protocol="0.8") as consumer:
        ends = [consumer.latest(topic, partition) for partition in range(PARTITIONS)]
        assert (sum(ends), consumer.earliest(topic, 0)) == (18, 0)
        partition = ends.index(max(ends))
        [all_of_it, rest] = consumer.multifetch(
            Wanted(topic, partition, 0), Wanted(topic, partition, 4)
        )
        assert rest == all_of_it[4:]
        assert all_of_it[-1].next_offset == ends[partition]
        with pytest.raises(RefusedByBroker, match=r"offset 99: .*\(OFFSET_OUT_OF_RANGE\)"):
            consumer.fetch(topic, partition, 99)
        with pytest.raises(RefusedByBroker, match="UNKNOWN_TOPIC_OR_PARTITION"):
            consumer.fetch("none", 0, 0)
    with (
        SimpleConsumer(address_of(broker)) as of_07,
        pytest.raises(ValueError, match=r"expected protocol='0\.8'"),
    ):
        of_07.leaders(topic)


# --- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({}, r"metadata\.broker\.list is not given"),
        ({"broker.list": "0:a:1"}, "broker.list is not a setting of producers of 0.8"),
        ({"metadata.broker.list": "a"}, "expected host:port"),
        ({"metadata.broker.list": "a:1", "request.required.acks": -2}, "at least -1"),
        ({"metadata.broker.list": "a:1", "batch.num.messages": 9}, "of an asynchronous producer"),
        ({"metadata.broker.list": "a:1", "compressed.topics": "t"}, "set a codec"),
    ],
)
def test_settings_that_are_wrong(config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidConfig, match=sentence):
        Producer(config, protocol="0.8")


def test_messages_that_cannot_be_sent(broker: BrokerProcess) -> None:
    with producer_of(broker, request_required_acks=1, retry_backoff_ms=1) as producer:
        with pytest.raises(InvalidKey, match="expected text or bytes"):
            producer.send("keys", b"x", key=7)
        with pytest.raises(ClientError, match="the default encoder takes bytes"):
            producer.send("keys", "text")
        with pytest.raises(FailedToSendMessage, match="MESSAGE_SIZE_TOO_LARGE for large-"):
            producer.send("large", b"x" * 2_000_000, key="k")
