"""The frames of ZooKeeper's protocol and their headers."""

from __future__ import annotations

import struct

import pytest

from watchkeeper.real.proxy.zk_frames import (
    Frames,
    Request,
    Session,
    renumbered,
    reply_of,
    request_of,
    session_of,
)


def frame(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


def test_frames_are_found_wherever_the_stream_is_cut() -> None:
    stream = [frame(b"one"), frame(), frame(b"three" * 50)]
    whole = b"".join(stream)

    for size in (1, 2, 5, 7, len(whole)):
        frames = Frames()
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert [frame for piece in pieces for frame in frames.feed(piece)] == stream


@pytest.mark.parametrize("start", [b"ruok", b"\xff\xff\xff\xff"])
def test_what_is_no_frame_is_passed_on_as_it_comes(start: bytes) -> None:
    frames = Frames()

    assert frames.feed(start[:3]) == []
    assert frames.feed(start[3:] + b"more") == [start + b"more"]
    assert frames.is_raw
    assert frames.feed(b"and") == [b"and"]


def test_heads_are_read() -> None:
    asks = frame(struct.pack(">ii", 7, 1), b"path")
    answers = frame(struct.pack(">iqi", 7, 99, -110))
    granted = frame(struct.pack(">iiqi", 0, 4000, 5, 16), bytes(range(16)), b"\0")
    refused = frame(struct.pack(">iiqi", 0, 0, 0, 16), bytes(16))

    assert request_of(asks) == Request(7, 1)
    assert request_of(renumbered(asks, -1001)) == Request(-1001, 1)
    assert renumbered(asks, -1001)[12:] == asks[12:]
    assert reply_of(answers) == (7, -110)
    assert session_of(granted) == Session(5, bytes(range(16)))
    assert session_of(refused) is None
    assert request_of(frame(b"abc")) is reply_of(frame(b"abc")) is session_of(frame()) is None


@pytest.mark.parametrize(
    ("xid", "opcode", "is_of_program", "is_write"),
    [(1, 1, True, True), (9, 4, True, False), (-2, 11, False, False), (-4, 100, False, False)],
)
def test_pings_and_credentials_are_no_programs_requests(
    xid: int, opcode: int, is_of_program: bool, is_write: bool
) -> None:
    request = Request(xid, opcode)

    assert (request.is_of_program, request.is_write) == (is_of_program, is_write)
