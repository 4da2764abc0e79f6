"""Requests as bytes, and what is made of bytes that are no request."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.zookeeper.wire_values import BODIES, requests
from watchkeeper.model.actor.operations import (
    OPEN,
    Acl,
    Create,
    Delete,
    GetData,
    GetEphemerals,
    MultiRead,
    SetAcl,
)
from watchkeeper.model.wire.fields import Malformed, acl, buffer, int32, int64, string, strings
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import (
    END_OF_PARTS,
    HEADER,
    PART,
    Ping,
    Request,
    Undecodable,
    Unknown,
    WithoutPath,
    decode_request,
    encode_request,
)
from watchkeeper.model.zookeeper.acl import NO_IDENTITY

NO_LIST, NO_STRING = int32(-1), string(None)
WITHOUT_A_BODY = {Opcode.PING, Opcode.CLOSE_SESSION, Opcode.WHO_AM_I}
NOT_FROM_CLIENTS = {Opcode.CHECK, Opcode.CREATE_SESSION, Opcode.ERROR}


def written(request: Request) -> bytes:
    return encode_request(request.xid, request.opcode, request.body, request.parts)


def decoded(opcode: int, *fields: bytes) -> Any:
    return decode_request(HEADER.pack(7, opcode) + b"".join(fields)).body


def test_every_opcode_that_a_client_may_send_is_tested() -> None:
    """A round trip is tested for each opcode."""
    assert {*BODIES, Opcode.MULTI} == set(Opcode) - NOT_FROM_CLIENTS


@given(requests)
def test_a_request_is_read_as_it_was_written(request: Request) -> None:
    """Decoding what was encoded gives the same request."""
    assert decode_request(written(request)) == request


@given(requests, st.binary(min_size=1, max_size=9))
def test_what_follows_a_body_is_not_read(request: Request, more: bytes) -> None:
    """A server passes over bytes after the last field that it knows."""
    assert decode_request(written(request) + more) == request


@given(requests, st.data())
def test_a_request_that_is_cut_is_undecodable(request: Request, data: st.DataObject) -> None:
    """A body without its last bytes is no shorter request; without a head there is no answer."""
    payload = written(request)
    cut = payload[: data.draw(st.integers(0, len(payload) - 1))]

    if len(cut) < HEADER.size:
        with pytest.raises(Malformed):
            decode_request(cut)
    else:
        found = decode_request(cut)
        assert (found.xid, found.opcode) == (request.xid, request.opcode)
        assert type(found.body) is Undecodable


@given(requests, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=6))
def test_bytes_that_are_turned_never_break_the_decoder(
    request: Request, turned: list[tuple[int, int]]
) -> None:
    """Whatever a client sends becomes a request, or is Malformed as a whole."""
    payload = bytearray(written(request))
    for place, value in turned:
        payload[place % len(payload)] = value

    found = decode_request(bytes(payload))

    assert HEADER.unpack_from(payload) == (found.xid, found.opcode)


@given(st.sampled_from(sorted(BODIES)) | st.just(Opcode.MULTI), st.binary(max_size=80))
def test_noise_never_breaks_the_decoder(opcode: Opcode, noise: bytes) -> None:
    """Any bytes as a body give a request."""
    assert decode_request(HEADER.pack(1, opcode) + noise).opcode == opcode


@pytest.mark.parametrize(
    ("opcode", "body"),
    [
        (Opcode.GET_DATA, int32((1 << 31) - 1) + b"/a\0"),
        (Opcode.SET_DATA, string("/a") + int32(1 << 30) + bytes(8)),
        (Opcode.SET_WATCHES, int64(0) + int32(1 << 30) + bytes(8)),
        (Opcode.CREATE, string("/a") + buffer(b"") + int32(1 << 30) + bytes(8)),
    ],
)
def test_a_length_is_not_believed(opcode: Opcode, body: bytes) -> None:
    """A length or count beyond the end of the frame is refused before memory is taken for it."""
    tracemalloc.start()
    found = decode_request(HEADER.pack(1, opcode) + body)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert type(found.body) is Undecodable
    assert peak_bytes < 1 << 20


def test_an_opcode_of_no_request_is_unknown() -> None:
    """Opcodes that servers do not know differ from bodies that they cannot read."""
    for number in (0, 10, 13, 23, 99, 108, -1):
        assert decoded(number) == Unknown(number)
    assert type(decoded(Opcode.CREATE_SESSION)) is Undecodable, "known, but not for clients"


def test_negative_lengths_are_read_as_apaches_server_does() -> None:
    """A negative length but -1 is an error of a string, and the length of an empty list."""
    entries = decoded(Opcode.SET_ACL, string("/a"), int32(-2), int32(0))

    assert entries == SetAcl("/a", (), 0)
    assert type(decoded(Opcode.GET_ACL, int32(-2))) is Undecodable
    assert type(decoded(Opcode.SET_WATCHES, int64(0), strings([]) * 2, NO_LIST)) is Undecodable


@pytest.mark.parametrize(
    "opcode",
    [
        Opcode.SYNC,
        Opcode.ADD_WATCH,
        Opcode.CHECK_WATCHES,
        Opcode.REMOVE_WATCHES,
    ],
)
def test_some_requests_need_no_path(opcode: Opcode) -> None:
    """A server executes these without a path, but not if the rest is cut."""
    has_number = opcode is not Opcode.SYNC
    number = int32(1) if has_number else b""

    assert decoded(opcode, NO_STRING, number) == WithoutPath()
    if has_number:
        assert type(decoded(opcode, NO_STRING, number[:3])) is Undecodable


def test_no_prefix_of_ephemerals_stands_for_all() -> None:
    """A missing prefix is as good as an empty one."""
    assert decoded(Opcode.GET_EPHEMERALS, NO_STRING) == GetEphemerals("")


@pytest.mark.parametrize(
    ("opcode", "rest", "is_ordered"),
    [
        (Opcode.CREATE, buffer(b"") + acl(OPEN) + int32(0), True),
        (Opcode.DELETE, int32(-1), True),
        (Opcode.DELETE_CONTAINER, b"", False),
        (Opcode.GET_DATA, b"\0", False),
        (Opcode.COUNT_DESCENDANTS, b"", False),
    ],
)
def test_a_write_without_a_path_takes_a_zxid(
    opcode: Opcode, rest: bytes, is_ordered: bool
) -> None:
    """The leader finds a missing path once the body is whole; a body that is cut comes first."""
    whole = decoded(opcode, NO_STRING, rest)
    cut = decoded(opcode, NO_STRING, rest[:-1])

    assert type(whole) is Undecodable
    assert whole.is_ordered is is_ordered
    if rest:
        assert type(cut) is Undecodable
        assert not cut.is_ordered


@pytest.mark.parametrize(
    ("opcode", "rest"),
    [
        (Opcode.SET_DATA, buffer(b"x") + int32(-1)),
        (Opcode.SET_DATA, NO_STRING + int32(-1)),
        (Opcode.SET_ACL, acl(OPEN) + int32(-1)),
    ],
)
def test_to_a_set_a_missing_path_is_a_path_that_is_not_valid(opcode: Opcode, rest: bytes) -> None:
    """The operation goes to the specification, which answers BadArguments, as Apache's does."""
    assert decoded(opcode, NO_STRING, rest).path == ""


