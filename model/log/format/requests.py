"""The five requests of Kafka 0.7, and their responses.

    request     int32 size of what follows, int16 number of the request, its fields
    response    int32 size of what follows, its fields

The two produce requests have no response: a producer of 0.7 never learns their outcome. A
response does not name its request; responses have the order of the requests. The response to a
multifetch does not contain the number of its parts either.

The decoders take a whole frame without its first four bytes. `frame_size` reads those before,
so that an excessive frame is refused before memory is allocated for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import ClassVar

from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.format.errors import NO_ERROR, MalformedRequest, MalformedResponse
from watchkeeper.model.log.format.fields import (
    INT16,
    INT32,
    INT64,
    MESSAGE_SET,
    REST,
    STRING,
    Frame,
    Reader,
    counted,
    sized,
)
from watchkeeper.model.log.format.frames import Field, WireStruct, encode_frame, struct_type

ANY_PARTITION = -1
"""The partition of a produce request whose partition the broker chooses."""
LATEST = -1
"""In place of a time: the offset of the next message to be appended."""
EARLIEST = -2
"""In place of a time: the offset of the first message of the log."""

TOPIC = Field("topic", STRING, "the name of the topic")
PARTITION = Field("partition", INT32, "its number at this broker, from 0")
TIME = Field("time_ms", INT64, "milliseconds since 1970; -1: the latest, -2: the earliest")
MAX_OFFSETS = Field("max_offsets", INT32, "the largest number of offsets")
ERROR = Field("error_code", INT16, "0, or the code of an error")
OFFSETS = Field("offsets", counted(INT32, INT64), "the latest first")


# --- requests --------------------------------------------------------------------------


class Request(WireStruct, frozen=True):
    """A request of a client to a broker."""

    header_bytes = 6
    number: ClassVar[int]
    """The number of the request on the wire."""


class ProduceRequest(Request, frozen=True):
    """Append messages to a partition. There is no response."""

    topic: str
    partition: int
    messages: Contents
    number = 0
    layout = (
        TOPIC,
        PARTITION._replace(
            description="its number at this broker, from 0; -1: the broker chooses"
        ),
        Field("messages", MESSAGE_SET, "the messages to append"),
    )


class FetchRequest(Request, frozen=True):
    """Read up to `max_bytes` at an offset."""

    topic: str
    partition: int
    offset: int
    max_bytes: int
    number = 1
    layout = (
        TOPIC,
        PARTITION,
        Field("offset", INT64, "the first offset to read, in bytes"),
        Field(
            "max_bytes", INT32, "the largest size of the response; the last entry may be partial"
        ),
    )


class MultiFetchRequest(Request, frozen=True):
    """Read from several partitions at once."""

    fetches: tuple[FetchRequest, ...]
    number = 2
    layout = (Field("fetches", counted(INT16, struct_type(FetchRequest)), "the fetches"),)


class MultiProduceRequest(Request, frozen=True):
    """Append to several partitions at once. There is no response."""

    produces: tuple[ProduceRequest, ...]
    number = 3
    layout = (Field("produces", counted(INT16, struct_type(ProduceRequest)), "the produces"),)


class OffsetsRequest(Request, frozen=True):
    """Request the first offsets of segments that were written before a time."""

    topic: str
    partition: int
    time_ms: int
    max_offsets: int
    number = 4
    layout = (
        TOPIC,
        PARTITION,
        TIME,
        MAX_OFFSETS,
    )


REQUESTS: dict[int, type[Request]] = {
    request.number: request
    for request in (
        ProduceRequest,
        FetchRequest,
        MultiFetchRequest,
        MultiProduceRequest,
        OffsetsRequest,
    )
}
"""Number on the wire -> request."""


def encode_request(request: Request) -> bytes:
    """Encode a request as a frame."""
    return encode_frame(b"".join(INT16.parts(request.number)), request)


LATER_HEADER = struct.Struct(">hhih")
"""What a request of 0.8 or later begins with: its key, its version, a number, the length of the
client's name."""
MOST_KEY, MOST_VERSION, MOST_NAME_BYTES = 100, 20, 249


def decode_request(frame: Frame) -> Request:
    """Decode a request from a frame without its first four bytes; raise `MalformedRequest`."""
    try:
        return _decoded(frame)
    except MalformedRequest as error:
        if later := _as_later(frame):
            raise MalformedRequest(error.where, f"{error.detail}; {later}") from None
        raise


