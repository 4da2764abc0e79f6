"""Logs are read from live brokers: the rows of their files, also while a broker fails."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from msgspec.structs import replace
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tests.support.live.broker_process import HOST, brokers
from tests.support.live.log_brokers import ended_well, served_logs, serving, started
from tests.support.live_zookeeper import until
from tests.support.log.kafka_logs import BuiltLog, Row, built, in_turn, plain, written
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.frames import HEAD_BYTES
from watchkeeper.model.log.format.requests import MultiFetchResponse, encode_response
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.brokers import fetched, protocol
from watchkeeper.pipeline.kafkalog.brokers.broker_log import BrokerLog, range_of
from watchkeeper.pipeline.kafkalog.logs import check_boundary, cut, end_of, read
from watchkeeper.pipeline.kafkalog.options import options_of
from watchkeeper.pipeline.kafkalog.read_limits import Cost, bytes_of, messages_of, within
from watchkeeper.pipeline.kafkalog.scan.folders import logs_in
from watchkeeper.pipeline.kafkalog.scan.split_reader import COLUMNS, Asked, Counts, OnCorrupt
from watchkeeper.pipeline.kafkalog.stream import LogStreamReader
from watchkeeper.real.ports import free_ports
from watchkeeper.real.zookeepers.implementation import Implementation, ensemble_of

FORMS = ("0.7", "0.8")
forms = pytest.mark.parametrize("form", FORMS)
TOPICS = "clicks,views"


def damaged_log(form: str) -> BuiltLog:
    """A log with a wrong CRC, and with bytes that are no message, before its last segment."""
    log = built([plain(*(b"m%02d" % at for at in range(12))), plain(b"end", rolls=True)], form)
    data = bytearray(log.segments[0])
    data[log.entries[3].end - 1] ^= 1
    data[log.entries[6].begin : log.entries[6].end] = b"\xff" * (
        log.entries[6].end - log.entries[6].begin
    )
    log.segments[0] = bytes(data)
    return log


def late_log(form: str) -> BuiltLog:
    """A log of which the beginning is deleted."""
    return built([plain(b"a", b"b"), plain(b"c")], form, start=1000)


def gap_log() -> BuiltLog:
    """A log of 0.8 that lacks two messages."""
    log = built([plain(b"a", b"b", b"c", b"d", b"e")], "0.8")
    data = log.segments[0]
    log.segments[0] = data[: log.entries[1].begin] + data[log.entries[3].begin :]
    return log


def odd_logs(form: str) -> dict[str, BuiltLog]:
    """Logs that cannot be read as they are."""
    found = {"1/damaged-0": damaged_log(form), "1/late-0": late_log(form)}
    return found | ({"1/gap-0": gap_log()} if form == "0.8" else {})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Brokers of each protocol, by the value of the option `brokers`; no test changes them."""
    homes = [tmp_path_factory.mktemp("brokers") / form for form in FORMS]
    with (
        serving("0.7", homes[0], served_logs("0.7") | odd_logs("0.7")) as of_07,
        serving("0.8", homes[1], served_logs("0.8") | odd_logs("0.8")) as of_08,
    ):
        yield {"0.7": of_07, "0.8": of_08}


def logs_of(where: str, **options: str) -> list[BrokerLog]:
    """The logs at brokers."""
    found = options_of({"brokers": where, "topics": TOPICS, **options}).logs()
    assert all(isinstance(log, BrokerLog) for log in found)
    return found  # type: ignore[return-value]


def every_row(
    splits: Any, on_corrupt: OnCorrupt = "fail", **options: Any
) -> list[dict[str, Any]]:
    """The rows of splits, with all columns."""
    asked = Asked(tuple(COLUMNS), on_corrupt, **options)
    return [
        row
        for split in splits
        for batch in read(split, asked, Counts())
        for row in batch.to_pylist()
    ]


def rows_in(splits: Any) -> list[Row]:
    """The rows of splits, as tests build them."""
    return [Row(*(row[name] for name in Row._fields)) for row in every_row(splits)]


def with_messages(where: str) -> list[BrokerLog]:
    """The logs of `clicks` at brokers, without those that are empty."""
    return [log for log in logs_of(where, topics="clicks") if log.end]


def in_folder(log: BrokerLog) -> str:
    """The folder of a log, in which `served_logs` has it."""
    return f"{log.broker}/{log.topic}-{log.partition}"


# --- every message once ----------------------------------------------------------------


