"""A live broker of 0.8: requests over sockets, other clients, damaged frames, its end."""

from __future__ import annotations

import json
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from tests.support.live.broker_process import BrokerProcess, Starts, brokers, is_closed, received
from tests.support.live_zookeeper import until
from tests.support.log.vectors import unhex
from watchkeeper.cli.main import run_command
from watchkeeper.model.log.format import requests
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.frames import WireStruct
from watchkeeper.model.log.format.message_08 import KeyedMessage, Record, encode, records, wrap
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import FetchRequest, PartitionFetch, PartitionFetched
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequest,
    CommitRequestV1,
    CommittedRequest,
    CommittedRequestV1,
    ConsumerMetadataRequest,
    PartitionCommit,
    PartitionCommitted,
    PartitionNumber,
    PartitionOutcome,
    TimedCommit,
)
from watchkeeper.model.wire_08.metadata import MetadataRequest
from watchkeeper.model.wire_08.produce import PartitionMessages, ProduceRequest
from watchkeeper.model.wire_08.table import decode_response, encode_request
from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

OF_0_8 = ("--protocol", "0.8")
TWO = encode([KeyedMessage(None, b"a"), KeyedMessage(b"k", b"b")])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starts]:
    """Starts brokers in one folder."""
    with brokers(tmp_path / "logs") as start:
        yield start


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests that do not harm it; each test uses its own topic."""
    with brokers(tmp_path_factory.mktemp("shared") / "logs") as start:
        yield start(more=OF_0_8)


def response_to(request: WireStruct, connection: socket.socket) -> Any:
    """The response to a request that was sent."""
    (size_bytes,) = struct.unpack(">i", received(connection, 4))
    return decode_response(request, received(connection, size_bytes), 1)


def ask(request: WireStruct, connection: socket.socket) -> Any:
    """Send a request, and wait for its response."""
    connection.sendall(encode_request(request, 1, "test"))
    return response_to(request, connection)


def produce(connection: socket.socket, topic: str, data: bytes = TWO) -> Any:
    """Append to the first partition of a topic."""
    parts = (OfTopic(topic, (PartitionMessages(0, data),)),)
    return ask(ProduceRequest(1, 500, parts), connection).topics[0].parts[0]


def fetch_of(topic: str, offset: int = 0, wait_ms: int = 0) -> FetchRequest:
    """A fetch from the first partition of a topic."""
    return FetchRequest(wait_ms, 1, (OfTopic(topic, (PartitionFetch(0, offset, 1 << 22),)),))


def values(part: PartitionFetched) -> list[bytes | None]:
    """The values of what was fetched."""
    return [one.value for one in records(part.messages)]


def fetched(connection: socket.socket, topic: str, offset: int = 0) -> list[bytes | None]:
    """The values of a topic from an offset on."""
    return values(ask(fetch_of(topic, offset), connection).topics[0].parts[0])


# --- what is answered ------------------------------------------------------------------


def test_it_says_what_it_speaks(shared: BrokerProcess) -> None:
    assert shared.said[0].startswith("broker 0 of Kafka 0.8 listens on 127.0.0.1:")


def test_golden_bytes_over_a_socket(shared: BrokerProcess) -> None:
    """Metadata creates the topic; then messages are appended and fetched."""
    ask_metadata = unhex("0000001b 0003 0000 00000007 0001 63 00000001 000a 676f6c64656e2d627974")
    fields = "00000001 000a 676f6c64656e2d627974 00000001 00000000"
    entry = "0000000000000000 00000013 87a77ab2 00 00 ffffffff 00000005 68656c6c6f"
    produce = unhex(
        f"0000004c 0000 0000 00000008 0001 63 0001 000005dc {fields} 0000001f {entry}"
    )
    fetch = unhex(
        f"0000003b 0001 0000 00000009 0001 63 ffffffff 00000000 00000001 {fields}"
        "0000000000000000 00000400"
    )
    with shared.connect() as connection:
        connection.sendall(ask_metadata)
        (size_bytes,) = struct.unpack(">i", received(connection, 4))
        port = struct.pack(">i", shared.port).hex()
        assert received(connection, size_bytes) == unhex(
            f"00000007 00000001 00000000 0009 3132372e302e302e31 {port}"
            "00000001 0000 000a 676f6c64656e2d627974"
            "00000001 0000 00000000 00000000 00000001 00000000 00000001 00000000"
        )
        connection.sendall(produce)
        answer = unhex(f"00000026 00000008 {fields} 0000 0000000000000000")
        assert received(connection, len(answer)) == answer
        connection.sendall(fetch)
        answer = unhex(f"00000049 00000009 {fields} 0000 0000000000000001 0000001f {entry}")
        assert received(connection, len(answer)) == answer


def test_requests_of_one_connection_are_answered_in_order(shared: BrokerProcess) -> None:
    with shared.connect() as connection:
        ask(MetadataRequest(("order",)), connection)
        produces = ProduceRequest(1, 500, (OfTopic("order", (PartitionMessages(0, TWO),)),))
        sent = [produces, fetch_of("order"), produces, fetch_of("order", 2)]
        connection.sendall(b"".join(encode_request(each, 1, None) for each in sent))

        found = [response_to(each, connection).topics[0].parts[0] for each in sent]

    assert [found[0].offset, found[2].offset] == [0, 2]
    assert [values(found[1]), values(found[3])] == [[b"a", b"b"]] * 2


def test_large_sets_of_every_codec_come_back(shared: BrokerProcess) -> None:
    """More than a socket takes at once; a slow reader gets all of it."""
    chance = random.Random(1)
    messages = [KeyedMessage(None, chance.randbytes(1000)) for _ in range(600)]
    with shared.connect() as connection:
        ask(MetadataRequest(("large",)), connection)
        for codec in Codec:
            assert produce(connection, "large", wrap(messages, codec)).error_code == 0
        found = fetched(connection, "large")

    assert found == [one.value for one in messages] * len(Codec)


def test_a_waiting_fetch_is_woken_by_another_connection(shared: BrokerProcess) -> None:
    """It says to wait for ten minutes, and the test would end by its own limit before."""
    with shared.connect() as reader, shared.connect() as writer:
        ask(MetadataRequest(("waits",)), reader)
        request = fetch_of("waits", wait_ms=600_000)
        reader.sendall(encode_request(request, 1, "test"))
        assert produce(writer, "waits").offset == 0

        assert values(response_to(request, reader).topics[0].parts[0]) == [b"a", b"b"]


# --- frames that are wrong -------------------------------------------------------------


def test_a_client_of_07_is_recognized(shared: BrokerProcess) -> None:
    with shared.connect() as connection:
        connection.sendall(requests.encode_request(requests.FetchRequest("clicks", 0, 0, 1)))
        assert is_closed(connection)

    until(lambda: "topic 'clicks' in the protocol of Kafka 0.7" in shared.errors)


def test_a_request_that_is_refused_without_a_response_closes_its_connection(
    shared: BrokerProcess,
) -> None:
    request = ProduceRequest(0, 500, (OfTopic("nowhere", (PartitionMessages(0, TWO),)),))
    with shared.connect() as connection:
        connection.sendall(encode_request(request, 1, "test"))
        assert is_closed(connection)


def test_damaged_frames_harm_no_other_connection(shared: BrokerProcess) -> None:
    chance = random.Random(5)
    good = encode_request(fetch_of("damaged"), 1, "test")
    with shared.connect() as other:
        ask(MetadataRequest(("damaged",)), other)
        for _ in range(60):
            frame = bytearray(good)
            for _ in range(3):
                frame[chance.randrange(4, len(frame))] = chance.randrange(256)
            with shared.connect() as connection:
                connection.sendall(bytes(frame))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass
        assert produce(other, "damaged").offset == 0
    assert "defect" not in shared.errors


def test_a_client_that_leaves_ends_its_waits_and_so_does_the_broker(start: Starts) -> None:
    """A fetch, and acks that are never reached: both say to wait for weeks."""
    weeks_ms = 2**31 - 1
    broker = start(more=OF_0_8)
    parts = (OfTopic("t", (PartitionMessages(0, TWO),)),)
    with broker.connect() as leaving, broker.connect() as staying, broker.connect() as other:
        ask(MetadataRequest(("t",)), leaving)
        leaving.sendall(encode_request(ProduceRequest(2, weeks_ms, parts), 1, "test"))
        until(lambda: len(fetched(other, "t")) == 2)
        leaving.shutdown(socket.SHUT_WR)
        assert is_closed(leaving)
        staying.sendall(encode_request(fetch_of("t", 2, weeks_ms), 1, "test"))
        assert ask(MetadataRequest(("t",)), other).topics[0].error_code == 0

        assert broker.terminate() == 0


# --- its end ---------------------------------------------------------------------------


def test_a_killed_broker_goes_on_with_the_next_offset(start: Starts, tmp_path: Path) -> None:
    broker = start(more=OF_0_8)
    with broker.connect() as connection:
        ask(MetadataRequest(("t",)), connection)
        produce(connection, "t")
    broker.kill()
    path = tmp_path / "logs" / "t-0" / f"{0:020}.log"
    torn = encode([KeyedMessage(None, b"c"), KeyedMessage(None, b"d")], first_offset=2)[:-3]
    path.write_bytes(path.read_bytes() + torn)

    broker = start(more=OF_0_8)
    assert "recovered (24 bytes cut off t-0)" in broker.said[0]
    with broker.connect() as connection:
        assert produce(connection, "t").offset == 3
        assert fetched(connection, "t", 2) == [b"c", b"a", b"b"]
    assert broker.terminate() == 0
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()

    broker = start(more=OF_0_8)
    with broker.connect() as connection:
        assert produce(connection, "t").offset == 5


def test_offsets_of_groups_survive_a_kill(start: Starts) -> None:
    """The coordinator keeps them in its log; golden bytes over a socket."""
    look = unhex("0000000f 000a 0000 00000007 0001 63 0002 6731")
    commit = unhex(
        "00000036 0008 0001 00000001 000163 00026731 ffffffff 0000 00000001 000174 00000001"
        "00000000 000000000000002a ffffffffffffffff 0000"
    )
    fetch = unhex("0000001e 0009 0001 00000001 000163 00026731 00000001 000174 00000001 00000000")
    broker = start("offsets.topic.num.partitions=3", more=OF_0_8)
    with broker.connect() as connection:
        ask(MetadataRequest(("t",)), connection)
        connection.sendall(look)
        none = unhex("00000010 00000007 000f ffffffff 0000 ffffffff")
        assert received(connection, len(none)) == none
        connection.sendall(look)
        port = struct.pack(">i", broker.port).hex()
        found = unhex(f"00000019 00000007 0000 00000000 0009 3132372e302e302e31 {port}")
        assert received(connection, len(found)) == found
        connection.sendall(commit)
        done = unhex("00000015 00000001 00000001 000174 00000001 00000000 0000")
        assert received(connection, len(done)) == done
    broker.kill()

    broker = start("offsets.topic.num.partitions=3", more=OF_0_8)
    answer = unhex(
        "0000001f 00000001 00000001 000174 00000001 00000000 000000000000002a 0000 0000"
    )
    with broker.connect() as connection:
        until(lambda: "offsets loaded" in broker.errors)
        connection.sendall(fetch)
        assert received(connection, len(answer)) == answer
    assert broker.terminate() == 0


COMPACTING = (
    *("log.cleaner.enable=true", "log.cleaner.backoff.ms=20"),
    *("log.cleaner.min.cleanable.ratio=0.01", "offsets.topic.num.partitions=1"),
    "offsets.topic.segment.bytes=4000",
)


@pytest.mark.slow
def test_a_compacted_topic_is_read_and_survives_kills(start: Starts) -> None:
    """Offsets are committed while their log is compacted and the broker is killed."""
    broker = start(*COMPACTING, more=OF_0_8)
    with broker.connect() as connection:
        ask(MetadataRequest(("t", "__consumer_offsets")), connection)
    for number in range(3):
        with broker.connect() as connection:
            _commit_until_compacted(broker, connection, number)
        broker.kill()
        broker = start(*COMPACTING, more=OF_0_8)
        with broker.connect() as connection:
            until(lambda: _offset_of(connection) >= 0)
            assert _offset_of(connection) == number
            kept = _whole_topic(connection, "__consumer_offsets")
        last = {each.key: each for each in kept}
        assert len(kept) < kept[-1].offset
        assert len(last) == 1
    assert broker.terminate() == 0
    assert "belongs to no log" not in start(*COMPACTING, more=OF_0_8).said[0]


def _commit_until_compacted(
    broker: BrokerProcess, connection: socket.socket, number: int
) -> None:
    commit = CommitRequestV1("g", (OfTopic("t", (TimedCommit(0, number),)),))
    before = broker.errors.count("is compacted")
    while broker.errors.count("is compacted") < before + 2:
        for _ in range(60):
            assert ask(commit, connection).topics[0].parts == (PartitionOutcome(0),)


def _offset_of(connection: socket.socket) -> int:
    wanted = CommittedRequestV1("g", (OfTopic("t", (PartitionNumber(0),)),))
    offset: int = ask(wanted, connection).topics[0].parts[0].offset
    return offset


def _whole_topic(connection: socket.socket, topic: str) -> list[Record]:
    """Every message of the first partition, fetch after fetch, as a consumer reads it."""
    found: list[Record] = []
    while True:
        offset = found[-1].offset + 1 if found else 0
        part = ask(fetch_of(topic, offset), connection).topics[0].parts[0]
        assert part.error_code == 0
        new = [each for each in records(part.messages) if each.offset >= offset]
        if not new:
            assert offset == part.high_watermark
            return found
        found += new


def test_in_a_registry(start: Starts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Registered in the layout of 0.8, the broker serves what the registry gives it."""
    with ensemble_of(Implementation.PYTHON, inside=tmp_path) as ensemble:
        ensemble.start()
        broker = start(more=(*OF_0_8, "--id", "7", "--zookeeper", ensemble.hosts))
        until(lambda: "broker 7 is registered" in broker.said)
        with broker.connect() as connection:
            until(lambda: _error_of_topic(connection) == 0)
            assert produce(connection, "t").offset == 0
            commit = CommitRequest("g", (OfTopic("t", (PartitionCommit(0, 2),)),))
            assert ask(commit, connection).topics[0].parts == (PartitionOutcome(0),)
            wanted = CommittedRequest("g", (OfTopic("t", (PartitionNumber(0),)),))
            assert ask(wanted, connection).topics[0].parts == (PartitionCommitted(0, 2),)
            _check_migration(ensemble.hosts, connection, capsys)
        client = KazooClient(ensemble.hosts)
        client.start()
        try:
            assert client.get("/consumers/g/offsets/t/0")[0] == b"3"
            assert client.get("/brokers/topics/t")[0] == b'{"partitions":{"0":[7]},"version":1}'
            assert client.get_children("/brokers/ids") == ["7"]
        finally:
            client.stop()
            client.close()
        assert broker.terminate() == 0


