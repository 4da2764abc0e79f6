"""What a fault or change of a timeline does to its target, as the rest of a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from watchkeeper.model.properties.verdicts import duration
from watchkeeper.model.trace.trace import Event

WORDS: Mapping[str, str] = {
    "crash": "was killed",
    "crash_host": "was lost with its machine",
    "pause": "stood still",
    "abandon": "ended and kept its session",
    "expire": "lost its session",
    "disconnect": "lost its connection",
    "partition": "was cut off",
    "delay": "became slow",
    "skew": "got a wrong clock",
    "lag": "fell behind",
    "leave": "left",
    "move": "moved to another machine",
    "rolling_restart": "was restarted, one server after the other",
    "quorum_loss": "lost its majority",
    "unregister": "lost its registration",
    "disk_slow": "got a slow disk",
    "disk_full": "had no room left on its disk",
}
"""Verb -> what happens to its target."""


def lasts(event: Event) -> str:
    """How long a fault lasts, as the end of a sentence; empty where that is not said."""
    lasts_us = event.detail.get("for_us") or 0
    return f" for {duration(lasts_us)}" if lasts_us else ""