def _as_later(frame: Frame) -> str:
    """Describe a frame that reads as a request of 0.8 or later; empty for another one."""
    if len(frame) < LATER_HEADER.size:
        return ""
    key, version, _, name_bytes = LATER_HEADER.unpack_from(frame)
    name = bytes(frame[LATER_HEADER.size :][: max(name_bytes, 0)])
    is_header = 0 <= key <= MOST_KEY and 0 <= version <= MOST_VERSION
    has_name = -1 <= name_bytes <= MOST_NAME_BYTES and len(name) == max(name_bytes, 0)
    has_name &= bool(name) or version == 0  # where 0.7 has the length of a topic's name
    if not (is_header and has_name and name.isascii() and name.decode("ascii").isprintable()):
        return ""
    client = f"client {name.decode('ascii')!r}" if name else "a client without a name"
    return (
        f"it reads as request {key} of {client} in the protocol of Kafka 0.8 or later; this "
        "broker speaks that of 0.7"
    )


def _decoded(frame: Frame) -> Request:
    reader = Reader(frame, "request", MalformedRequest)
    number = INT16.read(reader)
    if number not in REQUESTS:
        raise reader.malformed(
            f"request {number}, and there are {min(REQUESTS)} to {max(REQUESTS)}"
        )
    kind = REQUESTS[number]
    reader.what = kind.__name__
    request: Request = struct_type(kind).read(reader)
    reader.finish()
    return request


# --- responses -------------------------------------------------------------------------


class Response(WireStruct, frozen=True):
    """A response of a broker."""

    header_bytes = 4


class FetchResponse(Response, frozen=True):
    """The messages that were read, or an error code."""

    messages: Contents = b""
    error_code: int = NO_ERROR
    layout = (ERROR, Field("messages", REST, "the messages read"))


class MultiFetchResponse(Response, frozen=True):
    """The fetch responses of a multifetch, in the order of the request."""

    responses: tuple[FetchResponse, ...] = ()
    error_code: int = NO_ERROR
    layout = (
        ERROR._replace(description="0; each part has its own code"),
        Field(
            "responses", sized(struct_type(FetchResponse)), "one for each fetch, in their order"
        ),
    )


class OffsetsResponse(Response, frozen=True):
    """First offsets of segments, the latest first."""

    offsets: tuple[int, ...] = ()
    error_code: int = NO_ERROR
    layout = (ERROR, OFFSETS)


RESPONSES: dict[type[Request], type[Response]] = {
    FetchRequest: FetchResponse,
    MultiFetchRequest: MultiFetchResponse,
    OffsetsRequest: OffsetsResponse,
}
"""Request -> response, for requests with one."""


def encode_response(response: Response) -> bytes:
    """Encode a response as a frame."""
    return encode_frame(b"", response)


@lru_cache(maxsize=256)
def fetch_head(size_bytes: int, error_code: int = NO_ERROR) -> bytes:
    """Return the bytes before the messages of a fetch response; the messages come from a file.

    They are the same for a frame and for a part of a multifetch response.
    """
    size = INT32.parts(INT16.smallest_bytes + size_bytes)
    return b"".join((*size, *INT16.parts(error_code)))


def multifetch_head(sizes_bytes: Iterable[int]) -> bytes:
    """Return the bytes before the parts of a multifetch response; each has its own head."""
    parts_bytes = sum(len(fetch_head(size)) + size for size in sizes_bytes)
    return fetch_head(parts_bytes)


def decode_response(request: Request, frame: bytes) -> Response:
    """Decode a response from a frame without its first four bytes.

    Raises `MalformedResponse`, also if a multifetch response has the wrong number of parts.
    """
    kind = RESPONSES[type(request)]
    reader = Reader(frame, kind.__name__, MalformedResponse)
    response: Response = struct_type(kind).read(reader)
    reader.finish()
    if isinstance(request, MultiFetchRequest) and isinstance(response, MultiFetchResponse):
        parts, expected = len(response.responses), len(request.fetches)
        if response.error_code == NO_ERROR and parts != expected:
            raise reader.malformed(f"{parts} parts; expected {expected}")
    return response
