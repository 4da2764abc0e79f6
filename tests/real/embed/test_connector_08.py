"""High-level consumers of 0.8 in an application: groups, leaders, keys, offsets, errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.real.embed.test_pages import Started, written
from tests.support.live.broker_process import HOST, BrokerProcess, brokers
from tests.support.live.moving_leader import OF_08, two_brokers
from tests.support.live_zookeeper import until
from watchkeeper import Connector, Producer
from watchkeeper.model.clients.errors import ConsumerTimeout
from watchkeeper.model.log.format.errors import InvalidFetchSize
from watchkeeper.real.embed.connector import MessageStream, Received
from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

PAGE = "docs/how-to/send-and-receive.md"
PARTITIONS = 4
NAMES = (f"name-{number}" for number in count())
FROM_THE_BEGIN = {"auto.offset.reset": "smallest", "consumer.timeout.ms": 500}


class Cluster(NamedTuple):
    """A ZooKeeper, and a broker of 0.8 that is registered there."""

    hosts: str
    broker: BrokerProcess

    @property
    def address(self) -> str:
        """The address of the broker."""
        return f"{HOST}:{self.broker.port}"

    def producer(self, **config: Any) -> Producer:
        """A producer that waits until its messages are stored."""
        given = {"metadata.broker.list": self.address, "request.required.acks": 1, **config}
        return Producer(given, protocol="0.8")

    def connector(self, group: str, **config: Any) -> Connector:
        """A member of a group; settings have `_` where Kafka's names have a dot."""
        given = {key.replace("_", "."): value for key, value in config.items()}
        return Connector(
            self.hosts, group=group, protocol="0.8", config={**FROM_THE_BEGIN, **given}
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with (
        ensemble_of(Implementation.PYTHON, inside=folder / "zk") as ensemble,
        brokers(folder / "logs") as start,
    ):
        ensemble.start()
        registry = ("--zookeeper", ensemble.hosts, "--id", "1")
        yield Cluster(
            ensemble.hosts, start(f"num.partitions={PARTITIONS}", more=OF_08 + registry)
        )


def received(stream: MessageStream[Any], at_least: int) -> list[Received[Any]]:
    """The messages of a stream, until there are enough."""
    found: list[Received[Any]] = []

    def has_enough() -> bool:
        with suppress(ConsumerTimeout):
            found.append(next(stream))
        return len(found) >= at_least

    until(has_enough)
    return found


# --- reading ---------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_a_group_reads_every_message_with_its_key(codec: str, cluster: Cluster) -> None:
    topic = next(NAMES)
    with cluster.producer(**{"compression.codec": codec}) as producer:
        for key in range(12):
            producer.send(topic, *(b"%d %d" % (key, part) for part in range(5)), key=f"k{key}")
        producer.send(topic, None, key="k3")

    with cluster.connector(topic) as connector:
        streams = connector.create_message_streams({topic: 2})[topic]
        connector.ready()
        until(lambda: len(connector.owned) == PARTITIONS)
        found: list[Received[Any]] = []
        for stream in streams:
            found += until_quiet(stream)

    assert {each.partition.topic for each in found} == {topic}
    assert sorted((each.key, each.value or b"") for each in found) == sorted(
        [(b"k%d" % key, b"%d %d" % (key, part)) for key in range(12) for part in range(5)]
        + [(b"k3", b"")]
    )
    assert [each.value for each in found if each.key == b"k3"][-1] is None
    for partition in {each.partition for each in found}:
        offsets = [each.offset for each in found if each.partition == partition]
        assert offsets == list(range(len(offsets)))


def until_quiet(stream: MessageStream[Any]) -> list[Received[Any]]:
    """The messages of a stream, until none has come for a while, and at least one."""
    found = received(stream, 1)
    while True:
        try:
            found.append(next(stream))
        except ConsumerTimeout:
            return found


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
def test_the_next_member_begins_where_the_last_one_has_stopped(
    storage: str, cluster: Cluster
) -> None:
    """Within a compressed set, too: what was handed on is not handed on again."""
    topic = next(NAMES)
    with cluster.producer(**{"compression.codec": "gzip"}) as producer:
        producer.send(topic, *(b"%d" % number for number in range(10)), key="one")

    with cluster.connector(topic, offsets_storage=storage) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        first = received(stream, 4)
        until(connector.commit_offsets)
    with cluster.connector(topic, offsets_storage=storage) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        rest = received(stream, 6)

    assert [each.value for each in first + rest] == [b"%d" % number for number in range(10)]


def test_without_a_committed_offset_it_begins_at_the_end_by_default(cluster: Cluster) -> None:
    topic = next(NAMES)
    with cluster.producer() as producer:
        producer.send(topic, b"before", key="a")
        with cluster.connector(topic, auto_offset_reset="largest") as connector:
            [stream] = connector.create_message_streams({topic: 1})[topic]
            until(lambda: len(connector.positions) == PARTITIONS)
            producer.send(topic, b"after", key="a")
            [only] = received(stream, 1)

    assert only.value == b"after"


def test_members_share_the_partitions_and_a_new_one_takes_some(cluster: Cluster) -> None:
    topic = next(NAMES)
    with cluster.producer() as producer:
        producer.send(topic, b"first", key="a")
        with cluster.connector(topic) as one:
            streams = one.create_message_streams_by_filter(f"{topic}.*")
            until(lambda: len(one.owned) == PARTITIONS)
            with cluster.connector(topic) as other:
                streams += other.create_message_streams({topic: 1})[topic]
                until(lambda: len(one.owned) == len(other.owned) == PARTITIONS // 2)
                assert not {*one.owned} & {*other.owned}
            until(lambda: len(one.owned) == PARTITIONS)
            for number in range(PARTITIONS * 4):
                producer.send(topic, b"later", key=f"k{number}")
            later = [each.value for each in received(streams[0], PARTITIONS * 4)]

    assert later.count(b"later") >= PARTITIONS * 4 - 1


# --- leaders ---------------------------------------------------------------------------


def test_it_follows_a_leader_that_moves_and_one_that_comes_back(tmp_path: Path) -> None:
    with two_brokers(tmp_path, leader=2) as two:
        cluster = Cluster(two.hosts, two.first)
        with (
            cluster.producer(**{"message.send.max.retries": 1000}) as producer,
            cluster.connector("billing") as connector,
        ):
            # These brokers do not replicate, so each has a message at offset 0 of its own.
            producer.send("clicks", b"in place of one")
            two.move_leader(1)
            [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
            producer.send("clicks", b"one")
            assert [each.value for each in received(stream, 1)] == [b"one"]

            two.move_leader(2)
            producer.send("clicks", b"two")
            assert [each.value for each in received(stream, 1)] == [b"two"]

            two.restart_second()
            producer.send("clicks", b"three")
            assert [each.value for each in received(stream, 1)] == [b"three"]


# --- errors ----------------------------------------------------------------------------


def test_a_message_that_is_larger_than_a_fetch_is_an_error_of_its_stream(
    cluster: Cluster,
) -> None:
    """Another partition of the stream goes on."""
    topic = next(NAMES)
    with cluster.producer() as producer:
        producer.send(topic, b"x" * 5_000, key="large")
    with cluster.connector(topic, fetch_message_max_bytes=1_000) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]

        def fails() -> bool:
            try:
                next(stream)
            except ConsumerTimeout:
                return False
            except InvalidFetchSize:
                return True
            raise AssertionError("no message fits")

        until(fails)
        with cluster.producer() as producer:
            for number in range(PARTITIONS * 4):
                producer.send(topic, b"small", key=f"k{number}")
        assert received(stream, 1)[0].value == b"small"


def test_a_protocol_that_there_is_not() -> None:
    with pytest.raises(ValueError, match=r"protocol is '0\.9'; expected '0\.7' or '0\.8'"):
        Connector("localhost:1", group="billing", protocol="0.9")  # type: ignore[arg-type]


def test_the_page(cluster: Cluster, tmp_path: Path) -> None:
    """Its program prints what a producer has sent, and nothing when it is started again."""
    program = list(written(PAGE, tmp_path))[-1]
    command = program.replace(" clicks", f" {next(NAMES)}")
    with cluster.producer() as producer:
        producer.send(command.split()[-1], b"one", None, key="ann")
    for lines in (["b'ann' b'one'", "b'ann' None"], []):
        with Started(command, cluster.hosts, tmp_path) as started:
            assert [line.split(maxsplit=2)[2] for line in started.end()] == lines
