"""What a server answers: the payload of each answer and each watch event, and back.

A reply has the xid of its request, a zxid, and an error code; a body follows only if that is
0. The results of a multi are in its body, also those of a failed one, whose error code is 0:
the operations before the failed one have code 0, it has its own, those after it have -2.

A watch event is a reply to no request: its xid is -1, and its zxid is that of the change, or
-1 if the change was missed while the watch was away.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from watchkeeper.model.actor.errors import Failure, RuntimeInconsistency
from watchkeeper.model.actor.events import Fired, WatchEventType, ZnodeView
from watchkeeper.model.actor.operations import GetChildren, GetData
from watchkeeper.model.wire.fields import (
    FieldReader,
    Malformed,
    acl,
    buffer,
    int32,
    java_string,
    stat,
    strings,
)
from watchkeeper.model.wire.opcodes import CREATES, Opcode
from watchkeeper.model.wire.requests import END_OF_PARTS, EVENT_XID, PART
from watchkeeper.model.zookeeper.tree import Written
from watchkeeper.model.zookeeper.znode import Znode

HEADER = struct.Struct(">iqi")
"""The xid, the zxid and the error code."""
CONNECTED_STATE = 3

NUMBER_BY_TYPE = {
    WatchEventType.CREATED: 1,
    WatchEventType.DELETED: 2,
    WatchEventType.CHANGED: 3,
    WatchEventType.CHILDREN: 4,
}
TYPE_BY_NUMBER = {number: what for what, number in NUMBER_BY_TYPE.items()}


class Reply(Struct, frozen=True):
    """A server's frame: an answer, or an event if the xid is -1."""

    xid: int
    zxid: int
    """The zxid of a write; of a read the last one that the server has applied."""
    error: int
    body: bytes


class Event(Struct, frozen=True):
    """A watch event, or with type -1 an event of the session."""

    type: int
    state: int
    path: str

    @property
    def what(self) -> WatchEventType | None:
        """The change; None for an event of the session."""
        return TYPE_BY_NUMBER.get(self.type)


def encode_reply(xid: int, zxid: int, error: int, body: bytes = b"") -> bytes:
    """Write an answer. With an error it has no body, but for a multi read that fails early."""
    return HEADER.pack(xid, zxid, error) + body


def decode_reply(payload: bytes) -> Reply:
    """Read a server's frame; raises Malformed if it has no header."""
    try:
        xid, zxid, error = HEADER.unpack_from(payload)
    except struct.error:
        raise Malformed(f"a reply of {len(payload)} bytes has no header") from None
    return Reply(xid, zxid, error, payload[HEADER.size :])


def encode_event(zxid: int, fired: Fired) -> bytes:
    """Write a watch event."""
    number = NUMBER_BY_TYPE[fired.what]
    return (
        HEADER.pack(EVENT_XID, zxid, 0)
        + _EVENT.pack(number, CONNECTED_STATE)
        + java_string(fired.path)
    )


def decode_event(body: bytes) -> Event:
    """Read the body of an event; raises Malformed."""
    fields = FieldReader(body)
    return Event(fields.int32(), fields.int32(), fields.string() or "")


_EVENT = struct.Struct(">ii")

# --- bodies of answers -----------------------------------------------------------------


def reply_body(opcode: int, answer: Any, znode: Znode | None = None) -> bytes:
    """The body for an answer of the specification; `znode` is the one at its path afterwards."""
    write = _BODIES.get(opcode)
    return b"" if write is None else write(answer, znode)


def _with_stat(first: bytes, znode: Znode | None) -> bytes:
    assert znode is not None, "a request that succeeds with a Stat has a znode"
    return first + stat(znode.stat)


def _data(answer: ZnodeView, _: Znode | None) -> bytes:
    return buffer(answer.data) + stat(answer.stat)


_BODIES: dict[int, Callable[[Any, Znode | None], bytes]] = {
    Opcode.CREATE: lambda answer, _: java_string(answer),
    **{
        opcode: lambda answer, znode: _with_stat(java_string(answer), znode)
        for opcode in CREATES - {Opcode.CREATE}
    },
    Opcode.EXISTS: lambda answer, _: stat(answer.stat),
    Opcode.GET_DATA: _data,
    Opcode.SET_DATA: lambda _, znode: _with_stat(b"", znode),
    Opcode.GET_ACL: lambda answer, znode: _with_stat(acl(answer, write=java_string), znode),
    Opcode.SET_ACL: lambda _, znode: _with_stat(b"", znode),
    Opcode.GET_CHILDREN: lambda answer, _: strings(answer, write=java_string),
    Opcode.GET_CHILDREN_2: lambda answer, znode: _with_stat(
        strings(answer, write=java_string), znode
    ),
    Opcode.SYNC: lambda answer, _: java_string(answer),
    Opcode.GET_EPHEMERALS: lambda answer, _: strings(answer, write=java_string),
    Opcode.COUNT_DESCENDANTS: lambda answer, _: int32(answer),
    Opcode.ADD_WATCH: lambda *_: int32(0),
    Opcode.WHO_AM_I: lambda answer, _: (
        int32(len(answer))
        + b"".join(java_string(scheme) + java_string(name) for scheme, name in answer)
    ),
}
"""Opcode -> the body of its answer; the others have none."""


