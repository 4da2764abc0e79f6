"""What a client requests: the payload of each opcode as a value, and back.

How it works
  A request is its number (xid), its opcode and a body. The body is an operation of the model
  where the sequential specification executes it, or one of the values here. A body that
  cannot be read becomes `Undecodable`, which a server answers with an error; only a payload
  without xid and opcode has no answer.

  Seen on Apache ZooKeeper 3.9.5:
  - A body that is cut takes no zxid. One that is whole but has no path is found out by the
    leader, so as a write it takes a zxid, but for deleteContainer. So does every multi that
    cannot be decoded.
  - sync, addWatch, checkWatches and removeWatches do not miss a path; getEphemerals without one
    lists all.
  - What follows a body is not read. In setWatches a list of length -1 is an error; any other
    negative length, there and elsewhere, is an empty list.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from watchkeeper.model.actor.operations import (
    AddWatch,
    Check,
    CheckWatches,
    CountDescendants,
    Create,
    Delete,
    DeleteContainer,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    GetEphemerals,
    Multi,
    MultiRead,
    RemoveWatches,
    SetAcl,
    SetData,
    Sync,
    WatchKind,
)
from watchkeeper.model.wire.creates import (
    BAD_LIFETIME_MS,
    MissingList,
    opcode_of_create,
    read_create,
    read_create_of_multi,
    write_create,
)
from watchkeeper.model.wire.fields import (
    MISSING,
    FieldReader,
    Malformed,
    acl,
    boolean,
    buffer,
    int32,
    int64,
    string,
    strings,
)
from watchkeeper.model.wire.opcodes import BY_NUMBER, CREATES, WRITES, Opcode
from watchkeeper.model.zookeeper.lifetimes import LONGEST_TTL_MS
from watchkeeper.model.zookeeper.watches import Wanted

HEADER = struct.Struct(">ii")
"""The xid and the opcode."""
PART = struct.Struct(">i?i")
"""The header of a part of a multi: opcode, whether it ends the list, error."""
END_OF_PARTS = PART.pack(-1, True, -1)

# The attributes of an enum are found slowly, and each request reads this one.
_MULTI = Opcode.MULTI


class Ping(Struct, frozen=True):
    """A sign of life."""


class CloseSession(Struct, frozen=True):
    """The client ends its session."""


class WhoAmI(Struct, frozen=True):
    """The client wants to see its identities."""


class Auth(Struct, frozen=True):
    """A credential for the rest of the connection."""

    kind: int
    scheme: str
    credential: bytes | None


class SetWatches(Struct, frozen=True):
    """Watches that a client had on an earlier connection."""

    relative_zxid: int
    """The last zxid that the client had seen when it lost them."""
    wanted: Wanted


class Sasl(Struct, frozen=True):
    """A token of a SASL exchange."""

    token: bytes | None


class Reconfig(Struct, frozen=True):
    """A change of the ensemble's members."""

    joining: str | None
    leaving: str | None
    members: str | None
    version: int


class Undecodable(Struct, frozen=True):
    """The body cannot be read."""

    reason: str
    is_ordered: bool = False
    """Whether it is a write whose fault the leader finds, so that it takes a zxid."""
    reads: tuple[GetData | GetChildren, ...] | None = None
    """The parts of a multi read before the one without a path; None if it is not whole."""


class WithoutPath(Struct, frozen=True):
    """A request of no path at all where servers need none (`NEED_NO_PATH`)."""


class Unknown(Struct, frozen=True):
    """No client may send this opcode."""

    opcode: int


class Request(Struct, frozen=True):
    """One request of a client."""

    xid: int
    opcode: int
    """An `Opcode`, or the number of an unknown one."""
    body: Any
    """An operation of the model, or a value of this module."""
    parts: tuple[Opcode, ...] = ()
    """Of a multi alone: the opcode of each operation, since create2 answers more than create."""


EVENT_XID, PING_XID, AUTH_XID, SET_WATCHES_XID = -1, -2, -4, -8
"""The xids that are no numbers of requests."""

NEED_NO_PATH = frozenset(
    {
        Opcode.SYNC,
        Opcode.ADD_WATCH,
        Opcode.CHECK_WATCHES,
        Opcode.REMOVE_WATCHES,
    }
)
"""The opcodes that succeed or find no watch without a path."""

