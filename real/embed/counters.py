"""Counts and logs the events of a member inside an application."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import NOTHING

LEVELS: dict[str, int] = {
    EventKind.CONNECTED: logging.INFO,
    EventKind.REBALANCE_COMPLETED: logging.INFO,
    EventKind.FREED_CLAIMS_ACQUIRED: logging.INFO,
    EventKind.REBALANCE_FAILED: logging.INFO,
    EventKind.ENDED: logging.INFO,
    EventKind.SUSPENDED: logging.WARNING,
    EventKind.EXPIRED: logging.WARNING,
    EventKind.ID_IN_USE: logging.WARNING,
    EventKind.NOT_MIRRORED: logging.WARNING,
    EventKind.TURN_FAILED: logging.WARNING,
    EventKind.REBALANCE_ABANDONED: logging.ERROR,
}
"""Kind of event -> the level at which it is logged; all others at DEBUG."""


PROBLEMS: dict[str, str] = {
    EventKind.ID_IN_USE: "its id is in use, {path} exists",
    EventKind.TURN_FAILED: "a turn failed, {error}",
    EventKind.REBALANCE_FAILED: "a rebalance failed, {why}",
}
"""Kind of event -> why a member may not be ready, with the fields of the event."""


class Counters:
    """Counts the events of a driver by kind, and passes them to `logging`."""

    def __init__(self, node: str, logger: logging.Logger) -> None:
        self.node = node
        self.logger = logger
        self.counts: Counter[str] = Counter()
        self.last_problem = ""
        """Why the member may not be ready, by the last event that tells; empty for none."""
        self.hear: Callable[[str], None] = lambda kind: None
        """Called with the kind of every event, in the thread of the event."""

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
        """Count and log an event."""
        self.counts[kind] += 1
        if kind in PROBLEMS:
            self.last_problem = PROBLEMS[kind].format_map(detail)
        level = LEVELS.get(kind, logging.DEBUG)
        if detail.get("failed"):
            level = logging.ERROR
        if self.logger.isEnabledFor(level):
            fields = " ".join(f"{key}={value}" for key, value in detail.items())
            self.logger.log(level, "%s: %s %s", self.node, kind, fields)
        self.hear(kind)
