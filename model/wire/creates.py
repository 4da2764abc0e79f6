"""Creates as bytes: which flags and which opcode make which znode.

Seen on Apache ZooKeeper 3.9.5:
- createContainer makes a container, whatever its flags are; flags 2 and 3 make it sequential.
  create and create2 with the flags of a container make a persistent znode. A TTL with the flags
  of another kind, flags of a TTL without one, and unknown flags are bad arguments. (With flags
  0 and a TTL of -1 Apache's server ends and cannot start again.)
- In a multi createContainer makes a container too, and so does any other create with the flags
  of one. A createTTL with the flags of another kind makes that kind. What becomes of flags that
  do not fit depends on the opcode: with createTTL the part fails for bad arguments, with the
  others nothing of the multi can be decoded.
- A list of permissions of length -1 is a list that is not valid. In a multi the leader fails
  on it before it takes a zxid.
"""

from __future__ import annotations

from watchkeeper.model.actor.operations import CONTAINER_MS, UNLIMITED_MS, Create
from watchkeeper.model.wire.fields import (
    MISSING,
    FieldReader,
    Malformed,
    acl,
    buffer,
    int32,
    int64,
    string,
)
from watchkeeper.model.wire.opcodes import Opcode

EPHEMERAL, SEQUENTIAL, CONTAINER, TTL, TTL_SEQUENTIAL = 1, 2, 4, 5, 6
HIGHEST_FLAGS = TTL_SEQUENTIAL
SEQUENTIAL_FLAGS = frozenset({SEQUENTIAL, EPHEMERAL | SEQUENTIAL, TTL_SEQUENTIAL})
EPHEMERAL_FLAGS = frozenset({EPHEMERAL, EPHEMERAL | SEQUENTIAL})
TTL_FLAGS = frozenset({TTL, TTL_SEQUENTIAL})

_TTL, _CONTAINER = Opcode.CREATE_TTL, Opcode.CREATE_CONTAINER
"""The attributes of an enum are found slowly, and each create reads some."""
BAD_LIFETIME_MS = -2
"""The lifetime of a create whose flags make no sense: the specification refuses it."""


def read_create(fields: FieldReader, opcode: Opcode) -> Create:
    """Read the body of a create."""
    path, data, entries, flags = fields.path(), fields.buffer(), fields.acl(), fields.int32()
    ttl_ms = fields.int64() if opcode is _TTL else UNLIMITED_MS
    is_ephemeral = flags in EPHEMERAL_FLAGS and opcode is not _CONTAINER
    lifetime_ms = _lifetime_of(opcode, flags, ttl_ms)
    is_sequential = flags in SEQUENTIAL_FLAGS
    return Create(path, data, is_ephemeral, is_sequential, entries, lifetime_ms=lifetime_ms)


def _lifetime_of(opcode: Opcode, flags: int, ttl_ms: int) -> int:
    has_ttl = opcode is _TTL
    if not 0 <= flags <= HIGHEST_FLAGS or has_ttl != (flags in TTL_FLAGS):
        return BAD_LIFETIME_MS
    if opcode is _CONTAINER:
        return CONTAINER_MS
    return BAD_LIFETIME_MS if has_ttl and ttl_ms <= 0 else ttl_ms


class MissingList(Malformed):
    """A create of a multi has no list of permissions at all."""


def read_create_of_multi(fields: FieldReader, opcode: Opcode) -> tuple[Opcode, Create]:
    """Read a create of a multi and the opcode that it is executed as."""
    path, data = fields.path(), fields.buffer()
    if fields.data.startswith(MISSING, fields.at):
        raise MissingList(f"at byte {fields.at} no list of permissions, but one is needed")
    entries, flags = fields.acl(), fields.int32()
    ttl_ms = fields.int64() if opcode is _TTL else UNLIMITED_MS
    executed, lifetime_ms = _executed(opcode, flags, ttl_ms)
    is_sequential = flags in SEQUENTIAL_FLAGS
    is_ephemeral = flags in EPHEMERAL_FLAGS and executed is not _CONTAINER
    return executed, Create(
        path, data, is_ephemeral, is_sequential, entries, lifetime_ms=lifetime_ms
    )


def _executed(opcode: Opcode, flags: int, ttl_ms: int) -> tuple[Opcode, int]:
    """The opcode that a part is executed as, and the lifetime of its znode."""
    if opcode is _TTL:
        if not 0 <= flags <= HIGHEST_FLAGS:
            return opcode, BAD_LIFETIME_MS
        if flags in TTL_FLAGS:
            return opcode, ttl_ms if ttl_ms > 0 else BAD_LIFETIME_MS
    elif not 0 <= flags <= CONTAINER:
        raise Malformed(f"a create with the flags {flags} in a multi; there are 0 to {CONTAINER}")
    if flags == CONTAINER or opcode is _CONTAINER:
        return Opcode.CREATE_CONTAINER, CONTAINER_MS
    return Opcode.CREATE_2 if opcode is Opcode.CREATE_2 else Opcode.CREATE, UNLIMITED_MS


def write_create(opcode: int, body: Create) -> bytes:
    """Write the body of a create; raises ValueError for an opcode that makes another znode."""
    wanted = opcode_of_create(body)
    if opcode != wanted and (opcode, wanted) != (Opcode.CREATE_2, Opcode.CREATE):
        raise ValueError(
            f"a create with a lifetime of {body.lifetime_ms} ms has the opcode {wanted}, "
            f"not {opcode}"
        )
    ttl = int64(body.lifetime_ms) if opcode == Opcode.CREATE_TTL else b""
    flags = int32(_flags_of(opcode, body))
    return string(body.path) + buffer(body.data) + acl(body.acl) + flags + ttl


def opcode_of_create(body: Create) -> Opcode:
    """The opcode of a create, with a Stat in the answer only where there is no choice."""
    if body.lifetime_ms == UNLIMITED_MS:
        return Opcode.CREATE
    return Opcode.CREATE_CONTAINER if body.lifetime_ms == CONTAINER_MS else Opcode.CREATE_TTL


def _flags_of(opcode: int, body: Create) -> int:
    if opcode == Opcode.CREATE_CONTAINER:
        return SEQUENTIAL if body.sequential else CONTAINER
    if opcode == Opcode.CREATE_TTL:
        return TTL_SEQUENTIAL if body.sequential else TTL
    return EPHEMERAL * body.ephemeral | SEQUENTIAL * body.sequential