KIND_BY_NUMBER: dict[int, WatchKind] = {
    1: "child",
    2: "data",
    3: "any",
    4: "persistent",
    5: "recursive",
}
"""Number of a kind of watches -> its word, in checkWatches and removeWatches."""
NUMBER_BY_KIND = {kind: number for number, kind in KIND_BY_NUMBER.items()}


# --- decoding --------------------------------------------------------------------------


def decode_request(payload: bytes) -> Request:
    """Read a request; raises Malformed if it has no xid and opcode."""
    try:
        xid, number = HEADER.unpack_from(payload)
    except struct.error:
        raise Malformed(f"a request of {len(payload)} bytes has no xid and opcode") from None
    read = _BODIES.get(number)
    if read is None:
        return Request(xid, number, Unknown(number))
    opcode = BY_NUMBER[number]
    fields = BodyReader(payload, HEADER.size)
    try:
        if opcode is _MULTI:
            return _multi_request(xid, fields)
        body = read(fields, opcode)
    except Malformed as error:
        is_ordered = opcode is Opcode.MULTI and type(error) is not MissingList
        return Request(xid, opcode, Undecodable(str(error), is_ordered))
    if fields.lacks and type(body) is not Undecodable:
        body = _without_path(opcode, body, fields.lacks)
    return Request(xid, opcode, body)


class BodyReader(FieldReader):
    """Reads the body of a request to its end before it says that a path is missing.

    A body that is cut and one without a path are answered in different ways.
    """

    __slots__ = ("lacks",)

    def __init__(self, data: bytes, at: int = 0) -> None:
        super().__init__(data, at)
        self.lacks = ""
        """The first field that is missing and must not be."""

    def _missing(self, what: str) -> str:
        self.lacks = self.lacks or f"at byte {self.at - 4} no {what}, but one is needed"
        return ""


def _without_path(opcode: Opcode, body: Any, lacks: str) -> Any:
    if opcode in NEED_NO_PATH:
        return WithoutPath()
    if opcode is Opcode.GET_EPHEMERALS:
        return body  # no path and an empty one both mean: all
    if opcode in (Opcode.SET_DATA, Opcode.SET_ACL) or _has_bad_flags(body):
        return body  # the specification refuses it for another reason first
    return Undecodable(
        lacks, is_ordered=opcode in WRITES and opcode is not Opcode.DELETE_CONTAINER
    )


def _has_bad_flags(body: Any) -> bool:
    return type(body) is Create and not BAD_LIFETIME_MS < body.lifetime_ms <= LONGEST_TTL_MS


def _multi_request(xid: int, fields: BodyReader) -> Request:
    parts = tuple(_parts(fields))
    if fields.lacks:
        return Request(xid, Opcode.MULTI, Undecodable(fields.lacks, is_ordered=True))
    body = Multi(tuple([operation for _, operation in parts]))
    return Request(xid, Opcode.MULTI, body, tuple([part for part, _ in parts]))


def _parts(fields: BodyReader) -> Iterator[tuple[Opcode, Any]]:
    """The operations of a multi, each with the opcode that it is executed as."""
    while (part := _part(fields)) is not None:
        read = _PARTS.get(part)
        if read is None:
            raise Malformed(f"at byte {fields.at} a multi with a part of opcode {part}")
        opcode = BY_NUMBER[part]
        if opcode in CREATES:
            yield read_create_of_multi(fields, opcode)
        else:
            yield opcode, read(fields, opcode)


def _part(fields: BodyReader) -> int | None:
    """The opcode of the next part of a multi; None at its end."""
    opcode, is_end, _ = fields.int32(), fields.boolean(), fields.int32()
    return None if is_end else opcode


def _multi_read(fields: BodyReader, opcode: Opcode) -> MultiRead | Undecodable:
    parts: list[GetData | GetChildren] = []
    whole = 0
    while (part := _part(fields)) is not None:
        if part == Opcode.GET_DATA:
            parts.append(GetData(fields.path(), fields.boolean()))
        elif part == Opcode.GET_CHILDREN:
            parts.append(GetChildren(fields.path(), fields.boolean()))
        else:
            raise Malformed(f"at byte {fields.at} a multi read with opcode {part}")
        whole += not fields.lacks
    if fields.lacks:  # a server executes the parts before the one without a path
        return Undecodable(fields.lacks, reads=tuple(parts[:whole]))
    return MultiRead(tuple(parts))


