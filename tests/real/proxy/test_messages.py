"""What the proxy reads of the messages that pass."""

from __future__ import annotations

import pytest

from watchkeeper.model.actor.operations import Create
from watchkeeper.model.wire.connect import ConnectResponse, SessionKey, encode_connect_response
from watchkeeper.model.wire.frames import frame
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.replies import Reply, encode_reply
from watchkeeper.model.wire.requests import encode_request
from watchkeeper.real.proxy.messages import (
    MessageStream,
    RequestHead,
    head_of,
    renumbered,
    reply_of,
    session_of,
)

CREATE = frame(encode_request(7, Opcode.CREATE, Create("/a", b"data")))


def test_messages_are_found_wherever_the_stream_is_cut() -> None:
    """Each message keeps its length, so that it can be passed on as it is."""
    sent = [frame(b"one"), frame(b""), frame(b"three" * 50)]
    whole = b"".join(sent)

    for size in (1, 2, 5, 7, len(whole)):
        stream = MessageStream()
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert [message for piece in pieces for message in stream.feed(piece)] == sent


@pytest.mark.parametrize("start", [b"ruok", b"\xff\xff\xff\xff"])
def test_what_is_no_frame_is_passed_on_as_it_comes(start: bytes) -> None:
    """A four-letter word reaches the server, and nothing after it is taken for a frame."""
    stream = MessageStream()

    assert stream.feed(start[:3]) == []
    assert stream.feed(start[3:] + b"more") == [start + b"more"]
    assert stream.is_raw
    assert stream.feed(b"and") == [b"and"]


def test_what_comes_before_bytes_that_are_no_frame_is_passed_on_too() -> None:
    """No byte is lost where the stream stops to make sense."""
    assert MessageStream().feed(CREATE + b"\xff\xff\xff\xff!") == [CREATE, b"\xff\xff\xff\xff!"]


def test_heads_are_read() -> None:
    """A request has an xid and an opcode; a late one is sent with another xid, else unchanged."""
    late = renumbered(CREATE, -1001)

    assert head_of(CREATE) == RequestHead(7, Opcode.CREATE)
    assert head_of(late) == RequestHead(-1001, Opcode.CREATE)
    assert late[8:] == CREATE[8:]
    assert len(late) == len(CREATE)


def test_answers_are_read() -> None:
    """A reply has the xid that it answers; a first message says which session it grants."""
    granted = ConnectResponse(0, 4000, 5, bytes(range(16)), False)
    refused = ConnectResponse(0, 0, 0, bytes(16), False)

    assert reply_of(frame(encode_reply(7, 99, -110))) == Reply(7, 99, -110, b"")
    assert session_of(frame(encode_connect_response(granted))) == SessionKey(5, bytes(range(16)))
    assert session_of(frame(encode_connect_response(refused))) is None


def test_what_is_too_short_has_no_head() -> None:
    """Such a message is passed on, and no fault is aimed at it."""
    short = frame(b"abc")

    assert head_of(short) is reply_of(short) is session_of(frame(b"")) is None


@pytest.mark.parametrize(
    ("xid", "opcode", "is_of_program", "is_write"),
    [
        (1, Opcode.CREATE, True, True),
        (9, Opcode.GET_DATA, True, False),
        (-2, Opcode.PING, False, False),
        (-4, Opcode.AUTH, False, False),
        (3, Opcode.CREATE_TTL, True, True),
    ],
)
def test_pings_and_credentials_are_no_programs_requests(
    xid: int, opcode: int, is_of_program: bool, is_write: bool
) -> None:
    """Faults are aimed at requests of a program, and only a write may land late."""
    head = RequestHead(xid, opcode)

    assert (head.is_of_program, head.is_write) == (is_of_program, is_write)
