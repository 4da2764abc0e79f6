"""A live broker: golden bytes, damaged frames, crashes, and slow clients."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from kazoo.client import KazooClient

from tests.support.live.broker_process import (
    AT_ONCE,
    COMMAND,
    BrokerProcess,
    Starts,
    brokers,
    fetched,
    is_closed,
    messages,
    produce,
    received,
    response_to,
    send_request,
)
from tests.support.live_zookeeper import is_there, until
from tests.support.log.vectors import MAGIC_1_HELLO, unhex
from tests.support.patience import PATIENCE_S
from watchkeeper.model.log.format.errors import InvalidMessage, OffsetOutOfRange, WrongPartition
from watchkeeper.model.log.format.requests import (
    EARLIEST,
    LATEST,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    encode_request,
)
from watchkeeper.real.zookeeper.ensemble import Ensemble

MARKER = ".kafka_cleanshutdown"
PRODUCE = unhex("0000001f 0000 0004 74657374 00000000 0000000f") + MAGIC_1_HELLO
FETCH = unhex("00000018 0001 0004 74657374 00000000 0000000000000000 00000400")
OFFSETS = unhex("00000018 0004 0004 74657374 00000000 ffffffffffffffff 00000001")
MEBIBYTE = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a test's broker."""
    return tmp_path / "logs"


