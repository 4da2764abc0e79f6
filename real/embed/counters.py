"""Counts what happens to a member inside an application, and logs it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from model.trace import NOTHING

LEVELS = {
    "connected": logging.INFO,
    "rebalance ends": logging.INFO,
    "claimed what was freed": logging.INFO,
    "rebalance fails": logging.INFO,
    "ends": logging.INFO,
    "suspended": logging.WARNING,
    "expired": logging.WARNING,
    "id in use": logging.WARNING,
    "not mirrored": logging.WARNING,
    "turn fails": logging.WARNING,
    "rebalance given up": logging.ERROR,
}
"""Kind of event -> the level at which it is logged; all others at DEBUG."""


class Account:
    """What a driver writes down, taken to `logging`; how often each kind of event came."""

    def __init__(self, node: str, logger: logging.Logger) -> None:
        self.node = node
        self.logger = logger
        self.counts: Counter[str] = Counter()
        self.hear: Callable[[str], None] = lambda kind: None
        """Told of the kind of every event, in the thread it happens in."""

    def write(
        self,
        kind: str,
        detail: Mapping[str, Any] = NOTHING,
        *,
        session: int = 0,
        topic: str = "",
        partition: str = "",
        zxid: int = 0,
        at_ns: int | None = None,
    ) -> None:
        """Take down an event."""
        self.counts[kind] += 1
        level = LEVELS.get(kind, logging.DEBUG)
        if detail.get("failed"):
            level = logging.ERROR
        if self.logger.isEnabledFor(level):
            said = " ".join(f"{key}={value}" for key, value in detail.items())
            self.logger.log(level, "%s: %s %s", self.node, kind, said)
        self.hear(kind)
