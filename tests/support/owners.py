"""The owner registry at a moment, read off a trace."""

from __future__ import annotations

from watchkeeper import Result
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry import paths


def owners(result: Result, group: str, *, at_s: float) -> dict[str, str]:
    """Partition -> who its owner znode names, as it stood so many seconds into the run."""
    found: dict[str, str] = {}
    for event in result.trace:
        if event.t_us > at_s * 1_000_000:
            break
        for did, path, *values in event.detail.get("did", ()):
            claim = paths.parse_owner(path)
            if claim is None or claim[0] != group:
                continue
            partition: Partition = claim[1]
            if did == "deleted":
                found.pop(partition.name, None)
            else:
                found[partition.name] = values[1]
    return found