@pytest.fixture
def start(folder: Path) -> Iterator[Starts]:
    """Starts brokers in that folder."""
    with brokers(folder) as start:
        yield start


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests that do not harm it; each test uses its own topic."""
    with brokers(tmp_path_factory.mktemp("shared") / "logs") as start:
        yield start(*AT_ONCE, "topic.partition.count.map=two:2")


# --- what is answered ------------------------------------------------------------------


def test_golden_requests_get_golden_responses(start: Starts) -> None:
    """Bytes as Kafka has written them, over a bare socket."""
    with start(*AT_ONCE).connect() as connection:
        connection.sendall(PRODUCE)
        connection.sendall(FETCH)
        assert received(connection, 21) == unhex("00000011 0000") + MAGIC_1_HELLO
        connection.sendall(OFFSETS)
        assert received(connection, 18) == unhex("0000000e 0000 00000001 000000000000000f")


def test_failed_fetches_have_error_codes(shared: BrokerProcess) -> None:
    """Out of range and an unknown partition have error codes, an unknown topic is empty."""
    with shared.connect() as connection:
        produce(connection, messages(b"one"), "codes")
        codes = {
            FetchRequest("codes", 0, -1, 100): OffsetOutOfRange.code,
            FetchRequest("codes", 0, 99, 100): OffsetOutOfRange.code,
            FetchRequest("codes", 7, 0, 100): WrongPartition.code,
            FetchRequest("unknown", 0, 0, 100): 0,
        }
        for request, code in codes.items():
            assert send_request(request, connection) == FetchResponse(b"", code)


def test_several_partitions_are_served_at_once(shared: BrokerProcess) -> None:
    """A multiproduce and a multifetch, in which one part fails and the others succeed."""
    first, second = messages(b"one"), messages(b"two", b"three")
    with shared.connect() as connection:
        several = MultiProduceRequest(
            (ProduceRequest("two", 0, first), ProduceRequest("two", 1, second))
        )
        connection.sendall(encode_request(several))
        fetches = ((0, 0), (1, 999), (1, 0), (0, len(first)))
        request = MultiFetchRequest(tuple(FetchRequest("two", *at, 1000) for at in fetches))

        response = send_request(request, connection)

    failed = FetchResponse(b"", OffsetOutOfRange.code)
    parts = (FetchResponse(first), failed, FetchResponse(second), FetchResponse(b""))
    assert response == MultiFetchResponse(parts)


def test_offsets_are_those_of_the_log(shared: BrokerProcess) -> None:
    """The earliest, the latest, and those of a missing topic."""
    data = messages(b"one", b"two")
    with shared.connect() as connection:
        produce(connection, data, "offsets")
        expected = {
            OffsetsRequest("offsets", 0, LATEST, 10): (len(data), 0),
            OffsetsRequest("offsets", 0, EARLIEST, 10): (0,),
            OffsetsRequest("nowhere", 0, LATEST, 10): (0,),
        }
        for request, offsets in expected.items():
            assert send_request(request, connection) == OffsetsResponse(offsets)


def test_pipelined_requests_are_answered_in_order(shared: BrokerProcess) -> None:
    """Many in one write, including produce requests, and a frame split anywhere."""
    sets = [messages(b"%d" % number) for number in range(50)]
    starts = [sum(map(len, sets[:number])) for number in range(50)]
    requests = [
        FetchRequest("piped", 0, at, len(message_set))
        for at, message_set in zip(starts, sets, strict=True)
    ]
    wire = b"".join(
        encode_request(ProduceRequest("piped", 0, message_set)) + encode_request(request)
        for message_set, request in zip(sets, requests, strict=True)
    )
    with shared.connect() as connection:
        for at in range(0, len(wire), 997):
            connection.sendall(wire[at : at + 997])
        responses = [response_to(request, connection) for request in requests]

    assert responses == [FetchResponse(message_set) for message_set in sets]


def test_clients_do_not_block_each_other(shared: BrokerProcess) -> None:
    """Two clients produce concurrently: all messages are complete, each client's in order."""

    def work(name: bytes) -> None:
        with shared.connect() as connection:
            for number in range(200):
                produce(connection, messages(b"%s%03d" % (name, number)), "both")
            fetched(connection, topic="both")  # all that came before it was served then

    threads = [Thread(target=work, args=(name,)) for name in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    with shared.connect() as connection:
        data = fetched(connection, topic="both")

    size = len(messages(b"a000"))
    payloads = [data[at + size - 4 : at + size] for at in range(0, len(data), size)]
    for name in (b"a", b"b"):
        assert [payload for payload in payloads if payload[:1] == name] == [
            b"%s%03d" % (name, number) for number in range(200)
        ]


def test_a_slow_reader_blocks_only_itself(shared: BrokerProcess) -> None:
    """Responses that are not read stay with their own connection."""
    data = messages(*(bytes(1000) for _ in range(1000)))
    request = encode_request(FetchRequest("large", 0, 0, len(data)))
    with shared.connect() as slow, shared.connect() as quick:
        for _ in range(16):
            produce(quick, data, "large")
        assert len(fetched(quick, topic="large", max_bytes=len(data))) == len(data)
        before = shared.resident_bytes
        slow.settimeout(0.5)
        with pytest.raises(TimeoutError):
            slow.sendall(request * 500_000)
        for _ in range(20):
            assert len(fetched(quick, topic="large", max_bytes=len(data))) == len(data)
        assert shared.resident_bytes - before < 8 * MEBIBYTE
        slow.settimeout(PATIENCE_S)
        for _ in range(16):  # more than its socket holds: some were sent in two parts
            assert received(slow, 6 + len(data))[6:] == data


# --- what is refused -------------------------------------------------------------------

REFUSED = {
    "a frame too large": (unhex("7fffffff"), "InvalidFrameSize"),
    "a frame of a negative size": (unhex("ffffffff"), "InvalidFrameSize"),
    "an unknown request": (unhex("00000002 0009"), "MalformedRequest"),
    "a request that is cut": (unhex("00000004 0001 0004"), "MalformedRequest"),
    "a request with something behind": (
        unhex("00000019 0001 0004 74657374 00000000 0000000000000000 00000400 00"),
        "MalformedRequest",
    ),
    "a damaged message": (PRODUCE[:-1] + b"!", "InvalidMessage"),
    "a topic that is a path": (
        encode_request(ProduceRequest("../up", 0, MAGIC_1_HELLO)),
        "InvalidTopic",
    ),
    "a partition that is none": (
        encode_request(ProduceRequest("test", 5, MAGIC_1_HELLO)),
        "WrongPartition",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_invalid_request_closes_only_its_connection(what: str, shared: BrokerProcess) -> None:
    """And a line in the log with the name of the error."""
    sent, name = REFUSED[what]
    with shared.connect() as connection, shared.connect() as second:
        here = "{}:{}".format(*connection.getsockname())
        connection.sendall(sent)
        assert is_closed(connection)
        assert fetched(second, topic="unknown") == b""
    until(lambda: f"{here} is closed: {name}" in shared.errors)


def test_the_rest_of_a_multiproduce_is_appended(shared: BrokerProcess) -> None:
    """A refused part closes the connection; the other parts are stored."""
    good, bad = messages(b"good"), messages(b"good")[:-1] + b"!"
    several = MultiProduceRequest(
        (ProduceRequest("half", 0, bad), ProduceRequest("half", 0, good))
    )
    with shared.connect() as connection, shared.connect() as second:
        connection.sendall(encode_request(several))
        assert is_closed(connection)
        assert fetched(second, topic="half") == good
    assert InvalidMessage.__name__ in shared.errors


def test_requests_that_arrive_during_a_flush_are_served_in_order(
    shared: BrokerProcess,
) -> None:
    """Each set is flushed; a fetch sees what came before it and nothing after it."""
    frame = encode_request(ProduceRequest("turns", 0, MAGIC_1_HELLO))
    all_of_it = FetchRequest("turns", 0, 0, MEBIBYTE)
    with shared.connect() as connection:
        connection.sendall((frame + encode_request(all_of_it)) * 20)
        for number in range(1, 21):
            found = response_to(all_of_it, connection)
            assert found == FetchResponse(MAGIC_1_HELLO * number)


def test_an_invalid_request_behind_a_flush_is_reported_in_order(shared: BrokerProcess) -> None:
    """What came before it is appended, what comes after it is not."""
    good = encode_request(ProduceRequest("before", 0, MAGIC_1_HELLO))
    for wrong, name in (REFUSED["a damaged message"], REFUSED["a request that is cut"]):
        with shared.connect() as connection, shared.connect() as second:
            here = "{}:{}".format(*connection.getsockname())
            before = fetched(second, topic="before")
            connection.sendall(good * 3 + wrong + good)
            assert is_closed(connection)
            until(lambda here=here, name=name: f"{here} is closed: {name}" in shared.errors)
            assert fetched(second, topic="before") == before + MAGIC_1_HELLO * 3


def mutated(chance: random.Random) -> bytes:
    """A request with a few bytes changed, removed or inserted."""
    frame = bytearray(chance.choice((PRODUCE, FETCH, OFFSETS)))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(frame))
        frame[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 3))
    return bytes(frame)


def test_damaged_frames_do_not_harm_a_broker(start: Starts) -> None:
    """After hundreds of them it runs, has not grown, and serves as before."""
    broker = start(*AT_ONCE, f"max.socket.request.bytes={MEBIBYTE}")
    chance = random.Random(7)
    with broker.connect() as witness:
        produce(witness, MAGIC_1_HELLO, "witness")
        before = broker.resident_bytes
        for _ in range(400):
            with broker.connect() as connection:
                connection.sendall(mutated(chance))
                connection.shutdown(socket.SHUT_WR)
                while not is_closed(connection):
                    pass
        assert fetched(witness, topic="witness") == MAGIC_1_HELLO
    assert broker.resident_bytes - before < 8 * MEBIBYTE
    assert "defect" not in broker.errors


def test_an_announced_size_takes_no_memory(start: Starts) -> None:
    """A hundred clients announce the largest frame and send almost nothing of it."""
    broker = start(*AT_ONCE)
    before = broker.resident_bytes
    waiting = [broker.connect() for _ in range(100)]
    for connection in waiting:
        connection.sendall(unhex("06400000 0000 0004 74657374"))
    with broker.connect() as second:
        assert fetched(second) == b""
    assert broker.resident_bytes - before < 16 * MEBIBYTE
    for connection in waiting:
        connection.close()


# --- how it ends -----------------------------------------------------------------------


def test_a_clean_end_saves_the_recovery(start: Starts, folder: Path) -> None:
    """Everything is flushed, the marker exists, and the next start removes it."""
    data = messages(b"one", b"two")
    broker = start("log.default.flush.scheduler.interval.ms=60000")
    with broker.connect() as connection:
        produce(connection, data)
        assert fetched(connection) == b"", "what is not flushed cannot be read"
        assert broker.terminate() == 0
    assert (folder / MARKER).exists()

    again = start(*AT_ONCE)

    assert not (folder / MARKER).exists()
    assert "recovered" not in again.said[0]
    with again.connect() as connection:
        assert fetched(connection) == data
        produce(connection, data)
        assert fetched(connection, len(data)) == data


def test_a_killed_broker_recovers(start: Starts, folder: Path) -> None:
    """The data is in the pagecache; a torn entry at the end is cut off."""
    data = messages(b"one", b"two")
    broker = start(*AT_ONCE)
    with broker.connect() as connection:
        produce(connection, data)
        assert fetched(connection) == data
        broker.kill()
        assert is_closed(connection)
    assert not (folder / MARKER).exists()
    with (folder / "test-0" / f"{0:020}.kafka").open("ab") as file:
        file.write(data[:10])

    again = start(*AT_ONCE)

    assert "10 bytes cut off test-0" in again.said[0]
    with again.connect() as connection:
        assert fetched(connection) == data


def test_a_flush_comes_in_time(start: Starts) -> None:
    """A few messages are flushed by the clock."""
    with start("log.default.flush.scheduler.interval.ms=50").connect() as connection:
        produce(connection, messages(b"one"))
        until(lambda: fetched(connection))
        assert fetched(connection) == messages(b"one")


def test_a_failing_disk_ends_the_broker(start: Starts, folder: Path) -> None:
    """With code 1 and a sentence; the test removes its folder."""
    broker = start(*AT_ONCE)
    with broker.connect() as connection:
        produce(connection, messages(b"one"))
        assert fetched(connection)
        folder.rename(folder.with_name("elsewhere"))
        produce(connection, messages(b"two"), "another")
        assert is_closed(connection)
    assert broker.process.wait(PATIENCE_S) == 1
    assert broker.errors.splitlines()[-1] == (
        "another-0: there is no such file (No such file or directory); start it again, and it "
        "recovers its logs"
    )


def test_two_brokers_do_not_share_a_folder(start: Starts, folder: Path) -> None:
    """The second one is refused, and the first one is not affected."""
    broker = start(*AT_ONCE)
    command = [*COMMAND, "--port", "0", "--log-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 4
    assert done.stderr == (
        f"another broker works in {folder}; end that one, or choose another folder\n"
    )
    assert broker.terminate() == 0


def test_a_broker_ends_with_its_parent(tmp_path: Path) -> None:
    """A process that starts a broker and is killed leaves no broker behind."""
    program = (
        "import subprocess, sys, time\n"
        "command = [sys.executable, '-P', '-m', 'watchkeeper', 'broker', '--port', '0']\n"
        "one = subprocess.Popen([*command, '--log-dir', sys.argv[1]], stdout=subprocess.PIPE)\n"
        "one.stdout.readline()\n"
        "print(one.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "logs")], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(pid, signal.SIGSTOP)
    parent.kill()
    parent.wait(PATIENCE_S)
    parent.stdout.close()
    until(lambda: not is_there(pid))


# --- ZooKeeper -------------------------------------------------------------------------


def test_a_broker_registers_itself_and_its_topics(start: Starts, zookeeper: Ensemble) -> None:
    """Its id, its topics, and new topics; nothing after it has ended."""
    root = "/live-broker"
    operator = KazooClient(zookeeper.hosts)
    operator.start()
    operator.ensure_path(root)
    operator.chroot = root
    more = ("--zookeeper", f"{zookeeper.hosts}{root}", "--id", "7")
    broker = start("topic.partition.count.map=old:3", *AT_ONCE, more=more)
    with broker.connect() as connection:
        until(lambda: "broker 7 is registered" in broker.said)
        data, _ = operator.get("/brokers/ids/7")
        assert data.endswith(f":127.0.0.1:{broker.port}".encode())
        produce(connection, messages(b"one"), "old")
        until(lambda: operator.exists("/brokers/topics/old/7"))
        assert operator.get("/brokers/topics/old/7")[0] == b"3"
    assert broker.terminate() == 0
    assert operator.get_children("/brokers/ids") == []

    again = start("topic.partition.count.map=old:3", more=more)

    until(lambda: "broker 7 is registered" in again.said)
    assert operator.get_children("/brokers/topics/old") == ["7"]
    again.terminate()
    operator.stop()
    operator.close()
