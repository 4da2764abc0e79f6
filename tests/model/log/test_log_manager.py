"""All logs of a broker: names, folders, start and end, and what is done from time to time."""

from __future__ import annotations

from typing import Any

import pytest

from model.log.errors import InvalidTopic, OffsetOutOfRange, WrongPartition
from model.log.folders import check_topic, folder_of, partition_of
from model.log.log import Log, LogStopped
from model.log.logs import CLEANLY_CLOSED, Logs
from model.log.requests import EARLIEST, LATEST
from model.log.segments import Damaged
from model.log.settings import BrokerLogSettings, log_settings
from model.log.storage import CreateFile, Delete, DiskFailed, Flush, MakeFolder
from tests.log_memory import MemoryStorage
from tests.log_messages import FORTY_TWO, TEST, appended, readable


def started(storage: MemoryStorage, **given: Any) -> Logs:
    """The logs of a broker, with settings by Kafka's names but with underscores."""
    settings = log_settings({name.replace("_", "."): value for name, value in given.items()})
    logs = Logs(settings)
    storage.run(logs.start())
    return logs


def made(storage: MemoryStorage, logs: Logs, topic: str = "kafka", partition: int = 0) -> Log:
    """The log of a partition."""
    return storage.run(logs.get_or_create(topic, partition))


# --- names -----------------------------------------------------------------------------

STRANGE = "/\0\x01\x18\x1f\x8f\ud805\ufffa"


@pytest.mark.parametrize(
    "topic",
    ["", ".", "..", "ATCG" * 2**6, *[f"Is{one}funny" for one in STRANGE], "a\n", "\U0001f600"],
)
def test_a_topic_that_can_have_no_folder_is_refused(topic: str) -> None:
    """Kafka's table, and two that Java would refuse as well. No folder is made."""
    storage = MemoryStorage()
    logs = started(storage)

    for asking in (logs.get_or_create(topic, 0), logs.offsets_before(topic, 0, LATEST, 1)):
        with pytest.raises(InvalidTopic):
            storage.run(asking)
    with pytest.raises(InvalidTopic):
        logs.get(topic, 0)

    assert storage.folders == {""}


@pytest.mark.parametrize("topic", ["clicks", "a-b", "-", "...", "ATCG" * 63, "日志", "a b", "~"])
def test_a_topic_finds_its_way_to_a_folder_and_back(topic: str) -> None:
    """Dashes in the name do no harm."""
    check_topic(topic)

    assert partition_of(folder_of(topic, 12)) == (topic, 12)


def test_a_topic_has_255_characters_at_most() -> None:
    """Whatever they take in bytes."""
    check_topic("x" * 255)
    with pytest.raises(InvalidTopic, match="256 characters, expected at most 255"):
        check_topic("x" * 256)


@pytest.mark.parametrize("topic", ["x" * 254, "日" * 85])
def test_a_folder_whose_name_would_be_too_long_is_refused(topic: str) -> None:
    """Topics of 255 characters are allowed, names of 255 bytes are."""
    check_topic(topic)
    with pytest.raises(InvalidTopic, match=r"25[67] bytes"):
        folder_of(topic, 0)


@pytest.mark.parametrize("folder", ["clicks", "clicks-", "-1", "clicks-a", "a-", "a/b-0", "a-07"])
def test_a_folder_that_is_no_log_is_known_by_its_name(folder: str) -> None:
    """There is no topic, or no partition."""
    assert partition_of(folder) is None


# --- which there are -------------------------------------------------------------------


def test_a_log_is_made_when_it_is_needed() -> None:
    """In a folder with the topic's name and the partition, and only once."""
    storage = MemoryStorage()
    logs = started(storage)

    log = made(storage, logs)

    assert "kafka-0" in storage.folders
    assert made(storage, logs) is logs.get("kafka", 0) is log
    assert sum(isinstance(ask, MakeFolder) for ask in storage.asked) == 1
    appended(storage, log, TEST)


def test_a_log_is_not_made_by_looking_for_it() -> None:
    """Neither by a fetch nor by asking for its offsets."""
    storage = MemoryStorage()
    logs = started(storage)

    assert logs.get("kafka", 0) is None
    found = [
        storage.run(logs.offsets_before("kafka", 0, at, 10)) for at in (LATEST, EARLIEST, 5, -3)
    ]
    assert found == [[0], [0], [], []]
    assert storage.folders == {""}
    assert logs.topics == ()


def test_a_topic_has_as_many_partitions_as_it_is_given() -> None:
    """All topics one, and those that are named as many as is said."""
    storage = MemoryStorage()
    logs = started(storage, topic_partition_count_map="test:2")

    for topic, partition in (("test", 0), ("test", 1), ("other", 0)):
        made(storage, logs, topic, partition)
    for topic, partition in (("test", 2), ("test", -1), ("other", 1)):
        with pytest.raises(WrongPartition, match=f"{topic}-{partition}: .*numbered from 0"):
            made(storage, logs, topic, partition)
        with pytest.raises(WrongPartition):
            logs.get(topic, partition)

    assert logs.topics == ("other", "test")
    assert len(logs.all()) == 3


def test_a_topic_has_settings_of_its_own() -> None:
    """What is said of it, and for the rest what is said of all."""
    storage = MemoryStorage()
    logs = started(storage, **{"log.file.size": 100, "topic.flush.intervals.ms": "clicks:7"})

    clicks, other = made(storage, logs, "clicks").settings, made(storage, logs, "other").settings

    assert (clicks.flush_ms, clicks.segment_bytes) == (7, 100)
    assert (other.flush_ms, other.segment_bytes) == (3000, 100)


