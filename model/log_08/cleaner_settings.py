"""The settings of a cleaner, by the names of Kafka 0.8.2 and with its defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from watchkeeper.model.configuration.settings import (
    INT32_MAX,
    Setting,
    ratio_taken,
    taken,
    truth_taken,
)
from watchkeeper.model.log.settings import HOUR_MS
from watchkeeper.model.log_08.settings import NEVER


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """When and how logs are compacted, with the defaults of Kafka 0.8.2."""

    is_enabled: bool = False
    """`log.cleaner.enable`."""
    backoff_ms: int = 15_000
    """`log.cleaner.backoff.ms`: the pause after a look that found no log dirty enough."""
    min_dirty_ratio: float = 0.5
    """`log.cleaner.min.cleanable.ratio`."""
    delete_retention_ms: int = 24 * HOUR_MS
    """`log.cleaner.delete.retention.ms`: how long a tombstone stays."""


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
CLEANER_KEY = "log.cleaner.enable"
CLEANER = "whether logs are compacted; without it, a log that is to be compacted only grows"


def cleaner_settings(rest: dict[str, Any]) -> CleanerSettings:
    """Take the settings of a cleaner out of given ones; the others have Kafka's defaults.

    Raises ValueError, in a sentence, for an invalid value.
    """
    given: dict[str, Any] = dict(taken(rest, CLEANER_SETTINGS))
    if CLEANER_KEY in rest:
        given["is_enabled"] = truth_taken(rest, CLEANER_KEY)
    if RATIO_KEY in rest:
        given["min_dirty_ratio"] = ratio_taken(rest, RATIO_KEY)
    return CleanerSettings(**given)