def _set_watches(fields: BodyReader, opcode: Opcode) -> SetWatches:
    relative_zxid = fields.int64()
    lists = [_listed(fields) for _ in range(3 if opcode is Opcode.SET_WATCHES else 5)]
    return SetWatches(relative_zxid, Wanted(*lists))


def _listed(fields: BodyReader) -> tuple[str, ...]:
    if fields.data.startswith(MISSING, fields.at):
        raise Malformed(f"at byte {fields.at} no list of paths, but one is needed")
    return fields.paths()


def _kind(fields: BodyReader) -> WatchKind:
    number = fields.int32()
    if number not in KIND_BY_NUMBER:
        raise Malformed(f"at byte {fields.at - 4} kind {number} of watches; there are 1 to 5")
    return KIND_BY_NUMBER[number]


def _add_watch(fields: BodyReader, opcode: Opcode) -> AddWatch:
    path, mode = fields.path(), fields.int32()
    if mode not in (0, 1):
        raise Malformed(f"at byte {fields.at - 4} mode {mode} of a watch; there are 0 and 1")
    return AddWatch(path, mode == 1)


Read = Callable[[BodyReader, Opcode], Any]

_PARTS: dict[int, Read] = {
    **dict.fromkeys(map(int, CREATES), read_create),
    Opcode.DELETE: lambda fields, _: Delete(fields.path(), fields.int32()),
    Opcode.SET_DATA: lambda fields, _: SetData(fields.path(), fields.buffer(), fields.int32()),
    Opcode.CHECK: lambda fields, _: Check(fields.path(), fields.int32()),
}
"""Opcode -> how a part of a multi is read."""

_BODIES: dict[int, Read] = {
    **{number: read for number, read in _PARTS.items() if number != Opcode.CHECK},
    Opcode.EXISTS: lambda fields, _: Exists(fields.path(), fields.boolean()),
    Opcode.GET_DATA: lambda fields, _: GetData(fields.path(), fields.boolean()),
    Opcode.GET_ACL: lambda fields, _: GetAcl(fields.path()),
    Opcode.SET_ACL: lambda fields, _: SetAcl(fields.path(), fields.acl(), fields.int32()),
    Opcode.GET_CHILDREN: lambda fields, _: GetChildren(fields.path(), fields.boolean()),
    Opcode.GET_CHILDREN_2: lambda fields, _: GetChildren(fields.path(), fields.boolean()),
    Opcode.SYNC: lambda fields, _: Sync(fields.path()),
    Opcode.PING: lambda fields, _: Ping(),
    Opcode.MULTI: lambda fields, _: tuple(_parts(fields)),
    Opcode.MULTI_READ: _multi_read,
    Opcode.RECONFIG: lambda fields, _: Reconfig(
        fields.string(), fields.string(), fields.string(), fields.int64()
    ),
    Opcode.CHECK_WATCHES: lambda fields, _: CheckWatches(fields.path(), kind=_kind(fields)),
    Opcode.REMOVE_WATCHES: lambda fields, _: RemoveWatches(fields.path(), kind=_kind(fields)),
    Opcode.DELETE_CONTAINER: lambda fields, _: DeleteContainer(fields.path()),
    Opcode.AUTH: lambda fields, _: Auth(fields.int32(), fields.string() or "", fields.buffer()),
    Opcode.SET_WATCHES: _set_watches,
    Opcode.SET_WATCHES_2: _set_watches,
    Opcode.SASL: lambda fields, _: Sasl(fields.buffer()),
    Opcode.GET_EPHEMERALS: lambda fields, _: GetEphemerals(fields.path()),
    Opcode.COUNT_DESCENDANTS: lambda fields, _: CountDescendants(fields.path()),
    Opcode.ADD_WATCH: _add_watch,
    Opcode.WHO_AM_I: lambda fields, _: WhoAmI(),
    Opcode.CLOSE_SESSION: lambda fields, _: CloseSession(),
    # No client may send it. Apache's leader finds that it cannot be decoded.
    Opcode.CREATE_SESSION: lambda fields, _: Undecodable("no client begins one", is_ordered=True),
}
"""Opcode -> how its body is read."""

# --- encoding --------------------------------------------------------------------------