def _check_migration(
    hosts: str, connection: socket.socket, output: pytest.CaptureFixture[str]
) -> None:
    """The offset 2 is in ZooKeeper; it is committed to Kafka, and then a greater one."""

    def migrate(*arguments: str) -> tuple[int, str]:
        code = run_command(["migrate-offsets", hosts, "--group", "g", *arguments])
        return code, "".join(output.readouterr())

    until(lambda: ask(ConsumerMetadataRequest("g"), connection).error_code == 0)
    code, said = migrate("--to", "kafka")
    row = "t/0        2          none   Kafka is behind"
    assert (code, said.splitlines()[1:]) == (1, [row, "not yet: Kafka is behind in 1 partition"])
    for offset in (2, 3):
        commit = CommitRequestV1("g", (OfTopic("t", (TimedCommit(0, offset),)),))
        assert ask(commit, connection).topics[0].parts == (PartitionOutcome(0),)
        assert migrate("--to", "kafka")[0] == 0
    code, said = migrate("--to", "zookeeper", "--json")
    assert code == 1
    assert json.loads(said) == {
        "group": "g",
        "to": "zookeeper",
        "offsets": {"t/0": {"zookeeper": 2, "kafka": 3}},
        "behind": ["t/0"],
    }
    code, said = migrate("--to", "zookeeper", "--copy")
    assert (code, said.splitlines()[0]) == (0, "t/0: 2 -> 3")
    assert migrate("--to", "zookeeper")[0] == 0
    code, said = migrate("--to", "kafka", "--copy")
    assert (code, "--copy writes to ZooKeeper only" in said) == (4, True)


def _error_of_topic(connection: socket.socket) -> int:
    error: int = ask(MetadataRequest(("t",)), connection).topics[0].error_code
    return error
