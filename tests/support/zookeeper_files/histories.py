"""Histories of a ZooKeeper, drawn from a seed: every kind of write, many of which are refused."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import Any

from msgspec.structs import replace

from watchkeeper.model.actor.errors import Failure, MarshallingError
from watchkeeper.model.actor.operations import (
    CONTAINER_MS,
    OPEN,
    READ,
    Acl,
    Check,
    Create,
    Delete,
    DeleteContainer,
    Multi,
    SetAcl,
    SetData,
)
from watchkeeper.model.ensemble.session_ids import first_session_id
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import opcode_of
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.tree import Session, Tree, Written, empty_tree
from watchkeeper.model.zookeeper_files.transactions import Transaction, logged

USER, PASSWORD = "keeper", "secret"
IDENTITY = ("digest", "keeper:fVdK2HwI35pFaNBBBjXpQ3fU3iQ=")
"""What a client proves with that name and password."""
OWN = Acl(31, *IDENTITY)
LISTS = (OPEN, OPEN, OPEN, (OWN,), (OWN, Acl(READ)), (Acl(31, "ip", "127.0.0.1"), OWN))
NAMES = ("a", "b", "c", "d", "e", "Aa", "BB", "é", "名", "long-name-of-a-znode")
"""`Aa` and `BB` have one hash in Java."""
TIMEOUT_MS = 3_600_000
TTL_MS = 1 << 39


@dataclass(frozen=True, slots=True)
class Step:
    """A write of a history, as a server has it before it is logged."""

    before: Tree
    session: int
    xid: int
    time_ms: int
    opcode: int
    operation: Any
    written: Written

    @property
    def transaction(self) -> Transaction:
        """What is logged for it."""
        return logged(
            self.before,
            self.session,
            self.xid,
            self.written.tree.zxid,
            self.time_ms,
            self.operation,
            self.written,
            opcode=self.opcode,
        )


class RandomHistory:
    """Makes one write after the other; the same seed makes the same ones, but for the times."""

    def __init__(self, seed: int, tree: Tree | None = None) -> None:
        self._random = Random(seed)
        self._first_session = first_session_id(1, int(time.time() * 1000) + seed)
        self._opened = 0
        self._xid = 0
        self.tree = tree or empty_tree()

    def step(self) -> Step:
        """Make the next write, also if it fails; each takes a zxid."""
        while True:
            step = self._any_step()
            if step.written.tree.zxid > step.before.zxid:
                self.tree = step.written.tree
                return step

    def write(self, session: int, operation: Any) -> Step:
        """Make this write of a session."""
        step = self._write(session, operation)
        self.tree = step.written.tree
        return step

    def steps(self, number: int) -> list[Step]:
        """Make this many writes."""
        return [self.step() for _ in range(number)]

    def _any_step(self) -> Step:
        sessions = sorted(self.tree.sessions)
        roll = self._random.random()
        if not sessions or (roll < 0.03 and len(sessions) < 6):
            return self._open()
        session = self._random.choice(sessions)
        if roll < 0.05 and len(sessions) > 2:
            written = writes.close_session(self.tree, session)
            return self._made(session, Opcode.CLOSE_SESSION, None, written)
        if roll < 0.06:
            failure = Failure(MarshallingError, "")
            written = Written(replace(self.tree, zxid=self.tree.zxid + 1), failure)
            return self._made(session, Opcode.ERROR, failure, written)
        return self._write(session, self._operation())

    def _open(self) -> Step:
        session = self._first_session + self._opened
        self._opened += 1
        tree = writes.open_session(self.tree, session, Session(TIMEOUT_MS))
        return self._made(session, Opcode.CREATE_SESSION, TIMEOUT_MS, Written(tree, None))

    def _write(self, session: int, operation: Any) -> Step:
        now_ms = int(time.time() * 1000)
        written = writes.write(
            self.tree, session, operation, now_ms=now_ms, identities=(IDENTITY,)
        )
        return self._made(session, opcode_of(operation), operation, written, now_ms)

    def _made(
        self, session: int, opcode: int, operation: Any, written: Written, now_ms: int = 0
    ) -> Step:
        self._xid += 1
        now_ms = now_ms or int(time.time() * 1000)
        return Step(self.tree, session, self._xid, now_ms, opcode, operation, written)

    # --- operations --------------------------------------------------------------------

    def _operation(self) -> Any:
        roll = self._random.random()
        if roll < 0.12:
            length = self._random.randint(1, 5)
            return Multi(tuple(self._part() for _ in range(length)))
        if roll < 0.2:
            return SetAcl(self._path(), self._random.choice(LISTS), self._version())
        if roll < 0.23:
            return DeleteContainer(self._existing_path())
        while type(part := self._part()) is Check:
            pass
        return part

    def _part(self) -> Any:
        roll = self._random.random()
        if roll < 0.5:
            return self._create()
        if roll < 0.7:
            return Delete(self._existing_path(), self._version())
        if roll < 0.75:
            return Check(self._existing_path(), self._version())
        return SetData(self._existing_path(), self._data(), self._version())

    def _create(self) -> Create:
        ephemeral = self._random.random() < 0.25
        lifetime_ms = 0
        if not ephemeral and self._random.random() < 0.2:
            lifetime_ms = self._random.choice((CONTAINER_MS, TTL_MS))
        return Create(
            self._path(),
            self._data(),
            ephemeral,
            self._random.random() < 0.25,
            self._random.choice(LISTS),
            lifetime_ms=lifetime_ms,
        )

    def _path(self) -> str:
        parent = self._existing_path() if self._random.random() < 0.7 else "/"
        if parent.startswith("/zookeeper"):
            parent = "/"
        return f"{parent.rstrip('/')}/{self._random.choice(NAMES)}"

    def _existing_path(self) -> str:
        paths = [path for path in self.tree.nodes if not path.startswith("/zookeeper")]
        return self._random.choice(sorted(paths))

    def _data(self) -> bytes | None:
        roll = self._random.random()
        if roll < 0.1:
            return None
        return self._random.randbytes(self._random.choice((0, 3, 40, 700)))

    def _version(self) -> int:
        return self._random.choice((-1, -1, -1, 0, 1))


@dataclass(frozen=True, slots=True)
class Whole:
    """What a client can see of a tree, and its sessions."""

    znodes: dict[str, Any]
    sessions: dict[int, Any]


def whole(tree: Tree) -> Whole:
    """Everything in a tree, comparable."""
    return Whole(
        {
            path: (znode.data, znode.stat, znode.acl, znode.lifetime_ms, sorted(znode.children))
            for path, znode in tree.nodes.items()
        },
        {
            session: (known.timeout_ms, sorted(tree.ephemerals.get(session, ())))
            for session, known in tree.sessions.items()
        },
    )