@forms
@pytest.mark.parametrize("split_bytes", [1, 100, 1 << 20])
def test_every_message_is_read_once(form: str, split_bytes: int, served: dict[str, str]) -> None:
    """Range by range: from the start of each log up to its end, without a gap."""
    expected = served_logs(form)
    for log in logs_of(served[form]):
        built_log = expected.pop(in_folder(log), BuiltLog(form))
        found = cut(log, split_bytes=split_bytes)
        assert (log.start, end_of(log), found.end) == (0, built_log.end, built_log.end)
        assert rows_in(found.splits) == built_log.rows
        borders = [split.from_offset for split in found.splits]
        assert borders[1:] == [split.to_offset for split in found.splits][:-1]
        assert len(borders) > 1 or split_bytes > 1 or not built_log.rows
    assert expected == {}


@forms
def test_a_fetch_grows_until_it_holds_an_entry(
    form: str, served: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fetch begins so small that no entry fits into it, nor the head of one."""
    monkeypatch.setattr(fetched, "FETCH_BYTES", 3)
    monkeypatch.setattr(fetched, "SAMPLE_BYTES", 3)
    for log in with_messages(served[form]):
        assert rows_in(cut(log, split_bytes=80).splits) == served_logs(form)[in_folder(log)].rows


@forms
def test_a_range_has_the_offsets_that_are_given(form: str, served: dict[str, str]) -> None:
    """In 0.8 at any message, also of those that were compressed together."""
    for log in with_messages(served[form]):
        rows = served_logs(form)[in_folder(log)].rows
        for low, high in ((rows[4].offset, rows[13].offset), (0, rows[1].offset)):
            if form == "0.8":
                assert rows_in(cut(log, low, high).splits) == rows[low:high]
            else:
                known = cut(log, low, high, are_boundaries=True).splits
                assert rows_in(known) == [row for row in rows if low <= row.offset < high]
                wide = rows_in(cut(log, low + 1, high).splits)
                assert {row for row in rows if low < row.offset < high} <= {*wide}
        assert rows_in(cut(log, rows[-1].offset, 1 << 40).splits)[-1] == rows[-1]
        assert rows_in(cut(log, log.end, 1 << 40).splits) == []


@forms
@pytest.mark.parametrize("cost", [messages_of, bytes_of])
def test_a_batch_is_limited_as_it_is_in_files(
    form: str, cost: Cost, served: dict[str, str], tmp_path: Path
) -> None:
    """It ends at the same offsets, whatever the limit."""
    written(tmp_path, served_logs(form))
    of_files = [log for log in logs_in(tmp_path) if log.topic == "clicks"]
    of_brokers = with_messages(served[form])
    for limit in (1, 7, 60, 400, 10_000):
        reached = []
        for found in (of_files, of_brokers):
            place = {log.name: log.start for log in found}
            reached.append(list(within(found, place, limit, cost).values()))
        assert reached[0] == reached[1]


def test_where_a_stream_may_begin(served: dict[str, str]) -> None:
    [log, *_] = logs_of(served["0.7"])
    offset = served_logs("0.7")["1/clicks-0"].rows[5].offset
    for boundary in (log.start, offset, log.end):
        check_boundary(log, boundary)
    with pytest.raises(PipelineProblem, match=f"no message begins at offset {offset + 1}"):
        check_boundary(log, offset + 1)
    with pytest.raises(PipelineProblem, match=f"offsets from 0 to {log.end}, and not 9999"):
        check_boundary(log, 9999)


def test_a_checkpoint_of_files_does_not_fit_brokers_of_08(served: dict[str, str]) -> None:
    """It would be read from its beginning once more."""
    options = options_of({"brokers": served["0.8"], "topics": "clicks"})
    stream = LogStreamReader(options, ("payload",))
    assert stream.latestOffset({"clicks-0": 3}, ReadAllAvailable()) == {
        "clicks-0": 30,
        "clicks-1": 21,
    }
    with pytest.raises(PipelineProblem, match="has 1/clicks-0, and at"):
        stream.latestOffset({"1/clicks-0": 3}, ReadAllAvailable())


# --- which logs ------------------------------------------------------------------------


def test_what_the_logs_are_called(served: dict[str, str]) -> None:
    """In 0.8 without the broker: the leader of a partition may move."""
    expected = ["1/clicks-0", "2/clicks-0", "1/clicks-1", "2/clicks-1"]
    assert [log.name for log in logs_of(served["0.7"], topics="clicks")] == expected
    of_08 = logs_of(served["0.8"])
    assert [log.name for log in of_08] == ["clicks-0", "clicks-1", "views-0"]


@pytest.mark.parametrize(
    ("form", "options", "sentence"),
    [
        ("0.7", {"topics": ""}, "no request for the names of topics; name the topics"),
        ("0.7", {"topics": "clicks,other"}, "there is no message of topic other at 127"),
        (
            "0.8",
            {"topics": "clicks,other"},
            "no topic other at .*; the topics there are clicks, d",
        ),
    ],
)
def test_topics_that_are_not_there(
    form: str, options: dict[str, str], sentence: str, served: dict[str, str]
) -> None:
    with pytest.raises(PipelineProblem, match=sentence):
        logs_of(served[form], **options)
    if form == "0.8":  # and no request has made one
        topics = {log.topic for log in options_of({"brokers": served[form]}).logs()}
        assert topics == {"clicks", "damaged", "gap", "late", "views"}


def test_brokers_of_07_need_ids(served: dict[str, str]) -> None:
    """What an offset means depends on them; one broker alone may be broker 0."""
    bare = [each.partition(":")[2] for each in served["0.7"].split(",")]
    with pytest.raises(PipelineProblem, match="give each its id: ID:HOST:PORT"):
        logs_of(",".join(bare))
    assert {log.broker for log in logs_of(bare[0], topics="clicks")} == {0}
    assert {log.broker for log in logs_of(bare[0], topics="clicks", broker="7")} == {7}


@forms
def test_the_protocol_is_found_out_or_set(form: str, served: dict[str, str]) -> None:
    def protocol_by(setting: str) -> str:
        given = {"brokers": served[form], "protocol": setting, "topics": "clicks"}
        brokers_of = options_of(given).brokers
        assert brokers_of is not None
        return protocol.protocol_of(brokers_of)

    assert protocol_by("auto") == form
    assert protocol_by("0.7") == "0.7"
    assert encode_response(MultiFetchResponse())[HEAD_BYTES:] == protocol.ANSWER_07


@contextmanager
def closing_server() -> Iterator[str]:
    """The address of a server that closes every connection."""
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        serving_it = threading.Thread(target=serve)
        serving_it.start()
        try:
            yield f"{HOST}:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            serving_it.join()


def test_an_address_without_a_broker(served: dict[str, str]) -> None:
    """Nothing listens there, or something else; of 0.8 one that can be reached is enough."""
    [port] = free_ports(1)
    nowhere = f"{HOST}:{port}"
    with pytest.raises(PipelineProblem, match=r"can be reached: connection refused, after \d+ s"):
        logs_of(nowhere, retryMs="0")
    with closing_server() as closing:
        with pytest.raises(PipelineProblem, match="neither the protocol of Kafka"):
            logs_of(closing, retryMs="0")
        closed = r"unknown: (the broker has closed the connect|connection reset)"
        with pytest.raises(PipelineProblem, match=closed):
            logs_of(closing, retryMs="0", protocol="0.8")
    assert len(logs_of(f"{nowhere},{served['0.8']}")) == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"brokers": "kafka1"}, "brokers has 'kafka1'; expected HOST:PORT"),
        ({"brokers": "a:99999"}, "brokers has 'a:99999'; expected HOST:PORT"),
        ({"brokers": " , "}, "brokers is empty"),
        ({"brokers": "a:1", "path": "logs"}, "path and brokers are given; expected one of them"),
        ({"brokers": "a:1", "replicas": "all"}, "replicas and brokers are given"),
        ({"path": "logs", "retryMs": "1"}, "retryMs is given without brokers"),
        ({"brokers": "a:1", "protocol": "0.9"}, "protocol is '0.9'; expected auto or 0.7 or 0.8"),
        ({}, r"load\(FOLDER\); or the option brokers"),
    ],
)
def test_options_that_are_wrong(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(PipelineProblem, match=sentence):
        options_of(options)


# --- damage and gaps -------------------------------------------------------------------


@forms
def test_damage_is_treated_as_in_files(form: str, served: dict[str, str], tmp_path: Path) -> None:
    log = logs_of(served[form], topics="damaged")[0]
    damaged_log(form).write(tmp_path / "1" / "damaged-0")
    [of_files] = logs_in(tmp_path)
    with pytest.raises(PipelineProblem, match="damaged-0 of broker 1 is damaged at offset"):
        every_row(cut(log).splits)
    for policy in ("skip", "quarantine"):
        assert every_row(cut(log).splits, policy) == every_row(cut(of_files).splits, policy)


@forms
def test_what_is_deleted_before_it_is_read(form: str, served: dict[str, str]) -> None:
    """An error, unless gaps are allowed; then reading goes on behind it."""
    log = logs_of(served[form], topics="late")[0]
    assert (log.start, log.end) == (1000, late_log(form).end)
    earlier = [range_of(log, 10, log.end)]
    with pytest.raises(PipelineProblem, match="up to 10, and now begins at 1000: what was"):
        every_row(earlier)
    found = every_row(earlier, gaps="allow")
    assert [row["payload"] for row in found] == [b"a", b"b", b"c"]


@forms
def test_a_log_that_ends_too_early(form: str, served: dict[str, str]) -> None:
    """As after an election of a leader that lacked messages: it is waited for, then named."""
    [log, *_] = logs_of(served[form], topics="clicks", retryMs="0")
    beyond = [range_of(log, log.end + 5, log.end + 9)]
    with pytest.raises(PipelineProblem, match=f"and its log ends at {log.end}; if it was longer"):
        every_row(beyond)


def test_a_gap_in_08(served: dict[str, str]) -> None:
    """As in a compacted topic; it is an error unless gaps are allowed."""
    [found] = logs_of(served["0.8"], topics="gap")
    with pytest.raises(PipelineProblem, match="has no message of offset 1: 3 comes in its"):
        every_row(cut(found).splits)
    rows = every_row(cut(found, split_bytes=1).splits, gaps="allow")
    assert [row["offset"] for row in rows] == [0, 3, 4]


# --- brokers that close, leaders that move ---------------------------------------------


@forms
def test_a_broker_that_closes_is_retried(form: str, tmp_path: Path) -> None:
    """It is killed between two fetches, and starts again while it is retried; then for good."""
    log = in_turn(form, 10)
    written(tmp_path, {"1/clicks-0": log})
    ended_well(tmp_path / "1")
    with brokers(tmp_path / "1") as start:
        broker = started(start, form, 1)
        again = ("--port", str(broker.port))
        [found, *_] = logs_of(f"1:{HOST}:{broker.port}", topics="clicks", retryMs="60000")
        splits = cut(found, split_bytes=150).splits
        assert len(splits) > 1
        rows = rows_in(splits[:1])
        broker.kill()
        with ThreadPoolExecutor() as reader:
            rest = reader.submit(rows_in, splits[1:])
            until(lambda: rest.running())
            started(start, form, 1, *again)
            assert rows + rest.result() == log.rows

    impatient = replace(found, brokers=replace(found.brokers, retry_ms=300))
    gone = [range_of(impatient, 0, found.end)]
    sentence = r"cannot be read on from offset 0 .*: connection refused, after 0.3 s of retries"
    with pytest.raises(PipelineProblem, match=sentence):
        rows_in(gone)


ASSIGNED = b'{"version":1,"partitions":{"0":[1,2]}}'


def state(leader: int) -> bytes:
    """The state of a partition, as a controller writes it."""
    return PartitionState(
        controller_epoch=1, leader=leader, leader_epoch=leader, isr=(1, 2)
    ).encode()


def test_a_leader_that_moves_is_found(tmp_path: Path) -> None:
    """The old one answers that it leads no more; its successor may also replace a dead one."""
    log = in_turn("0.8", 10, Codec.SNAPPY)
    written(tmp_path, {"1/clicks-0": log, "2/clicks-0": log})
    [ended_well(tmp_path / name) for name in ("1", "2")]
    with (
        ensemble_of(Implementation.PYTHON, inside=tmp_path / "zk") as ensemble,
        brokers(tmp_path / "1") as start_first,
        brokers(tmp_path / "2") as start_second,
    ):
        ensemble.start()
        client = KazooClient(ensemble.hosts)
        client.start()
        where = paths.partition_state(paths.Partition("clicks", "0"))
        try:
            client.create(
                paths.topic("clicks"), b'{"version":1,"partitions":{"0":[1,2]}}', makepath=True
            )
            client.create(where, state(leader=1), makepath=True)
            first = started(start_first, "0.8", 1, "--zookeeper", ensemble.hosts)
            second = started(start_second, "0.8", 2, "--zookeeper", ensemble.hosts)
            until(lambda: len(client.get_children("/brokers/ids")) == 2)
            address = f"{HOST}:{first.port},{HOST}:{second.port}"
            until(lambda: [each.broker for each in logs_of(address, topics="clicks")] == [1])
            [found] = logs_of(address, topics="clicks")
            splits = cut(found, split_bytes=80).splits
            assert len(splits) > 2
            rows = rows_in(splits[:1])
            client.set(where, state(leader=2))
            until(lambda: [each.broker for each in logs_of(address, topics="clicks")] == [2])
            rows += rows_in(splits[1:2])
            first.kill()
            rows += rows_in(splits[2:])
            assert rows == log.rows
        finally:
            client.stop()
            client.close()
