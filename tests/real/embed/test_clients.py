"""Producers, connectors and simple consumers of an application, with real brokers."""

from __future__ import annotations

import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from socket import SHUT_RDWR
from threading import Thread

import pytest
from kazoo.client import KazooClient

from tests.real.embed.test_pages import Started, written
from tests.support.live.broker_process import AT_ONCE, HOST, BrokerProcess, brokers
from tests.support.live_zookeeper import until
from tests.support.pages.session import ZOOKEEPER
from tests.support.patience import PATIENCE_S
from watchkeeper import Connector, Producer, SimpleConsumer
from watchkeeper.model.actor.rpc import Unreachable
from watchkeeper.model.clients.errors import (
    ConsumerTimeout,
    InvalidConfig,
    InvalidKey,
    QueueClosed,
    QueueFull,
)
from watchkeeper.model.clients.producer.interceptors import Hooks
from watchkeeper.model.clients.producer.record_batch import RecordBatch
from watchkeeper.model.log.format.errors import OffsetOutOfRange
from watchkeeper.real.client.client import Client
from watchkeeper.real.embed.connector import MessageStream
from watchkeeper.real.embed.simple_consumer import Wanted
from watchkeeper.real.process.sync_calls import Closed
from watchkeeper.real.zookeeper.ensemble import Ensemble

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

TOPICS = (f"topic-{number}" for number in count())
EARLY = {"autooffset.reset": "smallest", "fetcher.backoff.ms": 20}
MADE = b"the first message makes a topic"
PAGE = "docs/how-to/send-and-receive.md"
TWO_PARTITIONS = "num.partitions=2"


class Cluster:
    """A ZooKeeper and two brokers that every test of this module has for itself by its topic."""

    def __init__(self, hosts: str, brokers: tuple[BrokerProcess, ...]) -> None:
        self.hosts = hosts
        self.brokers = brokers

    @property
    def addresses(self) -> list[str]:
        return [f"{HOST}:{broker.port}" for broker in self.brokers]

    def make(self, topic: str) -> None:
        """Have two partitions of a topic on each broker, so that no key moves any more."""
        for number, address in enumerate(self.addresses):
            with Producer({"broker.list": f"{number}:{address}"}) as producer:
                producer.send(topic, MADE)
        client = KazooClient(self.hosts)
        client.start()
        path = f"/brokers/topics/{topic}"
        until(lambda: client.exists(path) and len(client.get_children(path)) == 2)
        client.stop()
        client.close()

    def producer(self, **config: object) -> Producer:
        return Producer({"zk.connect": self.hosts} | config)

    def connector(self, group: str, **config: object) -> Connector:
        return Connector(self.hosts, group=group, config=EARLY | config)