def test_an_earlier_fault_decides_about_a_request_without_a_path() -> None:
    """Flags are looked at before the path of a create, and so is the path of a setACL."""
    create = decoded(Opcode.CREATE, NO_STRING, buffer(b""), acl(OPEN), int32(9))
    set_acl = decoded(Opcode.SET_ACL, NO_STRING, acl(OPEN), int32(-1))

    assert type(create) is Create
    assert set_acl == SetAcl("", OPEN, -1)


def test_a_missing_identity_is_not_an_empty_one() -> None:
    """A server fails on a missing identity only if the scheme looks at it."""
    for scheme, identity in (("world", NO_IDENTITY), ("digest", NO_IDENTITY), ("auth", "")):
        entry = int32(1) + int32(31) + string(scheme) + NO_STRING
        found = decoded(Opcode.SET_ACL, string("/a"), entry, int32(-1))
        assert found.acl == (Acl(31, scheme, identity),)

    nameless = int32(1) + int32(31) + NO_STRING + NO_STRING
    assert decoded(Opcode.SET_ACL, string("/a"), nameless, int32(-1)).acl == (Acl(31, "", ""),)


# --- multis ----------------------------------------------------------------------------


def part(opcode: int, *fields: bytes) -> bytes:
    return PART.pack(opcode, False, -1) + b"".join(fields)


