"""The tree after logged transactions.

Apache's servers go on writing while they take a snapshot, so a snapshot may hold some of the
transactions that follow it in the log: it is *fuzzy*. Each transaction can therefore be
applied to a tree that has it already:

  create   an existing znode keeps its data and counters, and gets the access control list
  delete   a missing znode is passed over; one with children takes them along, since they come
           again later
  parent   a create carries the number of children created so far, and the largest wins, as
           does the largest zxid of a change to the children
  set      it carries the new version

Nothing is validated, and what fails here is passed over, as Apache's servers do.
"""

from __future__ import annotations

from collections.abc import Callable

from immutables import Map
from msgspec.structs import replace

from watchkeeper.model.actor.operations import CONTAINER_MS, OPEN, UNLIMITED_MS, Acl
from watchkeeper.model.wire.fields import Malformed
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.zookeeper import java_hash_order, paths
from watchkeeper.model.zookeeper.tree import Session, Tree
from watchkeeper.model.zookeeper.znode import NO_SESSION, Znode
from watchkeeper.model.zookeeper_files.disk_fields import DiskReader
from watchkeeper.model.zookeeper_files.transactions import Transaction


def apply_transaction(tree: Tree, transaction: Transaction) -> Tree:
    """Return the tree after a transaction, which may be part of it already."""
    replay = Replay(tree)
    replay.apply(transaction)
    return replay.tree()


class Replay:
    """A tree that transactions are applied to, one after the other."""

    def __init__(self, tree: Tree) -> None:
        self._nodes = tree.nodes.mutate()
        self._sessions = dict(tree.sessions)
        self._ephemerals = {
            session: dict(owned.items()) for session, owned in tree.ephemerals.items()
        }
        self._births = tree.births
        self._limited = dict.fromkeys(tree.limited)
        self._next_arrivals: dict[str, int] = {}
        """Parent -> the next number of a child, where a child has come a second time."""
        self.zxid = tree.zxid
        """The zxid of the last transaction."""

    def apply(self, transaction: Transaction) -> None:
        """Apply a transaction; raises Malformed for an unknown or unreadable one."""
        self._apply(transaction.opcode, DiskReader(transaction.body), transaction)
        self.zxid = transaction.zxid

    def _apply(self, opcode: int, fields: DiskReader, transaction: Transaction) -> None:
        apply = _BY_OPCODE.get(opcode)
        if apply is None:
            raise Malformed(
                f"transaction 0x{transaction.zxid:x} is of type {opcode}, which is unknown"
            )
        apply(self, opcode, fields, transaction)

    def tree(self) -> Tree:
        """Return the tree, after which nothing more can be applied.

        Ephemerals of unknown sessions are deleted: a session may end while a fuzzy snapshot is
        taken.
        """
        for session in [owner for owner in self._ephemerals if owner not in self._sessions]:
            for path in self._ephemerals.pop(session):
                self._remove(path, self.zxid)
        for path in self._next_arrivals:
            self._renumber(path)
        return Tree(
            nodes=self._nodes.finish(),
            sessions=Map(self._sessions),
            ephemerals=Map(
                {session: Map(owned) for session, owned in self._ephemerals.items() if owned}
            ),
            births=self._births,
            zxid=self.zxid,
            limited=Map(self._limited),
        )

    # --- sessions ----------------------------------------------------------------------

    def _open_session(self, opcode: int, fields: DiskReader, by: Transaction) -> None:
        timeout_ms, known = fields.int32(), self._sessions.get(by.session)
        self._sessions[by.session] = (
            Session(timeout_ms) if known is None else replace(known, timeout_ms=timeout_ms)
        )

    def _close_session(self, opcode: int, fields: DiskReader, by: Transaction) -> None:
        # Servers before 3.6 log no paths; what the session owns is deleted in any case.
        gone = () if fields.is_at_end else fields.paths()
        owned = self._ephemerals.pop(by.session, {})
        self._sessions.pop(by.session, None)
        for path in dict.fromkeys((*gone, *owned)):
            self._remove(path, by.zxid)

    # --- znodes ------------------------------------------------------------------------

    def _create(self, opcode: int, fields: DiskReader, by: Transaction) -> None:
        path, data, acl = fields.path(), fields.buffer(), fields.acl()
        owner, lifetime_ms = NO_SESSION, UNLIMITED_MS
        if opcode == Opcode.CREATE_CONTAINER:
            created, lifetime_ms = fields.int32(), CONTAINER_MS
        elif opcode == Opcode.CREATE_TTL:
            created, lifetime_ms = fields.int32(), fields.int64()
        else:
            owner = by.session if fields.boolean() else NO_SESSION
            created = -1 if fields.is_at_end else fields.int32()
        znode = _new_znode(data, owner, acl, lifetime_ms, by)
        self._add(path, znode, created, by.zxid, opcode)

    def _add(self, path: str, znode: Znode, created: int, zxid: int, opcode: int) -> None:
        parent_path = paths.parent_of(path)
        parent = None if parent_path is None else self._nodes.get(parent_path)
        if parent is None or parent_path is None:
            return
        existing = self._nodes.get(path)
        if existing is not None:
            self._nodes[path] = replace(existing, acl=znode.acl)
            if opcode == Opcode.CREATE:
                self._nodes[parent_path] = _counted(parent, created, zxid)
            return
        arrived = self._arrival(parent_path, parent, created)
        children = parent.children.set(paths.name_of(path), arrived)
        table = java_hash_order.grown(parent.child_table, len(children))
        parent = replace(parent, children=children, child_table=table)
        self._nodes[parent_path] = _counted(parent, created, zxid)
        self._nodes[path] = znode
        self._births += 1
        if znode.owner != NO_SESSION:
            self._own(znode.owner, path)
        if znode.lifetime_ms != UNLIMITED_MS:
            self._limited[path] = None

    def _arrival(self, parent_path: str, parent: Znode, created: int) -> int:
        """The number of a new child, higher than those of the others."""
        arrived = max(parent.created, created - 1)
        following = self._next_arrivals.get(parent_path)
        if following is None and parent.created < created:
            return arrived
        arrived = max(arrived, following or 0)
        self._next_arrivals[parent_path] = arrived + 1
        return arrived

    def _renumber(self, path: str) -> None:
        """Number the children again: later ones are numbered from `created` on."""
        parent = self._nodes[path]
        names = sorted(parent.children, key=parent.children.__getitem__)
        first = parent.created - len(names)
        children = Map({name: number for number, name in enumerate(names, first)})
        self._nodes[path] = replace(parent, children=children)

    def _own(self, session: int, path: str) -> None:
        owned = self._ephemerals.setdefault(session, {})
        owned[path] = self._births
        known = self._sessions.get(session)
        if known is None:
            return
        table = java_hash_order.grown(known.ephemeral_table, len(owned))
        if table != known.ephemeral_table:
            self._sessions[session] = replace(known, ephemeral_table=table)

    def _delete(self, opcode: int, fields: DiskReader, by: Transaction) -> None:
        self._remove(fields.path(), by.zxid)

    def _remove(self, path: str, zxid: int) -> None:
        parent_path = paths.parent_of(path)
        parent = None if parent_path is None else self._nodes.get(parent_path)
        if parent is None or parent_path is None:
            return
        name = paths.name_of(path)
        children = parent.children.delete(name) if name in parent.children else parent.children
        pzxid = max(parent.pzxid, zxid)
        self._nodes[parent_path] = replace(parent, children=children, pzxid=pzxid)
        znode = self._nodes.pop(path, None)
        if znode is None:
            return
        self._forget(path, znode)
        waiting = [f"{path}/{child}" for child in znode.children]
        while waiting:
            # It had no children when it was deleted: later transactions create these again.
            below = waiting.pop()
            found = self._nodes.pop(below)
            self._forget(below, found)
            waiting += [f"{below}/{child}" for child in found.children]

    def _forget(self, path: str, znode: Znode) -> None:
        self._limited.pop(path, None)
        self._next_arrivals.pop(path, None)
        if znode.owner in self._ephemerals:
            self._ephemerals[znode.owner].pop(path, None)

    def _set_data(self, opcode: int, fields: DiskReader, by: Transaction) -> None:
        path, data, version = fields.path(), fields.buffer(), fields.int32()
        znode = self._nodes.get(path)
        if znode is not None:
            self._nodes[path] = replace(
                znode, data=data, version=version, mzxid=by.zxid, mtime=by.time_ms
            )

    def _set_acl(self, opcode: int, fields: DiskReader, by: Transaction) -> None:
        path, acl, aversion = fields.path(), fields.acl(), fields.int32()
        znode = self._nodes.get(path)
        if znode is not None:
            self._nodes[path] = replace(znode, acl=acl, aversion=aversion)

    def _multi(self, opcode: int, fields: DiskReader, by: Transaction) -> None:
        parts = [(fields.int32(), fields.buffer() or b"") for _ in range(fields.count())]
        if any(kind == Opcode.ERROR for kind, _ in parts):
            return
        for kind, body in parts:
            self._apply(kind, DiskReader(body), by)

    def _nothing(self, opcode: int, fields: DiskReader, by: Transaction) -> None:
        """A failed write has taken a zxid, and a check of a multi has passed."""


