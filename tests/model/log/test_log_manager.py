"""All logs of a broker: names, folders, start and end, and what is done from time to time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.log.memory_storage import MemoryStorage
from tests.support.log.messages import FORTY_TWO, TEST, appended, readable
from watchkeeper.model.log.folder_names import check_topic, folder_of, partition_of
from watchkeeper.model.log.format.errors import InvalidTopic, OffsetOutOfRange, WrongPartition
from watchkeeper.model.log.format.requests import EARLIEST, LATEST
from watchkeeper.model.log.log import Log, LogStopped
from watchkeeper.model.log.log_manager import CLEANLY_CLOSED, LogManager
from watchkeeper.model.log.segments import DamagedLog
from watchkeeper.model.log.settings import BrokerLogSettings, log_settings
from watchkeeper.model.log.storage import CreateFile, Delete, DiskFailed, Flush, MakeFolder


def started(storage: MemoryStorage, **given: Any) -> LogManager:
    """The logs of a broker, with settings by Kafka's names but with underscores."""
    settings = log_settings({name.replace("_", "."): value for name, value in given.items()})
    logs = LogManager(settings)
    storage.run(logs.start())
    return logs


def made(
    storage: MemoryStorage, logs: LogManager, topic: str = "kafka", partition: int = 0
) -> Log:
    """The log of a partition."""
    return storage.run(logs.get_or_create(topic, partition))


# --- names -----------------------------------------------------------------------------

STRANGE = "/\0\x01\x18\x1f\x8f\ud805\ufffa"


@pytest.mark.parametrize(
    "topic",
    [
        "",
        ".",
        "..",
        "ATCG" * 2**6,
        *[f"Is{character}funny" for character in STRANGE],
        "a\n",
        "\U0001f600",
    ],
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
    assert sum(isinstance(effect, MakeFolder) for effect in storage.asked) == 1
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
    """One for all topics, and the configured number for named ones."""
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
    """Its own settings, and the common ones for the others."""
    storage = MemoryStorage()
    logs = started(storage, **{"log.file.size": 100, "topic.flush.intervals.ms": "clicks:7"})

    clicks, defaults = (
        made(storage, logs, "clicks").settings,
        made(storage, logs, "other").settings,
    )

    assert (clicks.flush_ms, clicks.segment_bytes) == (7, 100)
    assert (defaults.flush_ms, defaults.segment_bytes) == (3000, 100)


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

    again = LogManager()
    assert storage.run(again.start()) == (True, (), (), ())
    assert CLEANLY_CLOSED not in storage.files
    log = again.get("kafka", 0)
    assert log is not None
    appended(storage, log, FORTY_TWO)
    storage.run(log.flush())
    assert readable(storage, log) == TEST * 2 + FORTY_TWO
    assert storage.run(log.read(28, 100)) == FORTY_TWO


def test_after_a_crash_every_log_is_recovered() -> None:
    """The truncated bytes are reported for each log."""
    storage = MemoryStorage()
    logs = started(storage)
    for topic in ("a", "b"):
        appended(storage, made(storage, logs, topic), TEST, TEST)
    storage.run(made(storage, logs, "a").flush())
    storage.end_host(lambda path, rest, at: rest[:20])

    report = storage.run(LogManager().start())

    assert report == (False, (("b-0", 6),), (), ())


def test_a_log_that_is_deleted_takes_nothing_more() -> None:
    """Its folder is gone; the next message makes a log that begins at 0."""
    storage = MemoryStorage()
    logs = started(storage)
    log = made(storage, logs)
    appended(storage, log, TEST)
    storage.run(logs.delete("kafka", 0))

    with pytest.raises(LogStopped, match="its topic was deleted"):
        appended(storage, log, TEST)
    storage.run(log.flush())
    assert logs.get("kafka", 0) is None
    assert not [path for path in storage.files if path.startswith("kafka-0/")]
    assert made(storage, logs).end == 0


def test_logs_of_topics_that_were_deleted_meanwhile_are_not_opened() -> None:
    """They are deleted at the start, and named."""
    storage = MemoryStorage()
    logs = started(storage)
    for topic in ("a", "b"):
        appended(storage, made(storage, logs, topic), TEST)
    storage.run(logs.close())

    again = LogManager()
    report = storage.run(again.start(("b",)))

    assert report == (True, (), (), (("b", 0),))
    assert again.topics == ("a",)
    assert "b-0" not in storage.folders


def test_a_topic_gets_as_many_partitions_as_an_administrator_says() -> None:
    """From then on; and after that as many as a new topic has."""
    logs = LogManager(log_settings({"num.partitions": 2}))
    logs.set_partitions("kafka", 3)
    assert logs.get("kafka", 2) is None

    logs.set_partitions("kafka", None)
    with pytest.raises(WrongPartition, match="the topic has 2 here"):
        logs.get("kafka", 2)


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
    report = storage.run(LogManager().start())
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

    with pytest.raises(DamagedLog, match=r"kafka-0/0\.kafka.*kafka-0/15\.kafka"):
        storage.run(LogManager().start())


def test_what_belongs_to_no_log_is_left_alone_and_told() -> None:
    """Files, and folders with other names."""
    storage = MemoryStorage()
    storage.folders |= {"lost+found", "kafka-0"}
    storage.put("readme-0", b"x")

    report = storage.run(LogManager().start())

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
    assert log.high_watermark > 0


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
    assert sum(isinstance(effect, CreateFile) for effect in storage.asked) == 3 * 3 + 1


def test_settings_are_those_that_were_given() -> None:
    """None are Kafka's defaults."""
    assert LogManager().settings == BrokerLogSettings() == log_settings()
