"""Which znode the opcode and the flags of a create make."""

from __future__ import annotations

import pytest

from watchkeeper.model.actor.operations import CONTAINER_MS, OPEN, UNLIMITED_MS, Create, Multi
from watchkeeper.model.wire.creates import BAD_LIFETIME_MS
from watchkeeper.model.wire.fields import acl, buffer, int32, int64, string
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import (
    END_OF_PARTS,
    HEADER,
    PART,
    Undecodable,
    decode_request,
    encode_request,
)

TTL_MS = 1_000


def body_of(opcode: Opcode, flags: int, ttl_ms: int = TTL_MS) -> bytes:
    ttl = int64(ttl_ms) if opcode is Opcode.CREATE_TTL else b""
    return string("/a") + buffer(b"x") + acl(OPEN) + int32(flags) + ttl


def alone(opcode: Opcode, flags: int, ttl_ms: int = TTL_MS) -> Create:
    request = decode_request(HEADER.pack(1, opcode) + body_of(opcode, flags, ttl_ms))
    assert type(request.body) is Create
    return request.body


def in_multi(opcode: Opcode, flags: int, ttl_ms: int = TTL_MS) -> tuple[Opcode, Create] | None:
    part = PART.pack(opcode, False, -1) + body_of(opcode, flags, ttl_ms)
    request = decode_request(HEADER.pack(1, Opcode.MULTI) + part + END_OF_PARTS)
    if type(request.body) is Undecodable:
        return None
    assert type(request.body) is Multi
    (operation,), (executed,) = request.body.operations, request.parts
    assert type(operation) is Create
    return executed, operation


@pytest.mark.parametrize("opcode", [Opcode.CREATE, Opcode.CREATE_2])
def test_a_create_is_what_its_flags_say(opcode: Opcode) -> None:
    """Bit 1 is ephemeral, bit 2 sequential; a container's flags make a persistent znode."""
    for flags, ephemeral, sequential in (
        (0, False, False),
        (1, True, False),
        (2, False, True),
        (3, True, True),
        (4, False, False),
    ):
        assert alone(opcode, flags) == Create("/a", b"x", ephemeral, sequential)


@pytest.mark.parametrize("flags", range(5))
def test_a_create_container_makes_a_container_whatever_its_flags(flags: int) -> None:
    """Of the flags only the number at the end of the name counts."""
    assert alone(Opcode.CREATE_CONTAINER, flags) == Create(
        "/a", b"x", sequential=flags in (2, 3), lifetime_ms=CONTAINER_MS
    )


@pytest.mark.parametrize(("flags", "sequential"), [(5, False), (6, True)])
def test_a_create_with_a_ttl_has_flags_of_its_own(flags: int, sequential: bool) -> None:
    """Flags 5 and 6 say that a TTL follows."""
    found = alone(Opcode.CREATE_TTL, flags)

    assert found == Create("/a", b"x", sequential=sequential, lifetime_ms=TTL_MS)


@pytest.mark.parametrize(
    ("opcode", "flags"),
    [
        *[(opcode, flags) for opcode in (Opcode.CREATE, Opcode.CREATE_2) for flags in (5, 6, 7)],
        (Opcode.CREATE, -1),
        (Opcode.CREATE, 0x7FFFFFFF),
        (Opcode.CREATE_CONTAINER, 5),
        *[(Opcode.CREATE_TTL, flags) for flags in (0, 1, 4, 7)],
    ],
)
def test_flags_that_do_not_fit_are_left_to_the_specification(opcode: Opcode, flags: int) -> None:
    """Such a create is decoded, with a lifetime that is refused."""
    assert alone(opcode, flags).lifetime_ms == BAD_LIFETIME_MS


@pytest.mark.parametrize("ttl_ms", [0, -1, -1_000, -(1 << 63)])
def test_a_ttl_that_is_not_positive_is_no_container_and_no_znode_for_ever(ttl_ms: int) -> None:
    """No TTL of a client is taken for one of the lifetimes that stand for something else."""
    assert alone(Opcode.CREATE_TTL, 5, ttl_ms).lifetime_ms == BAD_LIFETIME_MS
    executed = in_multi(Opcode.CREATE_TTL, 5, ttl_ms)
    assert executed is not None
    assert executed[1].lifetime_ms == BAD_LIFETIME_MS


@pytest.mark.parametrize(
    ("opcode", "flags", "executed", "lifetime_ms"),
    [
        (Opcode.CREATE, 0, Opcode.CREATE, UNLIMITED_MS),
        (Opcode.CREATE_2, 0, Opcode.CREATE_2, UNLIMITED_MS),
        (Opcode.CREATE_CONTAINER, 0, Opcode.CREATE_CONTAINER, CONTAINER_MS),
        (Opcode.CREATE_CONTAINER, 1, Opcode.CREATE_CONTAINER, CONTAINER_MS),
        (Opcode.CREATE_TTL, 0, Opcode.CREATE, UNLIMITED_MS),
        (Opcode.CREATE, 4, Opcode.CREATE_CONTAINER, CONTAINER_MS),
        (Opcode.CREATE_TTL, 4, Opcode.CREATE_CONTAINER, CONTAINER_MS),
        (Opcode.CREATE_TTL, 5, Opcode.CREATE_TTL, TTL_MS),
        (Opcode.CREATE_TTL, 7, Opcode.CREATE_TTL, BAD_LIFETIME_MS),
    ],
)
def test_in_a_multi_opcode_and_flags_decide(
    opcode: Opcode, flags: int, executed: Opcode, lifetime_ms: int
) -> None:
    """A container is one by its opcode or by its flags; a TTL by both."""
    assert in_multi(opcode, flags) == (executed, Create("/a", b"x", lifetime_ms=lifetime_ms))


def test_a_multi_may_create_containers_with_numbers() -> None:
    """Only the number is taken from the flags of a createContainer."""
    for flags in (2, 3):
        numbered = Create("/a", b"x", sequential=True, lifetime_ms=CONTAINER_MS)
        assert in_multi(Opcode.CREATE_CONTAINER, flags) == (Opcode.CREATE_CONTAINER, numbered)


@pytest.mark.parametrize(
    "opcode", [Opcode.CREATE, Opcode.CREATE_2, Opcode.CREATE_CONTAINER], ids=lambda it: it.name
)
@pytest.mark.parametrize("flags", [-1, 5, 6, 7, 99])
def test_in_a_multi_flags_that_do_not_fit_leave_nothing(opcode: Opcode, flags: int) -> None:
    """Only createTTL tells its flags from what cannot be decoded."""
    assert in_multi(opcode, flags) is None


def test_an_opcode_is_never_written_for_another_znode() -> None:
    """A client that would create something else by mistake learns of it before it sends."""
    limited = Create("/a", lifetime_ms=TTL_MS)

    with pytest.raises(ValueError, match="a lifetime of 1000 ms has the opcode 21, not 1"):
        encode_request(1, Opcode.CREATE, limited)
    with pytest.raises(ValueError, match="has the opcode 1, not 21"):
        encode_request(1, Opcode.CREATE_TTL, Create("/a"))
