"""Checks message sets before they are appended to a log.

It needs no log and waits for nothing, so it can be done before it is a set's turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from model.log import message_set
from model.log.contents import Contents
from model.log.entries import checked
from model.log.errors import LogError
from model.log.message_set import Checked
from model.log.settings import LogSettings


def checked_for(settings: LogSettings, messages: Contents) -> Checked:
    """Check what is to be appended to a log that has these settings.

    A `LogError` says what is wrong.
    """
    return checked(
        messages,
        deep=settings.opens_compressed,
        largest_payload_bytes=settings.largest_payload_bytes,
    )


def checked_together(
    settings: LogSettings, sets: Sequence[Contents]
) -> tuple[list[Checked], LogError | None]:
    """Check what is to be appended one after the other, up to the first that is wrong.

    Answered with those before it, and with what is wrong.
    """
    whole = _checked_at_once(settings, sets)
    if whole is not None:
        return whole, None
    found: list[Checked] = []
    for messages in sets:
        try:
            found.append(checked_for(settings, messages))
        except LogError as error:
            return found, error
    return found, None


def _checked_at_once(settings: LogSettings, sets: Sequence[Contents]) -> list[Checked] | None:
    """Check all in one go; None if that gains nothing, or one is to be looked at by itself."""
    parts = [one for one in sets if isinstance(one, bytes)]
    size_bytes = sum(map(len, parts))
    if len(parts) < max(len(sets), 2) or not message_set.are_many(parts[0], size_bytes):
        return None
    from model.log import at_once  # numpy, which nobody needs who appends a few messages

    counts = at_once.counts(parts, largest_payload_bytes=settings.largest_payload_bytes)
    if counts is None:
        return None
    return [Checked(data, count, len(data)) for data, count in zip(parts, counts, strict=True)]
