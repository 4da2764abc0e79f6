"""The settings of a live broker of 0.8, with the names and defaults of Kafka 0.8.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from watchkeeper.model.broker_08.group_offsets import LARGEST_METADATA
from watchkeeper.model.log.settings import BrokerLogSettings
from watchkeeper.model.log_08.settings import DEFAULTS as LOG_DEFAULTS
from watchkeeper.model.log_08.settings import keyed_log_settings
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
    largest_metadata: int = LARGEST_METADATA


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
    Setting(
        "offset.metadata.max.bytes",
        "largest_metadata",
        0,
        INT32_MAX,
        "the longest text that a commit of an offset may have beside it, in characters",
    ),
)
CREATION = "whether a metadata request creates topics that do not exist"
DEFAULTS = {
    each.name: each.default for each in fields(BrokerSettings08) if each.default is not MISSING
}


def broker_settings_08(given: Mapping[str, Any]) -> BrokerSettings08:
    """Build the settings from Kafka's keys; keys that are not given have Kafka's defaults.

    Raises ValueError, in a sentence, for an unknown key or an invalid value.
    """
    rest = dict(given)
    folder = folder_of(rest, FOLDER_KEY)
    own: dict[str, Any] = {
        row.field: number_of(row, rest.pop(row.key)) for row in SETTINGS if row.key in given
    }
    if CREATION_KEY in rest:
        own["creates_topics"] = _truth(rest.pop(CREATION_KEY))
    return BrokerSettings08(folder, **own, logs=keyed_log_settings(rest))


def _truth(value: Any) -> bool:
    found = TRUTHS.get(value, value)
    if type(found) is not bool:
        raise ValueError(f"{CREATION_KEY} is {value!r}; expected true or false")
    return found
