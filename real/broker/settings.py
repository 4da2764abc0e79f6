"""What can be set of a real broker, by Kafka 0.7's own names and with its own defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from model.log.settings import NAMED, BrokerLogSettings, log_settings
from model.log.wire import LARGEST_FRAME_BYTES

HIGHEST_PORT = 65_535
INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What a broker's process is told when it starts."""

    log_dir: Path
    broker_id: int = 0
    port: int = 6667
    """0 for one that the system chooses."""
    largest_frame_bytes: int = LARGEST_FRAME_BYTES
    logs: BrokerLogSettings = field(default_factory=BrokerLogSettings)


class Setting(NamedTuple):
    """One row of the table: a name, the field it sets, between what it lies, what it does."""

    key: str
    field: str
    least: int
    most: int
    about: str


SETTINGS = (
    Setting("brokerid", "broker_id", 0, INT32_MAX, "as what it registers itself"),
    Setting("port", "port", 0, HIGHEST_PORT, "where it listens; 0: where it is free"),
    Setting(
        "max.socket.request.bytes",
        "largest_frame_bytes",
        1,
        INT32_MAX,
        "the largest request that is taken; a larger one closes its connection",
    ),
)
DEFAULTS = {one.name: one.default for one in fields(BrokerSettings) if one.default is not MISSING}
FOLDER_KEY = "log.dir"
TRUTHS = {"true": True, "false": False}


def broker_settings(given: Mapping[str, Any]) -> BrokerSettings:
    """Put settings together from defaults and from what is given by Kafka's names.

    Raises ValueError, in a sentence, for a name or a value that is not understood.
    """
    rest = dict(given)
    folder = rest.pop(FOLDER_KEY, "")
    if not folder:
        raise ValueError(f"{FOLDER_KEY} is not set; expected the folder of the broker's logs")
    own = {row.field: _number(row, rest.pop(row.key)) for row in SETTINGS if row.key in given}
    for key, value in rest.items():
        if key in NAMED and isinstance(NAMED[key].default, bool):
            rest[key] = TRUTHS.get(value, value)
    return BrokerSettings(Path(folder), **own, logs=log_settings(rest))


def _number(row: Setting, value: Any) -> int:
    text = str(value)
    if not text.isdecimal() or not row.least <= int(text) <= row.most:
        raise ValueError(
            f"{row.key} is {value!r}; expected a whole number from {row.least} to {row.most}"
        )
    return int(text)
