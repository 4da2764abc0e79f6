"""What a server logs for each write: not the request, but what came of it.

A create is logged with the number that its sequential name got, a set with the new version,
and each with the resolved access control list. So nothing is validated when a log is read.
A write that failed is logged as its error code, since it has taken a zxid. A failed multi has
an error for each of its operations: 0 before the one that failed, and -2 after it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from watchkeeper.model.actor.errors import Failure, RuntimeInconsistency
from watchkeeper.model.actor.operations import (
    CONTAINER_MS,
    UNLIMITED_MS,
    Check,
    Create,
    Delete,
    DeleteContainer,
    Multi,
    SetAcl,
    SetData,
)
from watchkeeper.model.wire.fields import (
    Malformed,
    acl,
    boolean,
    buffer,
    int32,
    int64,
    string,
    strings,
)
from watchkeeper.model.wire.opcodes import CREATES, Opcode
from watchkeeper.model.zookeeper import paths
from watchkeeper.model.zookeeper.tree import Tree, Written
from watchkeeper.model.zookeeper.znode import NO_SESSION, Znode

HEADER = struct.Struct(">qiqqi")
"""The session, the xid, the zxid, the time, and the opcode."""
_DELETES = frozenset({Delete, DeleteContainer})
_PLAIN_CREATES = CREATES - {Opcode.CREATE_CONTAINER, Opcode.CREATE_TTL}
_AFTER = RuntimeInconsistency.code


class Transaction(Struct, frozen=True):
    """A logged write, or the begin or end of a session."""

    zxid: int
    session: int
    xid: int
    """The client's number for the request; 0 if a server made it."""
    time_ms: int
    """The leader's wall clock, in milliseconds since 1970."""
    opcode: int
    body: bytes
    """What came of it, as Apache's servers write it; a digest may follow."""


def encode_transaction(transaction: Transaction) -> bytes:
    """Write a transaction; no digest follows it, which Apache's servers do not miss."""
    header = HEADER.pack(
        transaction.session,
        transaction.xid,
        transaction.zxid,
        transaction.time_ms,
        transaction.opcode,
    )
    return header + transaction.body


def decode_transaction(record: bytes) -> Transaction:
    """Read a transaction; raises Malformed if it has no header."""
    try:
        session, xid, zxid, time_ms, opcode = HEADER.unpack_from(record)
    except struct.error:
        raise Malformed(f"a transaction of {len(record)} bytes has no header") from None
    return Transaction(zxid, session, xid, time_ms, opcode, record[HEADER.size :])


def logged(
    before: Tree,
    session: int,
    xid: int,
    zxid: int,
    time_ms: int,
    operation: Any,
    written: Written,
    *,
    opcode: int,
) -> Transaction:
    """Return what is logged for a write that found the tree `before`.

    `operation` is the timeout in ms for the begin of a session, and None for its end.
    """
    kind, body = _kind_and_body(before, operation, written, opcode)
    return Transaction(zxid, session, xid, time_ms, kind, body)


def _kind_and_body(
    before: Tree, operation: Any, written: Written, opcode: int
) -> tuple[int, bytes]:
    answer = written.answer
    if opcode == Opcode.CREATE_SESSION:
        return opcode, int32(operation)
    if opcode == Opcode.CLOSE_SESSION:
        return opcode, strings(answer)
    if type(answer) is Failure:
        if type(operation) is Multi and answer.cause is not None:
            return Opcode.MULTI, _failed_multi(answer, len(operation.operations))
        return Opcode.ERROR, int32(answer.kind.code)
    if type(operation) is Multi:
        return Opcode.MULTI, _multi(before, operation.operations, written)
    znode = None if type(operation) in _DELETES else written.tree.nodes[_path(operation, answer)]
    return _part(operation, answer, znode, before, {}, opcode)


def _path(operation: Any, answer: Any) -> str:
    path: str = answer if type(operation) is Create else operation.path
    return path


# --- multis ----------------------------------------------------------------------------


def _multi(before: Tree, operations: Sequence[Any], written: Written) -> bytes:
    created: dict[str, int] = {}
    answers = zip(operations, written.answer, written.znodes, strict=True)
    return _parts(
        [
            _part(operation, answer, znode, before, created, Opcode.CREATE)
            for operation, answer, znode in answers
        ]
    )


def _failed_multi(failure: Failure, length: int) -> bytes:
    cause = failure.cause
    assert cause is not None, "the multi has a failed part"
    codes = [
        0 if index < failure.index else cause.kind.code if index == failure.index else _AFTER
        for index in range(length)
    ]
    return _parts([(Opcode.ERROR, int32(code)) for code in codes])


def _parts(parts: Sequence[tuple[int, bytes]]) -> bytes:
    return int32(len(parts)) + b"".join([int32(kind) + buffer(body) for kind, body in parts])


# --- single writes ---------------------------------------------------------------------


def _part(
    operation: Any,
    answer: Any,
    znode: Znode | None,
    before: Tree,
    created: dict[str, int],
    opcode: int,
) -> tuple[int, bytes]:
    """The opcode and body of one write.

    `created` counts the children of each znode in the course of a multi.
    """
    kind = type(operation)
    if kind is Delete or kind is DeleteContainer:
        number = Opcode.DELETE if kind is Delete else Opcode.DELETE_CONTAINER
        return number, string(operation.path)
    if kind is Check:
        return Opcode.CHECK, string(operation.path) + int32(operation.version)
    assert znode is not None, "what a create and a set have written is there"
    if kind is SetData:
        body = string(operation.path) + buffer(znode.data) + int32(znode.version)
        return Opcode.SET_DATA, body
    if kind is SetAcl:
        return Opcode.SET_ACL, string(operation.path) + acl(znode.acl) + int32(znode.aversion)
    return _create(answer, znode, before, created, opcode)


def _create(
    path: str, znode: Znode, before: Tree, created: dict[str, int], opcode: int
) -> tuple[int, bytes]:
    parent_path = paths.parent_of(path) or paths.ROOT
    count = created.get(parent_path)
    if count is None:
        count = before.nodes[parent_path].created
    count = created[parent_path] = count + 1
    created[path] = 0
    body = string(path) + buffer(znode.data) + acl(znode.acl)
    if znode.lifetime_ms == CONTAINER_MS:
        return Opcode.CREATE_CONTAINER, body + int32(count)
    if znode.lifetime_ms != UNLIMITED_MS:
        return Opcode.CREATE_TTL, body + int32(count) + int64(znode.lifetime_ms)
    number = opcode if opcode in _PLAIN_CREATES else Opcode.CREATE
    return number, body + boolean(znode.owner != NO_SESSION) + int32(count)
