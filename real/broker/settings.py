"""The settings of a live broker, with the names and defaults of Kafka 0.7."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from watchkeeper.model.configuration.settings import INT32_MAX, TRUTHS, Setting, number_of
from watchkeeper.model.log.format.frames import LARGEST_FRAME_BYTES
from watchkeeper.model.log.settings import NAMED, BrokerLogSettings, log_settings

HIGHEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The settings of a broker's process."""

    log_dir: Path
    broker_id: int = 0
    port: int = 6667
    """0 lets the system choose a port."""
    largest_frame_bytes: int = LARGEST_FRAME_BYTES
    logs: BrokerLogSettings = field(default_factory=BrokerLogSettings)


SETTINGS = (
    Setting("brokerid", "broker_id", 0, INT32_MAX, "the id under which the broker registers"),
    Setting("port", "port", 0, HIGHEST_PORT, "the port on which it listens; 0: any free one"),
    Setting(
        "max.socket.request.bytes",
        "largest_frame_bytes",
        1,
        INT32_MAX,
        "the largest request; a larger one closes its connection",
    ),
)
DEFAULTS = {
    field.name: field.default for field in fields(BrokerSettings) if field.default is not MISSING
}
FOLDER_KEY = "log.dir"


def broker_settings(given: Mapping[str, Any]) -> BrokerSettings:
    """Build the settings from Kafka's keys; keys that are not given have Kafka's defaults.

    Raises ValueError, in a sentence, for an unknown key or an invalid value.
    """
    rest = dict(given)
    folder = folder_of(rest, FOLDER_KEY)
    own = {row.field: number_of(row, rest.pop(row.key)) for row in SETTINGS if row.key in given}
    for key, value in rest.items():
        if key in NAMED and isinstance(NAMED[key].default, bool):
            rest[key] = TRUTHS.get(value, value)
    return BrokerSettings(folder, **own, logs=log_settings(rest))


def folder_of(rest: dict[str, Any], key: str) -> Path:
    """Take the folder of the logs out of given settings; ValueError if it is not there."""
    folder = rest.pop(key, "")
    if not folder:
        raise ValueError(f"{key} is not set; expected the folder of the broker's logs")
    return Path(folder)