def _new_znode(
    data: bytes | None, owner: int, acl: tuple[Acl, ...], lifetime_ms: int, by: Transaction
) -> Znode:
    zxid, time_ms = by.zxid, by.time_ms
    return Znode(
        data,
        owner=owner,
        acl=OPEN if acl == OPEN else acl,
        czxid=zxid,
        mzxid=zxid,
        pzxid=zxid,
        ctime=time_ms,
        mtime=time_ms,
        lifetime_ms=lifetime_ms,
    )


def _counted(parent: Znode, created: int, zxid: int) -> Znode:
    """A parent that knows of this number of children created; -1 stands for one more."""
    if created == -1:
        created = parent.created + 1
    if created <= parent.created:
        return parent
    return replace(parent, created=created, pzxid=zxid)


_Apply = Callable[[Replay, int, DiskReader, Transaction], None]

_BY_OPCODE: dict[int, _Apply] = {
    Opcode.CREATE_SESSION: Replay._open_session,
    Opcode.CLOSE_SESSION: Replay._close_session,
    Opcode.CREATE: Replay._create,
    Opcode.CREATE_2: Replay._create,
    Opcode.CREATE_CONTAINER: Replay._create,
    Opcode.CREATE_TTL: Replay._create,
    Opcode.DELETE: Replay._delete,
    Opcode.DELETE_CONTAINER: Replay._delete,
    Opcode.SET_DATA: Replay._set_data,
    Opcode.RECONFIG: Replay._set_data,
    Opcode.SET_ACL: Replay._set_acl,
    Opcode.CHECK: Replay._nothing,
    Opcode.MULTI: Replay._multi,
    Opcode.ERROR: Replay._nothing,
}