def encode_request(xid: int, opcode: int, body: Any, parts: Sequence[Opcode] = ()) -> bytes:
    """Write a request; the opcode decides among those with the same body (create, create2).

    `parts` are the opcodes of the operations of a multi; without them each has its usual one.
    """
    if parts:
        return HEADER.pack(xid, opcode) + _write_parts(body.operations, parts)
    return HEADER.pack(xid, opcode) + encode_body(opcode, body)


def encode_body(opcode: int, body: Any) -> bytes:
    """Write the body of a request."""
    return _WRITERS[type(body)](opcode, body)


def opcode_of(operation: Any) -> Opcode:
    """The opcode of an operation whose answer has no Stat where there is a choice."""
    if type(operation) is Create:
        return opcode_of_create(operation)
    return _OPCODES[type(operation)]


def _write_parts(operations: Sequence[Any], parts: Sequence[Opcode]) -> bytes:
    written = [
        PART.pack(part, False, -1) + encode_body(part, operation)
        for part, operation in zip(parts, operations, strict=True)
    ]
    return b"".join(written) + END_OF_PARTS


def _write_multi(opcode: int, body: Multi | MultiRead) -> bytes:
    return _write_parts(body.operations, [opcode_of(operation) for operation in body.operations])


def _write_set_watches(opcode: int, body: SetWatches) -> bytes:
    wanted = body.wanted
    lists = [wanted.data, wanted.exist, wanted.child]
    if opcode == Opcode.SET_WATCHES_2:
        lists += [wanted.persistent, wanted.recursive]
    return int64(body.relative_zxid) + b"".join(map(strings, lists))


def _write_reconfig(opcode: int, body: Reconfig) -> bytes:
    members = string(body.joining) + string(body.leaving) + string(body.members)
    return members + int64(body.version)


def _write_path(opcode: int, body: Any) -> bytes:
    return string(body.path)


def _write_path_and_watch(opcode: int, body: Any) -> bytes:
    return string(body.path) + boolean(body.watch)


def _write_path_and_version(opcode: int, body: Any) -> bytes:
    return string(body.path) + int32(body.version)


def _write_path_and_kind(opcode: int, body: Any) -> bytes:
    return string(body.path) + int32(NUMBER_BY_KIND[body.kind])


def _write_nothing(opcode: int, body: Any) -> bytes:
    return b""


_WRITERS: dict[type[Any], Callable[[int, Any], bytes]] = {
    Create: write_create,
    Delete: _write_path_and_version,
    Check: _write_path_and_version,
    SetData: lambda _, body: string(body.path) + buffer(body.data) + int32(body.version),
    SetAcl: lambda _, body: string(body.path) + acl(body.acl) + int32(body.version),
    Exists: _write_path_and_watch,
    GetData: _write_path_and_watch,
    GetChildren: _write_path_and_watch,
    GetAcl: _write_path,
    Sync: _write_path,
    GetEphemerals: _write_path,
    CountDescendants: _write_path,
    DeleteContainer: _write_path,
    AddWatch: lambda _, body: string(body.path) + int32(body.recursive),
    CheckWatches: _write_path_and_kind,
    RemoveWatches: _write_path_and_kind,
    Multi: _write_multi,
    MultiRead: _write_multi,
    SetWatches: _write_set_watches,
    Reconfig: _write_reconfig,
    Auth: lambda _, body: int32(body.kind) + string(body.scheme) + buffer(body.credential),
    Sasl: lambda _, body: buffer(body.token),
    Ping: _write_nothing,
    CloseSession: _write_nothing,
    WhoAmI: _write_nothing,
}
"""Body -> how it is written."""

_OPCODES: dict[type[Any], Opcode] = {
    Delete: Opcode.DELETE,
    SetData: Opcode.SET_DATA,
    SetAcl: Opcode.SET_ACL,
    Check: Opcode.CHECK,
    Exists: Opcode.EXISTS,
    GetData: Opcode.GET_DATA,
    GetChildren: Opcode.GET_CHILDREN,
    GetAcl: Opcode.GET_ACL,
    Sync: Opcode.SYNC,
    GetEphemerals: Opcode.GET_EPHEMERALS,
    CountDescendants: Opcode.COUNT_DESCENDANTS,
    DeleteContainer: Opcode.DELETE_CONTAINER,
    AddWatch: Opcode.ADD_WATCH,
    CheckWatches: Opcode.CHECK_WATCHES,
    RemoveWatches: Opcode.REMOVE_WATCHES,
    Multi: Opcode.MULTI,
    MultiRead: Opcode.MULTI_READ,
}
