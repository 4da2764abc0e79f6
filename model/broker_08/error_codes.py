"""The code that a response has for an error of a log."""

from __future__ import annotations

from watchkeeper.model.log.format.errors import (
    InvalidMessage,
    InvalidTopic,
    LogError,
    MessageSizeTooLarge,
    OffsetOutOfRange,
    UnknownMagic,
)
from watchkeeper.model.log.format.requests_08 import PartitionError

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
