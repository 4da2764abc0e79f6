"""Settings of the log: Kafka's names, defaults and per-topic forms, and errors in sentences."""

from __future__ import annotations

from typing import Any

import pytest

from watchkeeper.model.log.settings import SETTINGS, log_settings

DEFAULTS: dict[str, Any] = {
    "log.file.size": 1024**3,
    "log.roll.hours": 168,
    "log.flush.interval": 500,
    "log.default.flush.interval.ms": 3000,
    "log.default.flush.scheduler.interval.ms": 3000,
    "log.retention.hours": 168,
    "log.retention.size": -1,
    "log.cleanup.interval.mins": 10,
    "num.partitions": 1,
    "max.message.size": 1_000_000,
    "log.check.compressed": True,
}
BY_TOPIC = {
    "topic.log.file.size",
    "topic.log.roll.hours",
    "topic.flush.intervals.ms",
    "topic.log.retention.hours",
    "topic.log.retention.size",
    "topic.partition.count.map",
}


def test_the_table_has_kafka_s_names_and_defaults() -> None:
    """Those of 0.7.2, and one that is ours."""
    assert {row.key: row.default for row in SETTINGS} == DEFAULTS
    assert {row.key_by_topic for row in SETTINGS} == BY_TOPIC | {""}
    assert log_settings(DEFAULTS) == log_settings()


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ("log.file.size", 5, "segment_bytes", 5),
        ("log.roll.hours", 2, "roll_ms", 7_200_000),
        ("log.retention.hours", "3", "retention_ms", 10_800_000),
        ("log.retention.size", -1, "retention_bytes", -1),
        ("log.retention.size", 0, "retention_bytes", 0),
        ("max.message.size", 7, "largest_payload_bytes", 7),
        ("log.check.compressed", False, "checks_compressed", False),
    ],
)
def test_a_setting_sets_its_field(key: str, value: Any, field: str, expected: Any) -> None:
    """In the unit of the field; a number may be written as text."""
    assert getattr(log_settings({key: value}).default, field) == expected


def test_what_is_set_of_all_logs_together() -> None:
    """The interval of the check, and the age of a flush unless that is set as well."""
    found = log_settings(
        {"log.default.flush.scheduler.interval.ms": 70, "log.cleanup.interval.mins": 1}
    )
    assert (found.flush_check_ms, found.cleanup_ms, found.default.flush_ms) == (70, 60_000, 70)
    found = log_settings(
        {"log.default.flush.scheduler.interval.ms": 70, "log.default.flush.interval.ms": 5}
    )
    assert (found.flush_check_ms, found.default.flush_ms) == (70, 5)


@pytest.mark.parametrize("value", ["a:1, b-c:2,", {"a": 1, "b-c": "2"}])
def test_a_setting_by_topic_is_written_in_two_ways(value: Any) -> None:
    """As Kafka writes it, and as a mapping; other settings of the topic are those of all."""
    found = log_settings({"topic.log.roll.hours": value, "log.file.size": 9})

    assert [topic for topic, _ in found.topics] == ["a", "b-c"]
    assert found.of("b-c").roll_ms == 7_200_000
    assert found.of("a").segment_bytes == found.of("other").segment_bytes == 9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"log.file.sise": 1}, "did you mean log.file.size"),
        ({"x": 1}, "expected one of log.file.size, "),
        ({"log.file.size": 0}, "log.file.size is 0; expected a whole number of at least 1"),
        ({"log.file.size": "1k"}, "log.file.size is '1k'"),
        ({"log.file.size": True}, "log.file.size is True"),
        ({"log.retention.size": -2}, "at least -1"),
        ({"log.check.compressed": 1}, "expected true or false"),
        ({"topic.log.file.size": "7"}, "expected topics with a number each"),
        ({"topic.log.file.size": "a:x"}, "topic.log.file.size of a is 'x'"),
        ({"topic.partition.count.map": {"a": 0}}, "of a is 0"),
    ],
)
def test_what_is_not_understood_is_said(given: dict[str, Any], message: str) -> None:
    """In a sentence that names it."""
    with pytest.raises(ValueError, match=message):
        log_settings(given)
