"""The settings of the logs of 0.8, by the names of Kafka 0.8.2 and with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

from watchkeeper.model.log.settings import (
    HOUR_MS,
    MINUTE_MS,
    UNLIMITED,
    BrokerLogSettings,
    LogSettings,
    Setting,
    checked,
)

NEVER = 2**63 - 1
"""Kafka's default where something happens only if it is set."""


@dataclass(frozen=True, slots=True)
class KeyedLogSettings(LogSettings):
    """The settings of one log of 0.8."""

    is_compacted: bool = False
    """Whether the latest message of each key is kept (`cleanup.policy=compact`).

    Then no segment is deleted because of its age or of the size of the log.
    """


DEFAULTS = BrokerLogSettings(
    KeyedLogSettings(flush_messages=NEVER, flush_ms=NEVER, largest_payload_bytes=1_000_012),
    flush_check_ms=NEVER,
    cleanup_ms=5 * MINUTE_MS,
)

SETTINGS = (
    Setting("log.segment.bytes", "segment_bytes", "the size that no segment exceeds"),
    Setting(
        "log.roll.hours",
        "roll_ms",
        "the age of its first append at which a segment is rolled by the next one",
        HOUR_MS,
    ),
    Setting(
        "log.flush.interval.messages",
        "flush_messages",
        "the number of messages after which a log is flushed; by default only the end of the "
        "broker and a new segment flush it",
    ),
    Setting("log.flush.interval.ms", "flush_ms", "the time after which a log is flushed again"),
    Setting(
        "log.flush.scheduler.interval.ms", "flush_check_ms", "the interval of the check for it"
    ),
    Setting(
        "log.retention.hours",
        "retention_ms",
        "the time since its last modification after which a segment is deleted",
        HOUR_MS,
    ),
    Setting(
        "log.retention.bytes",
        "retention_bytes",
        "the size of a log above which its oldest segments are deleted; -1: unlimited",
        least=UNLIMITED,
    ),
    Setting("log.retention.check.interval.ms", "cleanup_ms", "the interval of the check for it"),
    Setting(
        "num.partitions", "partitions", "the number of partitions of a topic that it creates"
    ),
    Setting(
        "message.max.bytes",
        "largest_payload_bytes",
        "the largest entry of a message set, with 12 bytes for its offset and its size",
    ),
)
LARGEST_SEGMENT_BYTES = 2**31 - 1
NAMED = {row.key: row for row in SETTINGS}
OF_BROKER = {field.name for field in fields(BrokerLogSettings)} - {"default", "topics"}


def default_of(row: Setting) -> int:
    """Return the default of a setting, in the unit of its key."""
    value: int = getattr(DEFAULTS if row.field in OF_BROKER else DEFAULTS.default, row.field)
    return value if value in (NEVER, UNLIMITED) else value // row.unit


def keyed_log_settings(given: Mapping[str, Any] | None = None) -> BrokerLogSettings:
    """Return settings from a mapping of Kafka's names to values; the others are defaults.

    Raises `ValueError` for an unknown name or an invalid value.
    """
    values: dict[str, Any] = {}
    for key, value in (given or {}).items():
        if key not in NAMED:
            raise ValueError(_unknown(key))
        values[NAMED[key].field] = checked(key, NAMED[key], value)
    if values.get("segment_bytes", 0) > LARGEST_SEGMENT_BYTES:
        raise ValueError(
            f"log.segment.bytes is {values['segment_bytes']}; expected at most "
            f"{LARGEST_SEGMENT_BYTES}: an index has no larger positions"
        )
    own = {name: values.pop(name) for name in OF_BROKER & values.keys()}
    if "flush_ms" in values:
        # Kafka's scheduler never runs by default, so that its own setting has no effect alone.
        own.setdefault("flush_check_ms", values["flush_ms"])
    return replace(DEFAULTS, default=replace(DEFAULTS.default, **values), **own)


def _unknown(key: str) -> str:
    near = get_close_matches(key, NAMED, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; expected one of {', '.join(NAMED)}"
    return f"{key} is not a setting that a broker's logs have in 0.8{hint}"
