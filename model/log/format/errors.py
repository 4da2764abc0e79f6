"""The errors of logs, requests and message sets, with their codes on the wire.

Each error is an exception with the code that a broker sends for it. The protocol of 0.7 has
five codes. An error without a code of its own is sent as `Unknown`; the receiver of a code
knows only the class that `error_of` returns.
"""

from __future__ import annotations

NO_ERROR = 0
"""The code of a successful response."""


class LogError(Exception):
    """A log, a message set, a request or a response is invalid."""

    code = -1
    meaning = "something is wrong with a log"

    def __init__(self, where: str, detail: str = "") -> None:
        super().__init__(where, detail)
        self.where = where
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.where}: {self.meaning}" + (f" ({self.detail})" if self.detail else "")


# --- errors with a code of their own ---------------------------------------------------


class Unknown(LogError):
    """A broker failed with an error that has no code."""

    meaning = "the broker failed, and there is no code for how; its own log says more"


class OffsetOutOfRange(LogError):
    """The log begins after the offset, or ends before it."""

    code = 1
    meaning = "the log does not have this offset; ask for its earliest or latest one"


class InvalidMessage(LogError):
    """The checksum of a message is wrong, or the message cannot be read."""

    code = 2
    meaning = "a message is damaged"


class WrongPartition(LogError):
    """The broker has no such partition of the topic."""

    code = 3
    meaning = "the broker has no such partition"


class InvalidFetchSize(LogError):
    """A fetch returned no whole entry, or the size of an entry is impossible."""

    code = 4
    meaning = "a fetch of this size gives no message"


CODES = {
    error.code: error
    for error in (Unknown, OffsetOutOfRange, InvalidMessage, WrongPartition, InvalidFetchSize)
}
"""Code -> its error."""


def error_of(code: int) -> type[LogError]:
    """Return the error of a code; `Unknown` for an unknown code."""
    assert code != NO_ERROR, "a successful response has no error"
    return CODES.get(code, Unknown)


# --- errors with the code of another one -----------------------------------------------


class InvalidMessageSize(InvalidFetchSize):
    """The size of an entry is impossible, or no entry is whole.

    A broker sends it as `InvalidFetchSize`, which is its meaning for a client.
    """

    meaning = "there is no whole entry; fetch more at once, or the log is damaged here"


class UnknownMagic(LogError):
    """A message has an unknown format."""

    meaning = "the message has a format that is not known here"


class UnknownCodec(LogError):
    """Messages are compressed with an unknown codec."""

    meaning = "the messages are compressed in a way that is not known here"


class CorruptCompression(InvalidMessage):
    """Compressed messages cannot be decompressed."""

    meaning = "what is compressed here cannot be decompressed"


class NestedTooDeep(InvalidMessage):
    """Wrappers contain wrappers, beyond the limit."""

    meaning = "compressed messages are nested too deep"


class DecompressedTooLarge(InvalidMessage):
    """Compressed messages exceed the limit when they are decompressed."""

    meaning = "what is compressed here holds more than is allowed"


class MessageSizeTooLarge(LogError):
    """A payload is larger than the broker accepts (`max.message.size`)."""

    meaning = "the payload is larger than the broker takes (max.message.size)"


class InvalidTopic(LogError):
    """The name of a topic cannot be used for a folder."""

    meaning = "the topic's name is not allowed"


class MalformedRequest(LogError):
    """A request does not follow the protocol."""

    meaning = "the request does not follow the protocol"


class MalformedResponse(LogError):
    """A response does not follow the protocol."""

    meaning = "the response does not follow the protocol"


class InvalidFrameSize(LogError):
    """A frame is empty, or larger than its reader accepts (`max.socket.request.bytes`)."""

    meaning = "a frame of this size is not taken here (max.socket.request.bytes)"


class FieldOverflow(LogError):
    """A value is too large for its field."""

    meaning = "the value does not fit its field"