CREATED = part(Opcode.CREATE, string("/a"), buffer(b""), acl(OPEN), int32(0))


@pytest.mark.parametrize(
    "parts",
    [
        CREATED,  # without an end
        part(Opcode.DELETE, NO_STRING, int32(-1)) + END_OF_PARTS,
        part(Opcode.GET_DATA, string("/a"), b"\0") + END_OF_PARTS,
        part(Opcode.SET_ACL, string("/a"), acl(OPEN), int32(-1)) + END_OF_PARTS,
        part(Opcode.CREATE, string("/a"), buffer(b""), acl(OPEN), int32(7)) + END_OF_PARTS,
        part(Opcode.CREATE_2, string("/a"), buffer(b""), acl(OPEN), int32(5)) + END_OF_PARTS,
    ],
)
def test_a_multi_with_a_part_that_cannot_be_read_takes_a_zxid(parts: bytes) -> None:
    """One part that cannot be read makes the whole multi undecodable, which the leader finds."""
    found = decoded(Opcode.MULTI, CREATED, parts)

    assert type(found) is Undecodable
    assert found.is_ordered


def test_a_multi_without_a_list_of_permissions_takes_no_zxid() -> None:
    """A list of length -1 fails before the leader numbers the multi."""
    create = part(Opcode.CREATE, string("/a"), buffer(b""), NO_LIST, int32(0))
    found = decoded(Opcode.MULTI, create, END_OF_PARTS)

    assert type(found) is Undecodable
    assert not found.is_ordered


def test_a_multi_read_keeps_the_parts_before_the_one_without_a_path() -> None:
    """A server executes those; a multi read that is cut has none."""
    parts = part(Opcode.GET_DATA, string("/a"), b"\1")
    nowhere = part(Opcode.GET_DATA, NO_STRING, b"\0")

    found = decoded(Opcode.MULTI_READ, parts, nowhere, parts, END_OF_PARTS)
    cut = decoded(Opcode.MULTI_READ, parts, nowhere, parts)
    other = decoded(Opcode.MULTI_READ, parts, part(Opcode.EXISTS, string("/a"), b"\0"))

    assert found.reads == (GetData("/a", True),)
    assert cut.reads is other.reads is None
    assert decoded(Opcode.MULTI_READ, parts, END_OF_PARTS) == MultiRead((GetData("/a", True),))


# --- kinds of watches ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "kind"),
    [(1, "child"), (2, "data"), (3, "any"), (4, "persistent"), (5, "recursive")],
)
def test_kinds_of_watches_have_the_numbers_of_apaches_client(number: int, kind: str) -> None:
    """The numbers are those of `Watcher.WatcherType`."""
    assert decoded(Opcode.CHECK_WATCHES, string("/a"), int32(number)).kind == kind
    assert decoded(Opcode.REMOVE_WATCHES, string("/a"), int32(number)).kind == kind


def test_numbers_of_no_kind_are_undecodable() -> None:
    """There are five kinds to check, and two to add."""
    for number in (0, 6, -1):
        assert type(decoded(Opcode.CHECK_WATCHES, string("/a"), int32(number))) is Undecodable
    assert type(decoded(Opcode.ADD_WATCH, string("/a"), int32(2))) is Undecodable


def test_a_ping_needs_no_body_and_takes_any() -> None:
    """What has no fields is decoded from nothing."""
    assert decoded(Opcode.PING) == decoded(Opcode.PING, b"noise") == Ping()


def test_errors_say_where_and_what() -> None:
    """The reason names the place and what should be there."""
    found = decoded(Opcode.DELETE, string("/a"), struct.pack(">h", 3))

    assert found.reason == "at byte 14 of 16 a 32-bit number should follow"
    assert decoded(Opcode.DELETE, string("/a"), int32(3)) == Delete("/a", 3)
