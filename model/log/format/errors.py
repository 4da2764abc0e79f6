"""What can be wrong with a log, with a request, and with what they carry.

Each is an exception, and each has the code that a broker sends for it. The protocol of 0.7
has five codes; what none of them fits goes out as `Unknown`, and whoever receives a code
knows no more than `error_of` says.
"""

from __future__ import annotations

NO_ERROR = 0
"""The code of a response that carries what was asked for."""


class LogError(Exception):
    """A log, a message set, a request or a response is not what it has to be."""

    code = -1
    meaning = "something is wrong with a log"

    def __init__(self, where: str, detail: str = "") -> None:
        super().__init__(where, detail)
        self.where = where
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.where}: {self.meaning}" + (f" ({self.detail})" if self.detail else "")


# --- with a code of their own ----------------------------------------------------------


class Unknown(LogError):
    """A broker failed in a way for which there is no code."""

    meaning = "the broker failed, and there is no code for how; its own log says more"


class OffsetOutOfRange(LogError):
    """The log begins after the offset, or ends before it."""

    code = 1
    meaning = "the log does not have this offset; ask for its earliest or latest one"


class InvalidMessage(LogError):
    """A message is not what it was when its checksum was made, or cannot be read."""

    code = 2
    meaning = "a message is damaged"


class WrongPartition(LogError):
    """The broker has no such partition of the topic."""

    code = 3
    meaning = "the broker has no such partition"


class InvalidFetchSize(LogError):
    """What was fetched holds no whole entry, or the size of an entry is impossible."""

    code = 4
    meaning = "a fetch of this size gives no message"


CODES = {
    error.code: error
    for error in (Unknown, OffsetOutOfRange, InvalidMessage, WrongPartition, InvalidFetchSize)
}
"""Code -> what it stands for."""


def error_of(code: int) -> type[LogError]:
    """The error that a code stands for; one that nobody knows stands for `Unknown`."""
    assert code != NO_ERROR, "a response without an error has none to be asked for"
    return CODES.get(code, Unknown)


# --- with the code of another ----------------------------------------------------------


class InvalidMessageSize(InvalidFetchSize):
    """The size of an entry is impossible, or not one entry is whole.

    It leaves a broker as `InvalidFetchSize`: seen from a client, that is what it means.
    """

    meaning = "there is no whole entry; fetch more at once, or the log is damaged here"


class UnknownMagic(LogError):
    """A message is in a format that is not known."""

    meaning = "the message has a format that is not known here"


class UnknownCodec(LogError):
    """Messages are compressed in a way that is not known."""

    meaning = "the messages are compressed in a way that is not known here"


class CorruptCompression(InvalidMessage):
    """What is said to be compressed messages cannot be decompressed."""

    meaning = "what is compressed here cannot be decompressed"


class NestedTooDeep(InvalidMessage):
    """Compressed messages within compressed messages, and so on, without an end in sight."""

    meaning = "compressed messages are nested too deep"


class DecompressedTooLarge(InvalidMessage):
    """Compressed messages hold more than is allowed."""

    meaning = "what is compressed here holds more than is allowed"


class MessageSizeTooLarge(LogError):
    """A payload is larger than the broker takes (`max.message.size`)."""

    meaning = "the payload is larger than the broker takes (max.message.size)"


class InvalidTopic(LogError):
    """A topic's name cannot be that of a folder."""

    meaning = "the topic's name is not allowed"


class MalformedRequest(LogError):
    """A request does not follow the protocol."""

    meaning = "the request does not follow the protocol"


class MalformedResponse(LogError):
    """A response does not follow the protocol."""

    meaning = "the response does not follow the protocol"


class InvalidFrameSize(LogError):
    """A frame is empty, or larger than whoever reads it takes (`max.socket.request.bytes`)."""

    meaning = "a frame of this size is not taken here (max.socket.request.bytes)"


class DoesNotFit(LogError):
    """A value is too large for its field."""

    meaning = "the value does not fit its field"
