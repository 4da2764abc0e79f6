"""Checks message sets before they are appended to a log.

A check needs the settings of the log alone and yields no effect, so a broker can do it before
it holds the lock of the log.
"""

from __future__ import annotations

from collections.abc import Sequence

from watchkeeper.model.log.format import message_set_07
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.entries import check_set
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.message_set_07 import CheckedSet
from watchkeeper.model.log.settings import LogSettings


def check_for_log(settings: LogSettings, messages: Contents) -> CheckedSet:
    """Check a message set against the settings of a log; raise a `LogError` if it is invalid."""
    return check_set(
        messages,
        opens_wrappers=settings.checks_compressed,
        largest_payload_bytes=settings.largest_payload_bytes,
    )


def check_sets_for_log(
    settings: LogSettings, sets: Sequence[Contents]
) -> tuple[list[CheckedSet], LogError | None]:
    """Check message sets up to the first invalid one; return those before it, and its error."""
    checked = _checked_in_bulk(settings, sets)
    if checked is not None:
        return checked, None
    found: list[CheckedSet] = []
    for messages in sets:
        try:
            found.append(check_for_log(settings, messages))
        except LogError as error:
            return found, error
    return found, None


def _checked_in_bulk(settings: LogSettings, sets: Sequence[Contents]) -> list[CheckedSet] | None:
    """Check all sets in one pass; None if that gains nothing, or if one is not plain."""
    parts = [part for part in sets if isinstance(part, bytes)]
    size_bytes = sum(map(len, parts))
    if len(parts) < max(len(sets), 2) or not message_set_07.is_bulk(parts[0], size_bytes):
        return None
    from watchkeeper.model.log.format import (
        bulk_checksum,  # imports numpy, which few messages do not need
    )

    counts = bulk_checksum.entry_counts(
        parts, largest_payload_bytes=settings.largest_payload_bytes
    )
    if counts is None:
        return None
    return [CheckedSet(data, count, len(data)) for data, count in zip(parts, counts, strict=True)]
