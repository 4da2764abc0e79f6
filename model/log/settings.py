"""The settings of a broker's logs, by the names of Kafka 0.7 and with its defaults.

Some settings have a second name that takes a value for each topic, in Kafka's notation
(`clicks:1000,orders:50`) or as a mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, NamedTuple

from watchkeeper.model.configuration.value import plain

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
FIRST_CLEANUP_MS = MINUTE_MS
"""The time from the start of a broker to its first cleanup."""
UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The settings of one log; the table `SETTINGS` describes each field."""

    segment_bytes: int = 1024**3
    roll_ms: int = 168 * HOUR_MS
    flush_messages: int = 500
    flush_ms: int = 3 * SECOND_MS
    retention_ms: int = 168 * HOUR_MS
    retention_bytes: int = UNLIMITED
    partitions: int = 1
    largest_payload_bytes: int = 1_000_000
    checks_compressed: bool = True


@dataclass(frozen=True, slots=True)
class BrokerLogSettings:
    """The settings of all logs of a broker, with exceptions by topic."""

    default: LogSettings = field(default_factory=LogSettings)
    topics: tuple[tuple[str, LogSettings], ...] = ()
    """(topic, settings) of the topics that differ from the default."""
    flush_check_ms: int = 3 * SECOND_MS
    cleanup_ms: int = 10 * MINUTE_MS

    def of(self, topic: str) -> LogSettings:
        """Return the settings of the logs of a topic."""
        return dict(self.topics).get(topic, self.default)


class Setting(NamedTuple):
    """One row of the table: the key, its field, its unit and a description."""

    key: str
    field: str
    about: str
    unit: int = 1
    """The value of one unit of the key in the unit of the field."""
    least: int = 1
    key_by_topic: str = ""

    @property
    def default(self) -> Any:
        """The default, in the unit of the key."""
        value = DEFAULTS[self.field]
        return value if isinstance(value, bool) or value == UNLIMITED else value // self.unit


DEFAULTS = {
    field.name: getattr(values, field.name)
    for values in (LogSettings(), BrokerLogSettings())
    for field in fields(values)
}
FLUSH_CHECK_KEY = "log.default.flush.scheduler.interval.ms"
SETTINGS = (
    Setting(
        "log.file.size",
        "segment_bytes",
        "the size at which a segment is rolled by the next append",
        key_by_topic="topic.log.file.size",
    ),
    Setting(
        "log.roll.hours",
        "roll_ms",
        "the age of its first append at which a segment is rolled by the next one",
        HOUR_MS,
        key_by_topic="topic.log.roll.hours",
    ),
    Setting(
        "log.flush.interval",
        "flush_messages",
        "the number of messages after which a log is flushed",
    ),
    Setting(
        "log.default.flush.interval.ms",
        "flush_ms",
        "the time after which a log is flushed again; default: the interval of the flush check",
        key_by_topic="topic.flush.intervals.ms",
    ),
    Setting(
        FLUSH_CHECK_KEY,
        "flush_check_ms",
        "the interval of the flush check",
    ),
    Setting(
        "log.retention.hours",
        "retention_ms",
        "the time since its last modification after which a segment is deleted",
        HOUR_MS,
        key_by_topic="topic.log.retention.hours",
    ),
    Setting(
        "log.retention.size",
        "retention_bytes",
        "the size of a log above which its oldest segments are deleted; -1: unlimited",
        least=UNLIMITED,
        key_by_topic="topic.log.retention.size",
    ),
    Setting(
        "log.cleanup.interval.mins",
        "cleanup_ms",
        "the interval of the retention check",
        MINUTE_MS,
    ),
    Setting(
        "num.partitions",
        "partitions",
        "the number of partitions of a topic on this broker",
        key_by_topic="topic.partition.count.map",
    ),
    Setting(
        "max.message.size",
        "largest_payload_bytes",
        "the largest payload, as it is stored (compressed, with a codec)",
    ),
    Setting(
        "log.check.compressed",
        "checks_compressed",
        "whether compressed messages are decompressed and checked; not a setting of Kafka: 0.7.2 "
        "always checks them, its design page says that it never does",
    ),
)

NAMED = {row.key: row for row in SETTINGS}
NAMED_BY_TOPIC = {row.key_by_topic: row for row in SETTINGS if row.key_by_topic}

assert {row.field for row in SETTINGS} == DEFAULTS.keys() - {"default", "topics"}


def log_settings(given: Mapping[str, Any] | None = None) -> BrokerLogSettings:
    """Return settings from a mapping of Kafka's names to values; the others are defaults.

    Raises `ValueError` for an unknown name or an invalid value.
    """
    given = dict(given or {})
    common = {
        NAMED[key].field: checked(key, NAMED[key], given[key]) for key in NAMED if key in given
    }
    if FLUSH_CHECK_KEY in given:
        common.setdefault("flush_ms", common["flush_check_ms"])
    by_topic: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        row = NAMED_BY_TOPIC.get(key)
        if row is not None:
            for topic, own in _by_topic(key, value).items():
                by_topic.setdefault(topic, {})[row.field] = checked(f"{key} of {topic}", row, own)
        elif key not in NAMED:
            raise ValueError(_unknown(key))
    ours = {field.name for field in fields(BrokerLogSettings)} & common.keys()
    default = LogSettings(**{name: common[name] for name in common.keys() - ours})
    return BrokerLogSettings(
        default,
        tuple((topic, replace(default, **own)) for topic, own in sorted(by_topic.items())),
        **{name: common[name] for name in ours},
    )


def _unknown(key: str) -> str:
    near = get_close_matches(key, [*NAMED, *NAMED_BY_TOPIC], n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; expected one of {', '.join(NAMED)}"
    return f"{key} is not a setting that a broker's logs have{hint}"


def _by_topic(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {str(topic): own for topic, own in value.items()}
    parts = [part for part in str(value).split(",") if part.strip()]
    pairs = [part.rpartition(":") for part in parts]
    if not all(topic.strip() for topic, _, _ in pairs):
        raise ValueError(f"{key} is {value!r}; expected topics with a number each: clicks:1,b:2")
    return {topic.strip(): own.strip() for topic, _, own in pairs}


def checked(key: str, row: Setting, value: Any) -> Any:
    """Return the value of a setting in the unit of its field; ValueError if it is invalid."""
    number = plain(value)
    if isinstance(DEFAULTS[row.field], bool):
        if type(number) is not bool:
            raise ValueError(f"{key} is {value!r}; expected true or false")
        return number
    if type(number) is not int or number < row.least:
        raise ValueError(f"{key} is {value!r}; expected a whole number of at least {row.least}")
    return number if number == UNLIMITED else number * row.unit
