"""The settings of a live broker of 0.8, with the names and defaults of Kafka 0.8.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

from watchkeeper.model.configuration.settings import INT32_MAX, Setting, taken, truth_taken
from watchkeeper.model.log.settings import BrokerLogSettings
from watchkeeper.model.log_08.cleaner_settings import CleanerSettings, cleaner_settings
from watchkeeper.model.log_08.settings import DEFAULTS as LOG_DEFAULTS
from watchkeeper.model.log_08.settings import KeyedLogSettings, keyed_log_settings
from watchkeeper.model.offset_manager.settings import (
    OFFSETS_SETTINGS,
    OFFSETS_TOPIC,
    OffsetSettings,
)
from watchkeeper.real.broker.settings import HIGHEST_PORT, BrokerSettings, folder_of

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
POLICY_KEY = "log.cleanup.policy"
POLICY = (
    "`delete`, or `compact`: then the latest message of each key is kept, and nothing is deleted "
    "by age; the topic of offsets is compacted in any case"
)
POLICIES = {"delete": False, "compact": True}
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
    own: dict[str, Any] = dict(taken(rest, SETTINGS))
    offsets = OffsetSettings(**taken(rest, OFFSETS_SETTINGS))
    if CREATION_KEY in rest:
        own["creates_topics"] = truth_taken(rest, CREATION_KEY)
    cleaner, is_compacted = cleaner_settings(rest), _is_compacted(rest)
    logs = _with_offsets(keyed_log_settings(rest), offsets, is_compacted=is_compacted)
    return BrokerSettings08(folder, **own, offsets=offsets, cleaner=cleaner, logs=logs)


def _is_compacted(rest: dict[str, Any]) -> bool:
    value = rest.pop(POLICY_KEY, "delete")
    if value not in POLICIES:
        raise ValueError(f"{POLICY_KEY} is {value!r}; expected {' or '.join(POLICIES)}")
    return POLICIES[value]


def _with_offsets(
    logs: BrokerLogSettings, offsets: OffsetSettings, *, is_compacted: bool
) -> BrokerLogSettings:
    """The settings of logs, with those of the topic of offsets."""
    assert isinstance(logs.default, KeyedLogSettings), "the logs of 0.8 have their own class"
    own = offsets.log_settings(logs.default)
    default = replace(logs.default, is_compacted=is_compacted)
    return replace(logs, default=default, topics=((OFFSETS_TOPIC, own),))
