"""Random writes to a tree, as a server executes and logs them: every kind, and many that fail."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from msgspec.structs import replace

from watchkeeper.model.actor.operations import (
    ANY_VERSION,
    CONTAINER_MS,
    OPEN,
    READ,
    UNLIMITED_MS,
    WRITE,
    Acl,
    Check,
    Create,
    Delete,
    DeleteContainer,
    Multi,
    SetAcl,
    SetData,
)
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.tree import Session, Tree, Written
from watchkeeper.model.zookeeper_files.transactions import Transaction, logged

FIRST_MS = 1_700_000_000_000
MOST_SESSIONS = 4
NAMES = ("a", "b", "claims", "é", "n-")
LISTS = (OPEN, OPEN, OPEN, (Acl(READ | WRITE),), (Acl(31), Acl(READ, "ip", "10.0.0.1")))
ODDS = {
    "create": 10,
    "delete": 5,
    "set": 5,
    "acl": 2,
    "multi": 4,
    "container": 1,
    "open": 2,
    "close": 1,
}


@dataclass(slots=True)
class RandomWrites:
    """Writes to a tree that follows them."""

    random: Random
    tree: Tree
    xid: int = 0

    def next(self) -> Transaction:
        """Make the next write that takes a zxid, and return what is logged for it."""
        self.xid += 1
        before = self.tree
        now_ms = FIRST_MS + before.zxid
        (kind,) = self.random.choices(tuple(ODDS), tuple(ODDS.values()))
        sessions = sorted(before.sessions)
        if not sessions or (kind == "open" and len(sessions) < MOST_SESSIONS):
            session, operation, opcode, written = self._open(before)
        elif kind == "close":
            session, operation, opcode = self.random.choice(sessions), None, Opcode.CLOSE_SESSION
            written = writes.close_session(before, session)
        else:
            session, operation = self.random.choice(sessions), self._operation(kind)
            opcode = self.random.choice((Opcode.CREATE, Opcode.CREATE_2))
            written = writes.write(before, session, operation, now_ms=now_ms)
        self.tree = written.tree
        zxid = written.tree.zxid
        return logged(before, session, self.xid, zxid, now_ms, operation, written, opcode=opcode)

    def _open(self, before: Tree) -> tuple[int, Any, int, Written]:
        session = 0x1000 + before.zxid
        timeout_ms = 6000 + before.zxid % 1000
        tree = writes.open_session(before, session, Session(timeout_ms))
        return session, timeout_ms, Opcode.CREATE_SESSION, Written(tree, None)

    def _operation(self, kind: str) -> Any:
        if kind == "multi":
            number = self.random.randint(1, 5)
            kinds = self.random.choices(("create", "delete", "set", "check"), k=number)
            return Multi(tuple(self._one(part) for part in kinds))
        return self._one(kind)

    def _one(self, kind: str) -> Any:
        random = self.random
        if kind in ("create", "open"):
            return self._create()
        path = self._there()
        version = random.choice((ANY_VERSION, ANY_VERSION, 0, 1))
        if kind == "delete":
            return Delete(path, version)
        if kind == "set":
            return SetData(path, self._data(), version)
        if kind == "acl":
            return SetAcl(path, random.choice(LISTS))
        if kind == "container":
            return DeleteContainer(path)
        return Check(path, version)

    def _create(self) -> Create:
        random = self.random
        parent = self._there()
        path = f"{'' if parent == '/' else parent}/{random.choice(NAMES)}"
        lifetime_ms = random.choice((*[UNLIMITED_MS] * 6, CONTAINER_MS, 60_000))
        return Create(
            path,
            self._data(),
            ephemeral=lifetime_ms == UNLIMITED_MS and random.random() < 0.4,
            sequential=random.random() < 0.4,
            acl=random.choice(LISTS),
            lifetime_ms=lifetime_ms,
        )

    def _there(self) -> str:
        """A znode, most often one that exists."""
        if self.random.random() < 0.1:
            return f"/{self.random.choice(NAMES)}"
        paths = sorted(path for path in self.tree.nodes if not path.startswith("/zookeeper"))
        return self.random.choice(paths)

    def _data(self) -> bytes | None:
        length = self.random.choice((None, 0, 5, 5, 700))
        return None if length is None else self.random.randbytes(length)


def new_epoch(tree: Tree) -> Tree:
    """The tree of a new leader, which counts zxids from its epoch on."""
    return replace(tree, zxid=((tree.zxid >> 32) + 1) << 32)


def visible(tree: Tree) -> dict[str, Any]:
    """Everything of a tree that a client can see, but for the order of children."""
    return {
        "zxid": tree.zxid,
        "sessions": {session: known.timeout_ms for session, known in tree.sessions.items()},
        "ephemerals": {
            session: sorted(owned) for session, owned in tree.ephemerals.items() if owned
        },
        "limited": sorted(tree.limited),
        "znodes": {
            path: (
                znode.data,
                znode.owner,
                znode.lifetime_ms,
                znode.acl,
                znode.stat,
                sorted(znode.children),
            )
            for path, znode in tree.nodes.items()
        },
    }
