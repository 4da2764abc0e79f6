"""The limits of a search: from options, back to options, and the memory that is free."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from watchkeeper.checker.search.search import Limits

GIB = 2**30


def limits(states: int | None, seconds: float | None, gib: float | None) -> Limits:
    """When a search gives up, as options say it."""
    return Limits(states, seconds, None if gib is None else int(gib * GIB))


def with_memory(limits: Limits) -> Limits:
    """Return limits with one of memory: by default less than others need."""
    return replace(limits, bytes=_free_memory() * 3 // 4) if limits.bytes is None else limits


def _free_memory() -> int:
    """The memory that is free; where the machine does not say, four gigabytes."""
    try:
        with Path("/proc/meminfo").open() as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 4 * GIB


def limit_words(limits: Limits) -> list[str]:
    """Return the options of the command line that give these limits."""
    given = {
        "--max-states": limits.states,
        "--max-seconds": limits.seconds,
        "--max-memory": None if limits.bytes is None else limits.bytes / GIB,
    }
    return [
        word
        for name, value in given.items()
        if value is not None
        for word in (name, str(value) if isinstance(value, int) else f"{value:.9g}")
    ]
