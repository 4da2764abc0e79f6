"""The code that a response has for an error of a log, and the error where none is sent."""

from __future__ import annotations

from collections.abc import Iterable

from watchkeeper.model.log.format.errors import (
    InvalidMessage,
    InvalidTopic,
    LogError,
    MessageSizeTooLarge,
    OffsetOutOfRange,
    UnknownMagic,
)
from watchkeeper.model.log.format.requests_08 import PartitionError, error_name
from watchkeeper.model.wire_08.produce import PartitionAppended

CODES: tuple[tuple[type[LogError], PartitionError], ...] = (
    (OffsetOutOfRange, PartitionError.OFFSET_OUT_OF_RANGE),
    (InvalidMessage, PartitionError.INVALID_MESSAGE),
    (UnknownMagic, PartitionError.INVALID_MESSAGE),
    (MessageSizeTooLarge, PartitionError.MESSAGE_SIZE_TOO_LARGE),
    (InvalidTopic, PartitionError.INVALID_TOPIC),
)
"""The code of an error of a log; another one keeps its own, or is `UNKNOWN`."""


def code_of(error: LogError) -> PartitionError:
    """Return the code that 0.8 has for an error of a log."""
    for kind, code in CODES:
        if isinstance(error, kind):
            return code
    return PartitionError(error.code)


class RefusedWithoutResponse(LogError):
    """Messages were refused, and their producer wants no response: its connection is closed."""

    meaning = "the messages were not appended, and acks 0 leaves no other way to say so"


def raise_first(parts: Iterable[tuple[str, PartitionAppended]]) -> None:
    """Raise `RefusedWithoutResponse` for the first partition with an error, if there is one."""
    for topic, one in parts:
        if one.error_code != PartitionError.NONE:
            where = f"{topic}-{one.partition}"
            raise RefusedWithoutResponse(where, error_name(one.error_code))