@pytest.fixture(scope="module")
def cluster(zookeeper: Ensemble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("clients")
    hosts = f"{zookeeper.hosts}/clients"
    with brokers(folder / "one") as start_one, brokers(folder / "two") as start_two:
        started = [
            start(*AT_ONCE, TWO_PARTITIONS, more=("--id", str(number), "--zookeeper", hosts))
            for number, start in enumerate((start_one, start_two))
        ]
        until(lambda: all(len(client.said) > 1 for client in started))
        yield Cluster(hosts, tuple(started))


@pytest.fixture
def topic() -> str:
    return next(TOPICS)


def read(stream: MessageStream[bytes], messages: int) -> list[bytes]:
    """So many payloads of a stream."""
    return [next(stream).value for _ in range(messages)]


# --- there and back --------------------------------------------------------------------


def test_every_message_comes_once_and_in_order(cluster: Cluster, topic: str) -> None:
    """Of one key all are in one partition, in the order in which they were sent."""
    cluster.make(topic)
    with cluster.producer() as producer:
        for number in range(60):
            producer.send(topic, b"%d" % number, key=f"key {number % 3}")
    with cluster.connector("billing") as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        read = [next(stream) for _ in range(60 + len(cluster.brokers))]
        got = [message for message in read if message.value != MADE]
        assert connector.commit_offsets()
    assert sorted(int(item.value) for item in got) == list(range(60))
    for key in range(3):
        of_key = [item for item in got if int(item.value) % 3 == key]
        assert len({place.partition for place in of_key}) == 1
        assert [int(message.value) for message in of_key] == list(range(key, 60, 3))


def test_a_reader_that_comes_next_goes_on(cluster: Cluster, topic: str) -> None:
    """What was read is committed when the connector leaves; the rest is the next one's."""
    with cluster.producer() as producer:
        producer.send(topic, *(b"%d" % number for number in range(10)), key="one partition")
    found = []
    for _ in range(2):
        with cluster.connector("next") as connector:
            [stream] = connector.create_message_streams({topic: 1})[topic]
            found.append(read(stream, 5))
            [position] = (position for position in connector.positions.values() if position)
            assert position > 0
    assert found == [[b"0", b"1", b"2", b"3", b"4"], [b"5", b"6", b"7", b"8", b"9"]]


def test_nothing_is_committed_without_a_request(cluster: Cluster, topic: str) -> None:
    """Without automatic commits only `commit_offsets` commits."""
    with cluster.producer() as producer:
        producer.send(topic, b"0", b"1", b"2", key="one partition")
    begins = []
    for number in range(3):
        connector = cluster.connector("asked", **{"autocommit.enable": False})
        with connector:
            [stream] = connector.create_message_streams({topic: 1})[topic]
            begins.append(next(stream).value)
            if number == 1:
                assert connector.commit_offsets()
    assert begins == [b"0", b"0", b"1"]


class BreaksTheFirstCommit:
    """Breaks the connection to ZooKeeper when the first commit is about to be sent."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.commits = 0

    def before(self, purpose: str) -> None:
        if purpose == "commit":
            self.commits += 1
            if self.commits == 1:
                self.client._kazoo._connection._socket.shutdown(SHUT_RDWR)

    def after(self, purpose: str) -> None:
        """Nothing happens after an answer."""


def test_a_commit_whose_connection_breaks_is_answered(cluster: Cluster, topic: str) -> None:
    """Long before its time limit; a commit over the next connection is written."""
    with cluster.producer() as producer:
        producer.send(topic, b"0", b"1", b"2", key="one partition")
    config = {"autocommit.enable": False, "zookeeper.session.timeout.ms": 30_000}
    with cluster.connector("broken", **config) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        read(stream, 1)
        assert connector._member is not None
        driver = connector._member.driver
        driver.steps = BreaksTheFirstCommit(driver.client)
        assert not connector.commit_offsets(timeout_s=3600)
        read(stream, 1)
        until(lambda: connector.commit_offsets(timeout_s=3600))
    with cluster.connector("broken", **config) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        assert read(stream, 1) == [b"2"]


def test_two_members_share(cluster: Cluster, topic: str) -> None:
    """Each partition is read by one of them, and by streams of their own."""
    with cluster.producer() as producer:
        for number in range(40):
            producer.send(topic, b"%d" % number, key=str(number))
    got: Counter[bytes] = Counter()
    with cluster.connector("share") as first, cluster.connector("share") as second:
        streams = [
            stream
            for connector in (first, second)
            for stream in connector.create_message_streams({topic: 2})[topic]
        ]
        readers = [
            Thread(target=lambda each=each: got.update(message.value for message in each))
            for each in streams
        ]
        for reader in readers:
            reader.start()
        until(lambda: len(got) == 40)
        until(lambda: len(first.owned) == 2 and len(second.owned) == 2)
        assert not set(first.owned) & set(second.owned)
        first.shutdown()
        second.shutdown()
        for reader in readers:
            reader.join(10)
            assert not reader.is_alive()
    assert set(got) == {b"%d" % number for number in range(40)}


def test_a_filter_takes_topics_that_come_later(cluster: Cluster, topic: str) -> None:
    """Two topics in one stream, one of which was not there when it was made."""
    with cluster.producer() as producer, cluster.connector("filter") as connector:
        producer.send(f"{topic}-a", b"a")
        [stream] = connector.create_message_streams_by_filter(f"{topic}-.*")
        assert next(stream).value == b"a"
        producer.send(f"{topic}-b", b"b")
        later = next(stream)
        assert (later.partition.topic, later.value) == (f"{topic}-b", b"b")


@pytest.mark.parametrize("codec", [1, 2])
def test_messages_that_are_compressed(codec: int, cluster: Cluster, topic: str) -> None:
    """Gathered in a queue, compressed together, decoded one by one."""
    text = [f"click {number}" for number in range(50)]
    config = {"producer.type": "async", "serializer.class": "string"}
    with cluster.producer(**config, **{"compression.codec": codec}) as producer:
        for word in text:
            producer.send(topic, word, key="one partition")
    connector = Connector(cluster.hosts, group="text", config=EARLY, decode=bytes.decode)
    with connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        assert [next(stream).value for _ in text] == text


# --- streams that do not go on -----------------------------------------------------------


def test_a_stream_with_nothing_to_read(cluster: Cluster, topic: str) -> None:
    """It says so after `consumer.timeout.ms`, and is read on."""
    with (
        cluster.producer() as producer,
        cluster.connector("timeout", **{"consumer.timeout.ms": 100}) as connector,
    ):
        [stream] = connector.create_message_streams({topic: 1})[topic]
        with pytest.raises(ConsumerTimeout, match="no message came"):
            next(stream)
        producer.send(topic, b"late")
        for message in patiently(stream):
            assert message == b"late"
            return


def patiently(stream: MessageStream[bytes]) -> Iterator[bytes]:
    while True:
        try:
            yield next(stream).value
        except ConsumerTimeout:
            continue


def test_a_reader_that_is_interrupted_loses_nothing(cluster: Cluster, topic: str) -> None:
    """The interruption comes while the stream waits; the message comes in the next call."""
    patience = {"consumer.timeout.ms": int(1000 * PATIENCE_S)}
    with cluster.producer() as producer, cluster.connector("interrupt", **patience) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        connector.ready()
        main = threading.main_thread().ident
        assert main is not None
        interruption = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))

        def wait() -> None:
            interruption.start()
            next(stream)

        with pytest.raises(KeyboardInterrupt):
            wait()
        producer.send(topic, b"0", b"1", b"2", key="one partition")
        assert read(stream, 3) == [b"0", b"1", b"2"]


def test_a_message_that_cannot_be_decoded(cluster: Cluster, topic: str) -> None:
    """What the decoder raises comes to a reader that reads; the next message is the next."""
    with cluster.producer() as producer:
        producer.send(topic, b"1", b"one", b"2", key="one partition")
    connector = Connector(cluster.hosts, group="numbers", config=EARLY, decode=int)
    with connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        assert next(stream).value == 1
        with pytest.raises(ValueError, match="one"):
            next(stream)
        assert next(stream).value == 2


def test_a_thread_that_fails_ends_the_streams(cluster: Cluster, topic: str) -> None:
    """No process waits for ever for a member that is gone, and the reason is said."""
    with cluster.producer() as producer:
        producer.send(topic, b"1")
    connector = cluster.connector("fails")
    connector._connector.fetcher.listener.on_reset = lambda *what: 1 / 0  # type: ignore[method-assign]
    with connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        with pytest.raises(Closed, match="is over: halted") as failed:
            next(stream)
        assert isinstance(failed.value.__cause__, ZeroDivisionError)


def test_streams_are_made_once(cluster: Cluster, topic: str) -> None:
    """And a reader that has none yet cannot commit."""
    with cluster.connector("once") as connector:
        with pytest.raises(RuntimeError, match="make the streams first"):
            connector.commit_offsets()
        with pytest.raises(InvalidConfig, match="no topic"):
            connector.create_message_streams({})
        with pytest.raises(ValueError, match="expected letters"):
            connector.create_message_streams({"a/b": 1})
        connector.create_message_streams({topic: 1})
        with pytest.raises(InvalidConfig, match="name all topics in one call"):
            connector.create_message_streams({topic: 1})


# --- producers -------------------------------------------------------------------------


def test_a_list_of_brokers_needs_no_zookeeper(cluster: Cluster, topic: str) -> None:
    """The broker chooses the partition."""
    listed = ",".join(f"{number}:{at}" for number, at in enumerate(cluster.addresses))
    with Producer({"broker.list": listed}) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number)

    def found() -> list[bytes]:
        payloads = []
        for address in cluster.addresses:
            with SimpleConsumer(address) as consumer:
                for partition in range(2):
                    payloads += [
                        message.payload for message in consumer.fetch(topic, partition, 0)
                    ]
        return payloads

    until(lambda: len(found()) == 20)
    assert sorted(map(int, found())) == list(range(20))


def test_a_partitioner_of_ones_own(cluster: Cluster, topic: str) -> None:
    """It is a plain function; a named one says which keys it takes."""
    with (
        Producer({"zk.connect": cluster.hosts}, partitioner=lambda key, number: key - 7) as own,
        cluster.producer() as second,
        cluster.connector("own") as connector,
    ):
        own.send(topic, b"0", key=7)
        with pytest.raises(InvalidKey, match="java takes text; murmur2"):
            second.send(topic, b"1", key=7)
        for number in range(9):
            own.send(topic, b"%d" % number, key=7)
        [stream] = connector.create_message_streams({topic: 1})[topic]
        assert {next(stream).partition.name for _ in range(10)} == {"0-0"}


def send_all(producer: Producer, messages: int) -> None:
    for number in range(messages):
        producer.send("clicks", b"%d" % number)


def test_a_queue_that_is_full() -> None:
    """It says so; hooks hear of it, and of everything that is sent."""

    class Heard(Hooks):
        def __init__(self) -> None:
            self.added: list[bool] = []

        async def after_enqueue(self, item: RecordBatch, *, was_added: bool) -> None:
            self.added.append(was_added)

    hooks = Heard()
    config = {
        "broker.list": f"0:{HOST}:1",
        "producer.type": "async",
        "batch.size": 1,
        "queue.size": 2,
        "connect.timeout.ms": 200,
    }
    with Producer(config, hooks=hooks) as producer, pytest.raises(QueueFull, match="no room"):
        send_all(producer, 10)
    assert hooks.added.count(False) == 1
    assert hooks.added[-1] is False


def test_a_producer_whose_sending_thread_fails_is_over() -> None:
    """No caller waits for a thread that has ended; the error names the reason."""

    def refuses(message: object) -> bytes:
        raise ValueError(f"cannot be encoded: {message!r}")

    config = {"broker.list": f"0:{HOST}:1", "producer.type": "async", "queue.time": 1}
    producer = Producer(config, encode=refuses)

    def is_over() -> bool:
        try:
            producer.send("clicks", b"1")
        except Closed as closed:
            return "cannot be encoded: b'1'" in str(closed)
        return False

    until(is_over)
    closing = Thread(target=producer.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()


def test_a_broker_that_is_not_there() -> None:
    """One error, after the time that is set."""
    config = {"broker.list": f"0:{HOST}:1", "connect.timeout.ms": 50}
    with Producer(config) as producer, pytest.raises(Unreachable, match="no connection"):
        producer.send("clicks", b"1")


def test_settings_that_cannot_be() -> None:
    """They are refused before anything begins."""
    with pytest.raises(InvalidConfig, match="set one of them"):
        Producer({})
    with pytest.raises(ValueError, match="expected one of"):
        Connector("localhost:2181", group="billing", variant="hardend")


def test_what_is_closed_takes_nothing() -> None:
    """Neither a second time."""
    producer = Producer({"broker.list": f"0:{HOST}:1"})
    producer.close()
    producer.close()
    with pytest.raises(QueueClosed, match="takes no more"):
        producer.send("clicks", b"late")


# --- simple consumers --------------------------------------------------------------------


def test_a_simple_consumer(cluster: Cluster, topic: str) -> None:
    """Fetch, fetch from several partitions, ask for offsets, and hear what is wrong."""
    address = cluster.addresses[0]
    with Producer({"broker.list": f"0:{address}"}) as producer:
        producer.send(topic, b"1", b"2", b"3")
    with SimpleConsumer(address) as consumer:
        until(lambda: any(consumer.latest(topic, partition) for partition in range(2)))
        ends = [consumer.latest(topic, partition) for partition in range(2)]
        full = ends.index(max(ends))
        assert consumer.earliest(topic, full) == 0
        both = consumer.multifetch(*(Wanted(topic, partition, 0) for partition in range(2)))
        assert [message.payload for message in both[full]] == [b"1", b"2", b"3"]
        assert both[1 - full] == []
        second = both[full][1]
        assert consumer.fetch(topic, full, second.offset)[0].payload == b"2"
        assert consumer.fetch(topic, full, ends[full]) == []
        with pytest.raises(OffsetOutOfRange, match=f"{topic}-{full}, offset 100000"):
            consumer.fetch(topic, full, 100_000)


# --- what is shown -----------------------------------------------------------------------


def test_the_page(zookeeper: Ensemble, tmp_path: Path) -> None:
    """The programs of the page, beside each other and one after the other."""
    hosts = f"{zookeeper.hosts}/page"
    shown = written(PAGE, tmp_path)
    assert list(shown) == [
        f"python send.py {ZOOKEEPER}",
        f"python receive.py {ZOOKEEPER}",
        f"python receive_08.py {ZOOKEEPER} clicks",
    ]
    send, receive, _ = shown
    clicks = sorted(f"click {number}" for number in range(10))
    with brokers(tmp_path / "logs") as start:
        broker = start(*AT_ONCE, TWO_PARTITIONS, more=("--zookeeper", hosts))
        until(lambda: len(broker.said) > 1)
        with Started(send, hosts, tmp_path) as sending:
            assert sending.end() == []
        with (
            Started(receive, hosts, tmp_path) as first,
            Started(receive, hosts, tmp_path) as second,
        ):
            got = " ".join(first.end() + second.end())
        # two streams print at the same time: a line may hold the messages of both
        assert set(re.findall(r"click \d", got)) == set(clicks), got
        with Started(receive, hosts, tmp_path) as third:
            assert third.end() == []
