"""The settings of a live broker of 0.8, with the names and defaults of Kafka 0.8.2."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

from watchkeeper.model.log.settings import MINUTE_MS, BrokerLogSettings
from watchkeeper.model.log_08.cleaner import CleanerSettings
from watchkeeper.model.log_08.settings import DEFAULTS as LOG_DEFAULTS
from watchkeeper.model.log_08.settings import (
    LARGEST_SEGMENT_BYTES,
    NEVER,
    KeyedLogSettings,
    keyed_log_settings,
)
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, OffsetSettings
from watchkeeper.real.broker.settings import (
    HIGHEST_PORT,
    INT32_MAX,
    TRUTHS,
    BrokerSettings,
    Setting,
    folder_of,
    number_of,
)

FOLDER_KEY = "log.dirs"
CREATION_KEY = "auto.create.topics.enable"


@dataclass(frozen=True, slots=True)
class BrokerSettings08(BrokerSettings):
    """The settings of a broker's process."""

    port: int = 9092
    logs: BrokerLogSettings = field(default=LOG_DEFAULTS)
    creates_topics: bool = True
    replication_factor: int = 1
    offsets: OffsetSettings = field(default_factory=OffsetSettings)
    cleaner: CleanerSettings = field(default_factory=CleanerSettings)


SETTINGS = (
    Setting("broker.id", "broker_id", 0, INT32_MAX, "the id under which the broker registers"),
    Setting("port", "port", 0, HIGHEST_PORT, "the port on which it listens; 0: any free one"),
    Setting(
        "socket.request.max.bytes",
        "largest_frame_bytes",
        1,
        INT32_MAX,
        "the largest request; a larger one closes its connection",
    ),
    Setting(
        "default.replication.factor",
        "replication_factor",
        1,
        INT32_MAX,
        "the replicas of a topic that it creates; this broker itself does not replicate",
    ),
)
OFFSETS_SETTINGS = (
    Setting(
        "offset.metadata.max.bytes",
        "largest_metadata",
        0,
        INT32_MAX,
        "the longest text that a commit of an offset may have beside it, in characters",
    ),
    Setting(
        "offsets.topic.num.partitions",
        "partitions",
        1,
        INT32_MAX,
        "the partitions of the topic of offsets, over which groups are spread; it must not "
        "change later",
    ),
    Setting(
        "offsets.topic.replication.factor",
        "replicas",
        1,
        INT32_MAX,
        "the replicas of the topic of offsets; Kafka's default is 3, but this broker does not "
        "replicate",
    ),
    Setting(
        "offsets.topic.segment.bytes",
        "segment_bytes",
        1,
        LARGEST_SEGMENT_BYTES,
        "the size that no segment of the topic of offsets exceeds",
    ),
    Setting(
        "offsets.retention.minutes",
        "retention_ms",
        1,
        INT32_MAX,
        "the age of a commit at which it expires",
        MINUTE_MS,
    ),
    Setting(
        "offsets.retention.check.interval.ms",
        "expiry_check_ms",
        1,
        INT32_MAX,
        "the interval of the check for it",
    ),
)
CLEANER_SETTINGS = (
    Setting(
        "log.cleaner.backoff.ms",
        "backoff_ms",
        1,
        INT32_MAX,
        "the pause after a look that found no log dirty enough",
    ),
    Setting(
        "log.cleaner.delete.retention.ms",
        "delete_retention_ms",
        0,
        NEVER,
        "the time for which a compacted log keeps tombstones",
    ),
)
RATIO_KEY = "log.cleaner.min.cleanable.ratio"
RATIO = "the part of a log that has to be dirty before it is compacted"
POLICY_KEY = "log.cleanup.policy"
POLICY = (
    "`delete`, or `compact`: then the latest message of each key is kept, and nothing is deleted "
    "by age; the topic of offsets is compacted in any case"
)
POLICIES = {"delete": False, "compact": True}
CLEANER_KEY = "log.cleaner.enable"
CLEANER = "whether logs are compacted; without it, a log that is to be compacted only grows"
CREATION = "whether a metadata request creates topics that do not exist"
DEFAULTS = {
    each.name: each.default
    for kind in (BrokerSettings08, OffsetSettings, CleanerSettings)
    for each in fields(kind)
    if each.default is not MISSING
}


def broker_settings_08(given: Mapping[str, Any]) -> BrokerSettings08:
    """Build the settings from Kafka's keys; keys that are not given have Kafka's defaults.

    Raises ValueError, in a sentence, for an unknown key or an invalid value.
    """
    rest = dict(given)
    folder = folder_of(rest, FOLDER_KEY)
    own, offsets = _taken(rest, SETTINGS), OffsetSettings(**_taken(rest, OFFSETS_SETTINGS))
    if CREATION_KEY in rest:
        own["creates_topics"] = _truth(CREATION_KEY, rest)
    cleaner, is_compacted = _cleaner(rest), _is_compacted(rest)
    logs = _with_offsets(keyed_log_settings(rest), offsets, is_compacted=is_compacted)
    return BrokerSettings08(folder, **own, offsets=offsets, cleaner=cleaner, logs=logs)


def _cleaner(rest: dict[str, Any]) -> CleanerSettings:
    given = _taken(rest, CLEANER_SETTINGS)
    if CLEANER_KEY in rest:
        given["is_enabled"] = _truth(CLEANER_KEY, rest)
    if RATIO_KEY in rest:
        given["min_dirty_ratio"] = _ratio(rest.pop(RATIO_KEY))
    return CleanerSettings(**given)


def _ratio(value: Any) -> float:
    with suppress(ValueError):
        found = float(value)
        if 0 <= found <= 1:
            return found
    raise ValueError(f"{RATIO_KEY} is {value!r}; expected a number from 0 to 1, as in 0.5")


def _is_compacted(rest: dict[str, Any]) -> bool:
    value = rest.pop(POLICY_KEY, "delete")
    if value not in POLICIES:
        raise ValueError(f"{POLICY_KEY} is {value!r}; expected {' or '.join(POLICIES)}")
    return POLICIES[value]


def _taken(rest: dict[str, Any], rows: tuple[Setting, ...]) -> dict[str, Any]:
    return {row.field: number_of(row, rest.pop(row.key)) for row in rows if row.key in rest}


def _with_offsets(
    logs: BrokerLogSettings, offsets: OffsetSettings, *, is_compacted: bool
) -> BrokerLogSettings:
    """The settings of logs, with those of the topic of offsets."""
    assert isinstance(logs.default, KeyedLogSettings), "the logs of 0.8 have their own class"
    own = replace(
        logs.default,
        segment_bytes=offsets.segment_bytes,
        partitions=offsets.partitions,
        is_compacted=True,
    )
    default = replace(logs.default, is_compacted=is_compacted)
    return replace(logs, default=default, topics=((OFFSETS_TOPIC, own),))


def _truth(key: str, rest: dict[str, Any]) -> bool:
    value = rest.pop(key)
    found = TRUTHS.get(value, value)
    if type(found) is not bool:
        raise ValueError(f"{key} is {value!r}; expected true or false")
    return found
