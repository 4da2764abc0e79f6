"""A server's end of a connection: what may come when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.zookeeper.wire_values import long_numbers, numbers, requests
from watchkeeper.model.actor.operations import Exists
from watchkeeper.model.wire.connect import (
    ConnectRequest,
    ConnectResponse,
    decode_connect_request,
    decode_connect_response,
    encode_connect_request,
    encode_connect_response,
)
from watchkeeper.model.wire.fields import Malformed, int32
from watchkeeper.model.wire.frames import frame
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import Ping, Request, encode_request
from watchkeeper.model.wire.server_connection import (
    WORDS,
    ConnectionState,
    Event,
    ProtocolError,
    ServerConnection,
    Word,
)

NEW = ConnectRequest(0, 0, 30_000, 0, bytes(16), False)
GRANTED = ConnectResponse(0, 30_000, 5, b"p" * 16, False)
REFUSED = ConnectResponse(0, 0, 0, bytes(16), False)
CONNECT = frame(encode_connect_request(NEW))

read_only = st.none() | st.booleans()
connect_requests = st.builds(
    ConnectRequest, numbers, long_numbers, numbers, long_numbers, st.binary(), read_only
)
connect_responses = st.builds(
    ConnectResponse, numbers, numbers, long_numbers, st.binary(), read_only
)


def of(request: Request) -> bytes:
    return frame(encode_request(request.xid, request.opcode, request.body, request.parts))


def connected() -> ServerConnection:
    connection = ServerConnection()
    connection.receive(CONNECT)
    connection.accept(GRANTED)
    return connection


# --- the first frames ------------------------------------------------------------------


@given(connect_requests)
def test_a_connect_request_is_read_as_it_was_written(request: ConnectRequest) -> None:
    """Old clients send no read-only flag, and the difference is kept."""
    assert decode_connect_request(encode_connect_request(request)) == request


@given(connect_responses)
def test_a_connect_response_is_read_as_it_was_written(response: ConnectResponse) -> None:
    """A server answers with a flag those that sent one."""
    assert decode_connect_response(encode_connect_response(response)) == response


@given(connect_requests, st.data())
def test_a_connect_request_that_is_cut_is_malformed(
    request: ConnectRequest, data: st.DataObject
) -> None:
    """Only the flag at its end may be missing."""
    payload = encode_connect_request(request)
    optional = 0 if request.read_only is None else 1
    end = data.draw(st.integers(0, len(payload) - optional - 1))

    with pytest.raises(Malformed):
        decode_connect_request(payload[:end])


def test_a_password_may_be_missing() -> None:
    """A password of length -1 is an empty one."""
    missing = encode_connect_request(NEW)[:24] + int32(-1)

    assert decode_connect_request(missing).password == b""


# --- states ----------------------------------------------------------------------------


def test_a_session_begins_with_a_connect_request() -> None:
    """The first frame is no request with an xid."""
    connection = ServerConnection()
    states = [connection.state]

    assert connection.receive(CONNECT) == [NEW]
    states.append(connection.state)
    assert connection.accept(GRANTED) == frame(encode_connect_response(GRANTED))
    states.append(connection.state)

    assert states == [
        ConnectionState.AWAITING_CONNECT,
        ConnectionState.CONNECTING,
        ConnectionState.OPEN,
    ]
    ping = Request(-2, Opcode.PING, Ping())
    assert connection.receive(of(ping)) == [ping]


def test_a_connect_request_may_be_cut_anywhere() -> None:
    """Only the first four bytes of the stream may be a word, not the first of each piece."""
    named = encode_connect_request(ConnectRequest(0, 0, 30_000, 5, b"p" * 11 + b"ruok", None))
    for stream in (CONNECT, frame(named)):
        for cut in range(1, len(stream)):
            connection = ServerConnection()
            assert connection.receive(stream[:cut]) == []
            assert connection.state is ConnectionState.AWAITING_CONNECT
            (request,) = connection.receive(stream[cut:])
            assert type(request) is ConnectRequest


def test_a_request_before_the_connect_request_ends_the_connection() -> None:
    """A request is too short for a connect request, and nothing after it is read."""
    connection = ServerConnection()
    ping = of(Request(-2, Opcode.PING, Ping()))

    (error,) = connection.receive(ping + CONNECT)

    assert type(error) is ProtocolError
    assert connection.state is ConnectionState.CLOSED
    assert connection.receive(CONNECT) == []


def test_requests_may_follow_the_connect_request_at_once() -> None:
    """A client need not wait for the answer; its requests come in order after it."""
    connection = ServerConnection()
    sent = [Request(xid, Opcode.EXISTS, Exists("/a")) for xid in (1, 2)]

    assert connection.receive(CONNECT + b"".join(map(of, sent))) == [NEW, *sent]
    assert connection.state is ConnectionState.CONNECTING


def test_a_second_connect_request_is_a_request_that_is_not_known() -> None:
    """On an open connection its first bytes are an xid and an opcode."""
    (request,) = connected().receive(CONNECT)

    assert type(request) is Request
    assert (request.xid, request.opcode) == (0, 0)


def test_a_session_that_is_refused_closes_the_connection() -> None:
    """After a timeout of 0 nothing of the client is read."""
    connection = ServerConnection()
    connection.receive(CONNECT)

    assert connection.accept(REFUSED) == frame(encode_connect_response(REFUSED))
    assert connection.state is ConnectionState.CLOSED
    assert connection.receive(of(Request(1, Opcode.PING, Ping()))) == []


def test_a_connect_request_is_answered_once() -> None:
    """An answer without a request, or a second one, is a mistake of the server."""
    with pytest.raises(AssertionError):
        ServerConnection().accept(GRANTED)
    with pytest.raises(AssertionError):
        connected().accept(GRANTED)


# --- four-letter words -----------------------------------------------------------------


@pytest.mark.parametrize("word", sorted(WORDS))
def test_a_word_is_known_by_the_first_four_bytes(word: bytes) -> None:
    """It may come in pieces, and what follows it is not read."""
    for size in (1, 3, 4):
        connection = ServerConnection()
        stream = word + b"\n"
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]

        assert [event for piece in pieces for event in connection.receive(piece)] == [Word(word)]
        assert connection.state is ConnectionState.CLOSED


@pytest.mark.parametrize("first", [b"abcd", b"RUOK", b"\xff\xf4\xff\xfd"])
def test_letters_that_are_no_word_are_a_length_that_is_too_long(first: bytes) -> None:
    """Servers close the connection without an answer."""
    (error,) = ServerConnection().receive(first)

    assert type(error) is ProtocolError


def test_a_word_is_one_only_at_the_start() -> None:
    """On an open connection four letters are a length."""
    connection = connected()
    (error,) = connection.receive(b"ruok")

    assert error == ProtocolError("a frame of 1,920,298,859 bytes; from 0 to 1,048,575 are taken")
    assert connection.state is ConnectionState.CLOSED


# --- streams that make no sense --------------------------------------------------------


def test_what_came_before_a_wrong_length_counts() -> None:
    """The requests before it are executed, and then the connection ends."""
    request = Request(1, Opcode.EXISTS, Exists("/a"))
    connection = connected()

    first, error = connection.receive(of(request) + int32(-1) + of(request))

    assert first == request
    assert type(error) is ProtocolError
    assert connection.receive(of(request)) == []


@pytest.mark.parametrize("size", range(8))
def test_a_frame_without_xid_and_opcode_ends_the_connection(size: int) -> None:
    """There is nothing that an answer could refer to."""
    (error,) = connected().receive(frame(bytes(size)))

    assert type(error) is ProtocolError


def test_the_longest_request_is_of_the_given_size() -> None:
    """The limit is that of `jute.maxbuffer`."""
    connection = ServerConnection(most_bytes=100)

    (error,) = connection.receive(int32(101))

    assert type(error) is ProtocolError


@given(st.lists(requests, max_size=4), st.data())
def test_events_do_not_depend_on_how_the_stream_is_cut(
    sent: list[Request], data: st.DataObject
) -> None:
    """A whole session gives the same events in any pieces."""
    stream = CONNECT + b"".join(map(of, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    connection = ServerConnection()
    events: list[Event] = []

    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        events += connection.receive(stream[begin:end])

    assert events == [NEW, *sent]


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_no_stream_breaks_a_connection(pieces: list[bytes]) -> None:
    """Whatever comes, the connection gives events, and nothing once it is closed."""
    connection = connected()

    for piece in pieces:
        was_closed = connection.state is ConnectionState.CLOSED
        events = connection.receive(piece)
        assert not (was_closed and events)
        is_over = bool(events) and type(events[-1]) is ProtocolError
        assert (connection.state is ConnectionState.CLOSED) is (is_over or was_closed)