def test_two_logs_are_not_made_at_once() -> None:
    """The second would replace the file that the first has made."""
    storage = MemoryStorage()
    logs = started(storage)
    making = logs.get_or_create("kafka", 0)
    making.send(None)

    with pytest.raises(AssertionError, match="two logs are made at once"):
        made(storage, logs)

    making.close()
    made(storage, logs)


# --- life ------------------------------------------------------------------------------


def test_messages_outlive_a_clean_shutdown() -> None:
    """The marker says that it was one; then nothing is recovered, and all goes on."""
    storage = MemoryStorage()
    logs = started(storage)
    appended(storage, made(storage, logs), TEST, TEST)

    storage.run(logs.close())
    assert CLEANLY_CLOSED in storage.files
    storage.end_host(lambda path, rest, at: b"")

    again = Logs()
    assert storage.run(again.start()) == (True, (), ())
    assert CLEANLY_CLOSED not in storage.files
    log = again.get("kafka", 0)
    assert log is not None
    appended(storage, log, FORTY_TWO)
    storage.run(log.flush())
    assert readable(storage, log) == TEST * 2 + FORTY_TWO
    assert storage.run(log.read(28, 100)) == FORTY_TWO


def test_after_a_crash_every_log_is_recovered() -> None:
    """And what was cut off is told, log by log."""
    storage = MemoryStorage()
    logs = started(storage)
    for topic in ("a", "b"):
        appended(storage, made(storage, logs, topic), TEST, TEST)
    storage.run(made(storage, logs, "a").flush())
    storage.end_host(lambda path, rest, at: rest[:20])

    report = storage.run(Logs().start())

    assert report == (False, (("b-0", 6),), ())


def test_the_marker_is_deleted_before_a_log_is_opened() -> None:
    """A crash at any moment after that must not find it."""
    storage = MemoryStorage()
    storage.run(started(storage).close())
    storage.asked.clear()

    started(storage)

    deleted = storage.asked.index(Delete(CLEANLY_CLOSED))
    assert deleted == 1


def test_no_marker_is_written_unless_all_is_flushed() -> None:
    """A disk that fails leaves logs that have to be recovered."""
    storage = MemoryStorage()
    logs = started(storage)
    for topic in ("a", "b"):
        appended(storage, made(storage, logs, topic), TEST)
    storage.failing.append((Flush, DiskFailed))

    with pytest.raises(DiskFailed):
        storage.run(logs.close())

    assert CLEANLY_CLOSED not in storage.files
    report = storage.run(Logs().start())
    assert not report.was_clean


def test_a_log_of_closed_logs_takes_nothing() -> None:
    """What was appended after the marker would never be recovered."""
    storage = MemoryStorage()
    logs = started(storage)
    log = made(storage, logs)
    storage.run(logs.close())

    with pytest.raises(LogStopped):
        appended(storage, log, TEST)
    with pytest.raises(AssertionError, match="not open"):
        made(storage, logs, "other")
    with pytest.raises(AssertionError, match="not opened"):
        storage.run(logs.close())


def test_a_broker_does_not_start_with_a_damaged_log() -> None:
    """A gap is nothing that could be mended; the files are named."""
    storage = MemoryStorage()
    storage.folders.add("kafka-0")
    storage.put("kafka-0/0.kafka", b"")
    storage.put("kafka-0/15.kafka", b"")

    with pytest.raises(Damaged, match=r"kafka-0/0\.kafka.*kafka-0/15\.kafka"):
        storage.run(Logs().start())


def test_what_belongs_to_no_log_is_left_alone_and_told() -> None:
    """Files, and folders with other names."""
    storage = MemoryStorage()
    storage.folders |= {"lost+found", "kafka-0"}
    storage.put("readme-0", b"x")

    report = storage.run(Logs().start())

    assert report.ignored == ("lost+found", "readme-0")
    assert "readme-0" in storage.files


# --- from time to time -----------------------------------------------------------------


def test_logs_are_flushed_when_their_time_has_come() -> None:
    """Looked for every 50 ms, no flush is 100 ms old where messages have come."""
    storage = MemoryStorage()
    logs = started(
        storage,
        **{
            "log.default.flush.scheduler.interval.ms": 50,
            "topic.flush.intervals.ms": "timed:100",
            "log.flush.interval": 10**9,
        },
    )
    log = made(storage, logs, "timed")

    for _ in range(200):
        appended(storage, log, TEST)
        storage.now_ms += 1
        if storage.now_ms % logs.settings.flush_check_ms == 0:
            storage.run(logs.flush_due())
            assert storage.now_ms - log.last_flush_ms < 100
    assert log.readable_end > 0


def test_old_segments_of_every_log_are_deleted() -> None:
    """Each by the settings of its topic."""
    storage = MemoryStorage()
    logs = started(
        storage,
        **{
            "log.file.size": 20,
            "log.retention.hours": 2,
            "topic.log.retention.hours": "short:1",
            "topic.log.retention.size": {"small": 28},
        },
    )
    for topic in ("long", "short", "small"):
        appended(storage, made(storage, logs, topic), *[TEST] * 6)
    storage.now_ms += 90 * 60_000

    deleted = storage.run(logs.delete_old())

    assert len(deleted) == 3 + 2
    starts = {topic: made(storage, logs, topic).start for topic in logs.topics}
    assert starts == {"long": 0, "short": 84, "small": 56}
    with pytest.raises(OffsetOutOfRange):
        made(storage, logs, "small").view(0, 1)
    assert sum(isinstance(ask, CreateFile) for ask in storage.asked) == 3 * 3 + 1


def test_settings_are_those_that_were_given() -> None:
    """None are Kafka's defaults."""
    assert Logs().settings == BrokerLogSettings() == log_settings()
