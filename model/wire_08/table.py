"""Requests and responses of 0.8 by key and version: between frames and values.

The decoders take a whole frame without its first four bytes, from a program that is not trusted:
a frame gives a value or a `LogError`, and the value takes no more memory than a few times the
frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from watchkeeper.model.log.format.errors import MalformedRequest, MalformedResponse
from watchkeeper.model.log.format.fields import INT32, Frame, Reader
from watchkeeper.model.log.format.frames import WireStruct, encode_frame, struct_type
from watchkeeper.model.log.format.requests import Response
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    OffsetsResponse,
    RequestHeader,
)
from watchkeeper.model.wire_08.fetch import FetchRequest, FetchResponse
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequest,
    CommitRequestV1,
    CommitResponse,
    CommittedRequest,
    CommittedRequestV1,
    CommittedResponse,
    ConsumerMetadataRequest,
    ConsumerMetadataResponse,
)
from watchkeeper.model.wire_08.metadata import MetadataRequest, MetadataResponse
from watchkeeper.model.wire_08.produce import ProduceRequest, ProduceResponse


class Api(NamedTuple):
    """A request in one version: its key, its version, and its classes."""

    key: int
    version: int
    request: type[WireStruct]
    response: type[Response]


APIS = (
    Api(0, 0, ProduceRequest, ProduceResponse),
    Api(1, 0, FetchRequest, FetchResponse),
    Api(2, 0, OffsetsRequest, OffsetsResponse),
    Api(3, 0, MetadataRequest, MetadataResponse),
    Api(8, 0, CommitRequest, CommitResponse),
    Api(8, 1, CommitRequestV1, CommitResponse),
    Api(9, 0, CommittedRequest, CommittedResponse),
    Api(9, 1, CommittedRequestV1, CommittedResponse),
    Api(10, 0, ConsumerMetadataRequest, ConsumerMetadataResponse),
)
"""The requests that a client of 0.8.2 sends to a broker."""
BETWEEN_BROKERS = {
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
}
"""The keys of requests that a controller or another broker sends."""
REQUESTS_07_HEAD_BYTES = 4
"""The number of a request of 0.7, and the length of the name of a topic."""

_BY_KEY = {(api.key, api.version): api for api in APIS}
_BY_REQUEST = {api.request: api for api in APIS}


class UnknownApi(MalformedRequest):
    """A request has a key or a version that is not answered here.

    Brokers of 0.8 close the connection. Kafka 0.10 and later answer a request of version 18.0
    with the versions that they know; its clients go on with 0.8's when the connection breaks.
    """

    meaning = "the request is not answered here"


def knows(request: object) -> bool:
    """Whether a value is a request of a client of 0.8."""
    return type(request) in _BY_REQUEST


def starts(frame: Frame, requests: Iterable[type[WireStruct]]) -> bool:
    """Whether a frame, without its size, begins like one of these requests."""
    begin = (int.from_bytes(frame[:2]), int.from_bytes(frame[2:4]))
    return begin in {(_BY_REQUEST[each].key, _BY_REQUEST[each].version) for each in requests}


def decode_request(frame: Frame) -> tuple[RequestHeader, WireStruct]:
    """Decode a request with its header; raise `MalformedRequest`, or `UnknownApi` for a key."""
    reader = Reader(frame, "request", MalformedRequest)
    header: RequestHeader = _read_header(reader, frame)
    api = _BY_KEY.get((header.key, header.version))
    if api is None:
        raise _unknown(header)
    reader.what = api.request.__name__
    request: WireStruct = struct_type(api.request).read(reader)
    reader.finish()
    return header, request


def _read_header(reader: Reader, frame: Frame) -> RequestHeader:
    try:
        header: RequestHeader = struct_type(RequestHeader).read(reader)
    except MalformedRequest as error:
        raise _of_07(frame, error) from None
    if (header.key, header.version) not in _BY_KEY:
        raise _of_07(frame, _unknown(header))
    return header


def _of_07(frame: Frame, error: MalformedRequest) -> MalformedRequest:
    """Return the error, with a sentence if the frame reads as a request of 0.7.

    Where 0.8 has the version, which is at most 1, 0.7 has the length of a topic's name, or the
    number of requests in one.
    """
    number, length = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
    name = bytes(frame[REQUESTS_07_HEAD_BYTES:][:length])
    is_named = number in (0, 1, 4) and 0 < length == len(name) and name.isascii()
    if not is_named or not name.decode("ascii").isprintable():
        return error
    return type(error)(
        error.where,
        f"{error.detail}; it reads as request {number} for topic {name.decode('ascii')!r} in the "
        "protocol of Kafka 0.7; this broker speaks that of 0.8",
    )


def _unknown(header: RequestHeader) -> UnknownApi:
    client = f"client {header.client_id!r}" if header.client_id else "a client without a name"
    if header.key in BETWEEN_BROKERS:
        detail = (
            f"{BETWEEN_BROKERS[header.key]}, key {header.key}, which a controller or a broker "
            "sends; this broker takes no part in replication"
        )
    else:
        known = ", ".join(f"{api.key}.{api.version}" for api in APIS)
        detail = f"key {header.key} in version {header.version}; known are {known}"
    return UnknownApi(f"a request of {client}", detail)


def encode_request(request: WireStruct, correlation_id: int, client_id: str | None) -> bytes:
    """Encode a request as a frame."""
    api = _BY_REQUEST[type(request)]
    header = RequestHeader(api.key, api.version, correlation_id, client_id)
    return encode_frame(b"".join(struct_type(RequestHeader).parts(header)), request)


def decode_response(request: WireStruct, frame: Frame, correlation_id: int) -> Response:
    """Decode the response to a request; raise `MalformedResponse`, also for another's."""
    kind = _BY_REQUEST[type(request)].response
    reader = Reader(frame, kind.__name__, MalformedResponse)
    found = INT32.read(reader)
    if found != correlation_id:
        raise reader.malformed(f"the answer to request {found}; expected {correlation_id}")
    reader.at = 0
    response: Response = struct_type(kind).read(reader)
    reader.finish()
    return response
