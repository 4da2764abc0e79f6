"""A snapshot: a whole tree in one file, as Apache's servers write it.

  header     a magic word, a version, and -1 for the database
  sessions   their number, then for each its id and its timeout in ms
  lists      the access control lists, each with a number that znodes refer to it by
  znodes     for each its path, data, number of its list, and counters; a parent comes before
             its children; the root's path is empty; "/" ends the znodes
  seal       a checksum (Adler-32) of everything before it, and "/"
  digest     a zxid, a version and a digest of the tree; then another seal. With zxid 0, as here,
             there is no digest
  zxid       the last transaction in the snapshot; then another seal

The checksum of each seal includes the seals before it. A file may end after any seal, since
older servers write fewer of them.

A znode's children are written in the order in which a server lists them. A reader puts them
into a new table in that order, so tables are as small as those of a restarted server.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import adler32

from immutables import Map

from watchkeeper.model.actor.operations import OPEN, UNLIMITED_MS, Acl
from watchkeeper.model.wire.fields import Malformed, acl, buffer, int32, int64, string
from watchkeeper.model.zookeeper import java_hash_order, paths
from watchkeeper.model.zookeeper.tree import Session, Tree
from watchkeeper.model.zookeeper.znode import CHILD_TABLE_CAPACITY, NO_SESSION, Znode
from watchkeeper.model.zookeeper_files.disk_fields import (
    DiskReader,
    owner_and_lifetime,
    owner_on_disk,
)

FILE_HEADER = struct.pack(">4siq", b"ZKSN", 2, -1)
_COUNTERS = struct.Struct(">qqqqqiiiqq")
"""The number of the list, czxid, mzxid, ctime, mtime, the versions of the data, the children and
the list, the owner, and pzxid."""
_SESSION = struct.Struct(">qi")
_NO_DIGEST = struct.pack(">qiq", 0, 2, 0)
_SEAL = struct.Struct(">qic")
_OPEN_LIST = -1
"""The number that stands for the list that permits everything to everyone."""
_NOTHING = (Acl(0),)
"""The list of a znode whose own one is missing: it comes with a later transaction."""
_PART_BYTES = 1 << 16


class NotASnapshot(Exception):
    """The bytes are of another kind of file, or of an incomplete or damaged snapshot."""


# --- writing ---------------------------------------------------------------------------


def encode_snapshot(tree: Tree) -> Iterator[bytes]:
    """Write a tree in parts, to be written one after the other."""
    checksum = 1
    for part in _in_large_parts(_body(tree)):
        checksum = adler32(part, checksum)
        yield part
    for section in (b"", _NO_DIGEST, int64(tree.zxid)):
        checksum = adler32(section, checksum)
        seal = _SEAL.pack(checksum, 1, b"/")
        checksum = adler32(seal, checksum)
        yield section + seal


def _in_large_parts(pieces: Iterator[bytes]) -> Iterator[bytes]:
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        if len(waiting) >= _PART_BYTES:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


def _body(tree: Tree) -> Iterator[bytes]:
    yield FILE_HEADER + int32(len(tree.sessions))
    for session, known in tree.sessions.items():
        yield _SESSION.pack(session, known.timeout_ms)
    numbers = _numbers_of_lists(tree)
    yield int32(len(numbers))
    for entries, number in numbers.items():
        yield int64(number) + acl(entries)
    for path, znode in _parents_first(tree):
        yield _encoded(path, znode, numbers.get(znode.acl, _OPEN_LIST))
    yield string("/")


def _numbers_of_lists(tree: Tree) -> dict[tuple[Acl, ...], int]:
    numbers: dict[tuple[Acl, ...], int] = {}
    for znode in tree.nodes.values():
        if znode.acl is not OPEN and znode.acl != OPEN:
            numbers.setdefault(znode.acl, len(numbers) + 1)
    return numbers


def _parents_first(tree: Tree) -> Iterator[tuple[str, Znode]]:
    """Every path as it is in a file, with its znode; not recursive, since trees can be deep."""
    waiting = [""]
    while waiting:
        path = waiting.pop()
        znode = tree.nodes[path or paths.ROOT]
        yield path, znode
        waiting.extend(f"{path}/{name}" for name in reversed(znode.child_names))


def _encoded(path: str, znode: Znode, list_number: int) -> bytes:
    counters = _COUNTERS.pack(
        list_number,
        znode.czxid,
        znode.mzxid,
        znode.ctime,
        znode.mtime,
        znode.version,
        znode.created,
        znode.aversion,
        owner_on_disk(znode),
        znode.pzxid,
    )
    return string(path) + buffer(znode.data) + counters


# --- reading ---------------------------------------------------------------------------


def decode_snapshot(data: bytes, zxid: int) -> Tree:
    """Read a snapshot whose file is named by `zxid`; raises NotASnapshot."""
    if not data.startswith(FILE_HEADER):
        raise NotASnapshot("it does not begin as a snapshot of version 2 does")
    fields = DiskReader(data, len(FILE_HEADER))
    try:
        reader = _TreeReader(fields)
        reader.read()
        _check_seals(fields)
    except Malformed as error:
        raise NotASnapshot(f"it is damaged: {error}") from None
    return reader.tree(zxid)


def _check_seals(fields: DiskReader) -> None:
    """Compare the checksums of all sections, which cover every byte before them."""
    _check_seal(fields)
    for section_bytes in (len(_NO_DIGEST), 8):
        if fields.is_at_end:
            return
        fields.at += section_bytes
        _check_seal(fields)
    if not fields.is_at_end:
        raise Malformed(f"there is something after the last seal, at byte {fields.at}")


def _check_seal(fields: DiskReader) -> None:
    found = adler32(memoryview(fields.data)[: fields.at])
    if fields.int64() != found:
        raise Malformed(f"the checksum before byte {fields.at} is that of other bytes")
    if fields.string() != "/":
        raise Malformed(f'the seal before byte {fields.at} does not end with "/"')


class _TreeReader:
    """Builds a tree from the fields of a snapshot."""

    def __init__(self, fields: DiskReader) -> None:
        self._fields = fields
        self._sessions: dict[int, Session] = {}
        self._lists: dict[int, tuple[Acl, ...]] = {_OPEN_LIST: OPEN}
        self._read: dict[str, tuple[bytes | None, tuple[int, ...]]] = {}
        self._children: dict[str, list[str]] = {}
        self._ephemerals: dict[int, dict[str, int]] = {}
        self._limited: list[str] = []

    def read(self) -> None:
        """Read everything before the first seal."""
        fields = self._fields
        for _ in range(fields.count()):
            session = fields.int64()
            self._sessions[session] = Session(fields.int32())
        for _ in range(fields.count()):
            number = fields.int64()
            self._lists[number] = fields.acl()
        while (path := fields.string() or "") != "/":
            self._read_znode(path)
        if "/" not in self._read:
            raise Malformed("there is no root")

    def _read_znode(self, path: str) -> None:
        fields = self._fields
        data = fields.buffer()
        if len(fields.data) - fields.at < _COUNTERS.size:
            raise Malformed(f"at byte {fields.at} the counters of {path} should follow")
        counters = _COUNTERS.unpack_from(fields.data, fields.at)
        fields.at += _COUNTERS.size
        self._read[path or paths.ROOT] = data, counters
        self._children[path or paths.ROOT] = []
        if not path:
            return
        parent, _, name = path.rpartition("/")
        siblings = self._children.get(parent or paths.ROOT)
        if siblings is None:
            raise Malformed(f"before byte {fields.at} {path} comes without its parent")
        siblings.append(name)

    def tree(self, zxid: int) -> Tree:
        """The tree, with tables of children and ephemerals that grow as they are read."""
        nodes = {
            path: self._znode(path, data, counters, births)
            for births, (path, (data, counters)) in enumerate(self._read.items())
        }
        return Tree(
            nodes=Map(nodes),
            sessions=Map(
                {session: self._with_table(session) for session in self._sessions},
            ),
            ephemerals=Map({owner: Map(owned) for owner, owned in self._ephemerals.items()}),
            births=len(nodes),
            zxid=zxid,
            limited=Map(dict.fromkeys(self._limited)),
        )

    def _with_table(self, session: int) -> Session:
        known = self._sessions[session]
        owned = self._ephemerals.get(session, {})
        table = java_hash_order.grown(known.ephemeral_table, len(owned))
        return Session(known.timeout_ms, table)

    def _znode(
        self, path: str, data: bytes | None, counters: tuple[int, ...], births: int
    ) -> Znode:
        list_number, czxid, mzxid, ctime, mtime, version, created, aversion, on_disk, pzxid = (
            counters
        )
        owner, lifetime_ms = owner_and_lifetime(on_disk)
        if owner != NO_SESSION:
            self._ephemerals.setdefault(owner, {})[path] = births
        if lifetime_ms != UNLIMITED_MS:
            self._limited.append(path)
        names = self._children[path]
        # Later children are numbered from `created` on, and have to come after these.
        first = created - len(names)
        children = Map({name: number for number, name in enumerate(names, first)})
        return Znode(
            data,
            owner=owner,
            version=version,
            acl=self._lists.get(list_number, _NOTHING),
            children=children,
            child_table=java_hash_order.grown(CHILD_TABLE_CAPACITY, len(names)),
            created=created,
            aversion=aversion,
            czxid=czxid,
            mzxid=mzxid,
            pzxid=pzxid,
            ctime=ctime,
            mtime=mtime,
            lifetime_ms=lifetime_ms,
        )
