"""The five requests of Kafka 0.7, and their responses.

    request     int32 size of what follows, int16 number of the request, its fields
    response    int32 size of what follows, its fields

Two requests have no response: a producer of 0.7 never learns what became of what it sent.
A response does not say to which request it belongs; they come in the order of the requests.
A multifetch's response does not say how many parts it has either.

What is decoded is a whole frame without its first four bytes; those are for `frame_size`,
so that a frame is refused before there is any room for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import ClassVar

from model.log.contents import Contents
from model.log.errors import NO_ERROR, MalformedRequest, MalformedResponse
from model.log.fields import (
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
from model.log.wire import Field, Laid, fields_of, frame_of

ANY_PARTITION = -1
"""A produce request that names this partition leaves the choice to the broker."""
LATEST = -1
"""Instead of a time: the offset at which the next message will be appended."""
EARLIEST = -2
"""Instead of a time: the offset of the first message that is still there."""

TOPIC = Field("topic", STRING, "its name")
PARTITION = Field("partition", INT32, "of this broker, counted from 0")
ERROR = Field("error_code", INT16, "0, or what went wrong")


# --- requests --------------------------------------------------------------------------


class Request(Laid, frozen=True):
    """What a client asks of a broker."""

    head_bytes = 6
    number: ClassVar[int]
    """Which request it is, on the wire."""


class ProduceRequest(Request, frozen=True):
    """Append messages to a partition. There is no response."""

    topic: str
    partition: int
    messages: Contents
    number = 0
    layout = (
        TOPIC,
        PARTITION._replace(says="of this broker, counted from 0; -1: the broker chooses one"),
        Field("messages", MESSAGE_SET, "what is to be appended"),
    )


class FetchRequest(Request, frozen=True):
    """Read from an offset on, at most so many bytes."""

    topic: str
    partition: int
    offset: int
    max_bytes: int
    number = 1
    layout = (
        TOPIC,
        PARTITION,
        Field("offset", INT64, "where to begin: a position in bytes"),
        Field("max_bytes", INT32, "how much to read at most; the last entry may be cut"),
    )


class MultiFetchRequest(Request, frozen=True):
    """Read from several partitions at once."""

    fetches: tuple[FetchRequest, ...]
    number = 2
    layout = (Field("fetches", counted(INT16, fields_of(FetchRequest)), "what to read"),)


class MultiProduceRequest(Request, frozen=True):
    """Append to several partitions at once. There is no response."""

    produces: tuple[ProduceRequest, ...]
    number = 3
    layout = (Field("produces", counted(INT16, fields_of(ProduceRequest)), "what to append"),)


class OffsetsRequest(Request, frozen=True):
    """Ask at which offsets segments begin that were written before a moment."""

    topic: str
    partition: int
    time_ms: int
    max_offsets: int
    number = 4
    layout = (
        TOPIC,
        PARTITION,
        Field("time_ms", INT64, "milliseconds since 1970; -1: the latest, -2: the earliest"),
        Field("max_offsets", INT32, "how many to answer at most"),
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
"""Number on the wire -> which request it is."""


def encode_request(request: Request) -> bytes:
    """Write a request as a frame."""
    return frame_of(b"".join(INT16.parts(request.number)), request)


def decode_request(frame: Frame) -> Request:
    """Read a request from a frame without its first four bytes."""
    reader = Reader(frame, "request", MalformedRequest)
    number = INT16.read(reader)
    if number not in REQUESTS:
        raise reader.wrong(f"request {number}, and there are {min(REQUESTS)} to {max(REQUESTS)}")
    kind = REQUESTS[number]
    reader.what = kind.__name__
    request: Request = fields_of(kind).read(reader)
    reader.finish()
    return request


# --- responses -------------------------------------------------------------------------


class Response(Laid, frozen=True):
    """What a broker answers."""

    head_bytes = 4


class FetchResponse(Response, frozen=True):
    """What was read, or why nothing was."""

    messages: Contents = b""
    error_code: int = NO_ERROR
    layout = (ERROR, Field("messages", REST, "what was read"))


class MultiFetchResponse(Response, frozen=True):
    """What was read from each partition, in the order of the request."""

    responses: tuple[FetchResponse, ...] = ()
    error_code: int = NO_ERROR
    layout = (
        ERROR._replace(says="0; each part has its own"),
        Field("responses", sized(fields_of(FetchResponse)), "one for each fetch, in their order"),
    )


class OffsetsResponse(Response, frozen=True):
    """Offsets at which segments begin, the latest first."""

    offsets: tuple[int, ...] = ()
    error_code: int = NO_ERROR
    layout = (ERROR, Field("offsets", counted(INT32, INT64), "the latest first"))


RESPONSES: dict[type[Request], type[Response]] = {
    FetchRequest: FetchResponse,
    MultiFetchRequest: MultiFetchResponse,
    OffsetsRequest: OffsetsResponse,
}
"""Request -> its response, if it has one."""


def encode_response(response: Response) -> bytes:
    """Write a response as a frame."""
    return frame_of(b"", response)


@lru_cache(maxsize=256)
def fetch_head(size_bytes: int, error_code: int = NO_ERROR) -> bytes:
    """What precedes the messages of a fetch's response, which may be sent from a file.

    It is the same for a frame of its own and for a part of a multifetch's.
    """
    size = INT32.parts(INT16.smallest_bytes + size_bytes)
    return b"".join((*size, *INT16.parts(error_code)))


def multifetch_head(sizes_bytes: Iterable[int]) -> bytes:
    """What precedes the parts of a multifetch's response; each part begins with its own."""
    parts_bytes = sum(len(fetch_head(size)) + size for size in sizes_bytes)
    return fetch_head(parts_bytes)


def decode_response(request: Request, frame: bytes) -> Response:
    """Read the response to a request from a frame without its first four bytes."""
    kind = RESPONSES[type(request)]
    reader = Reader(frame, kind.__name__, MalformedResponse)
    response: Response = fields_of(kind).read(reader)
    reader.finish()
    if isinstance(request, MultiFetchRequest) and isinstance(response, MultiFetchResponse):
        parts, wanted = len(response.responses), len(request.fetches)
        if response.error_code == NO_ERROR and parts != wanted:
            raise reader.wrong(f"{parts} parts, and {wanted} were asked for")
    return response