def multi_body(parts: Sequence[Opcode], written: Written) -> bytes:
    """The body for a multi that was executed; `parts` are the opcodes of its operations."""
    results = zip(parts, written.answer, written.znodes, strict=True)
    return b"".join(_result(*result) for result in results) + END_OF_PARTS


def _result(part: Opcode, answer: Any, znode: Znode | None) -> bytes:
    # Every create but the plain one answers as create2 does.
    shown = Opcode.CREATE_2 if part in CREATES and part is not Opcode.CREATE else part
    return PART.pack(shown, False, 0) + reply_body(shown, answer, znode)


def failed_multi_body(failure: Failure, count: int) -> bytes:
    """The body for a multi of so many operations that was refused."""
    assert failure.cause is not None, "a refused multi names its cause"
    codes = [0] * failure.index
    codes.append(failure.cause.kind.code)
    codes += [RuntimeInconsistency.code] * (count - failure.index - 1)
    return b"".join(map(_error_result, codes)) + END_OF_PARTS


def _error_result(code: int) -> bytes:
    return PART.pack(Opcode.ERROR, False, code) + int32(code)


def multi_read_body(parts: Sequence[GetData | GetChildren], answers: Sequence[Any]) -> bytes:
    """The body for a multi read: each part has its own result or error."""
    results = []
    for part, answer in zip(parts, answers, strict=True):
        opcode = Opcode.GET_DATA if type(part) is GetData else Opcode.GET_CHILDREN
        if type(answer) is Failure:
            results.append(_error_result(answer.kind.code))
        else:
            results.append(PART.pack(opcode, False, 0) + reply_body(opcode, answer))
    return b"".join(results) + END_OF_PARTS


# --- reading answers -------------------------------------------------------------------


def decode_body(opcode: int, body: bytes) -> Any:
    """Read the body of an answer without an error; raises Malformed.

    Returns a path, a Stat, data and Stat, names, a number, or None, as the opcode has it; for a
    multi a list of pairs of opcode and result, where the opcode -1 has an error code.
    """
    fields = FieldReader(body)
    if opcode in (Opcode.MULTI, Opcode.MULTI_READ):
        return list(_results(fields))
    return _decoded(opcode, fields)


def _decoded(opcode: int, fields: FieldReader) -> Any:
    read = _READERS.get(opcode)
    return None if read is None else read(fields)


def _results(fields: FieldReader) -> Any:
    while True:
        opcode, is_end, _ = fields.int32(), fields.boolean(), fields.int32()
        if is_end:
            return
        is_error = opcode == Opcode.ERROR
        yield opcode, fields.int32() if is_error else _decoded(opcode, fields)


_READERS: dict[int, Callable[[FieldReader], Any]] = {
    Opcode.CREATE: FieldReader.path,
    **{
        opcode: lambda fields: (fields.path(), fields.stat())
        for opcode in CREATES - {Opcode.CREATE}
    },
    Opcode.EXISTS: FieldReader.stat,
    Opcode.GET_DATA: lambda fields: (fields.buffer(), fields.stat()),
    Opcode.SET_DATA: FieldReader.stat,
    Opcode.GET_ACL: lambda fields: (fields.acl(), fields.stat()),
    Opcode.SET_ACL: FieldReader.stat,
    Opcode.GET_CHILDREN: FieldReader.paths,
    Opcode.GET_CHILDREN_2: lambda fields: (fields.paths(), fields.stat()),
    Opcode.SYNC: FieldReader.path,
    Opcode.GET_EPHEMERALS: FieldReader.paths,
    Opcode.COUNT_DESCENDANTS: FieldReader.int32,
    Opcode.ADD_WATCH: FieldReader.int32,
    Opcode.WHO_AM_I: lambda fields: tuple(
        [(fields.path(), fields.path()) for _ in range(fields.count())]
    ),
}
"""Opcode -> how the body of its answer is read."""
