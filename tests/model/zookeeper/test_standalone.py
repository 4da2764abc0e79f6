"""The service beside a naive one of dicts and lists: both answer every request alike."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import asdict

from tests.support.zookeeper.oracle import Oracle
from tests.support.zookeeper.script import error_of
from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import (
    ADMIN,
    CONTAINER_MS,
    CREATE,
    DELETE,
    OPEN,
    READ,
    UNLIMITED_MS,
    WRITE,
    Acl,
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
    Operation,
    RemoveWatches,
    SetAcl,
    SetData,
    Sync,
    WatchKind,
)
from watchkeeper.model.zookeeper import standalone
from watchkeeper.model.zookeeper.lifetimes import due_by_ttl, due_containers
from watchkeeper.model.zookeeper.standalone import Server
from watchkeeper.model.zookeeper.znode import NO_SESSION

MOST_SESSIONS = 4

NAMES = st.sampled_from(["a", "b", "Aa", "BB", "é"])
GOOD = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
ODD = st.sampled_from(
    [
        *("/", "", "a", "/a/", "/a//b", "/a/.", "/b/..", "/a/\x01", "/a\0", "/a/\U0001f600"),
        *("//", "/zookeeper", "/zookeeper/config", "/zookeeper/config/x", "/zookeeper/quota/x"),
    ]
)
PATHS = st.one_of(GOOD, GOOD, GOOD, GOOD, GOOD, ODD)
DATA = st.sampled_from([None, b"", b"x", b"long data"])
VERSIONS = st.sampled_from([-1, -1, -1, 0, 1, 2, -2])
ANN, BEN = ("digest", "ann:hash"), ("digest", "ben:hash")
PROOFS = st.sampled_from([ANN, BEN, ("ip", "10.0.0.1"), ("ip", "10.0.0.2"), ("ip", "::1")])
LIFETIMES = st.sampled_from([*[UNLIMITED_MS] * 8, CONTAINER_MS, CONTAINER_MS, 3, 40, 2**40, -2])
ALL = READ | WRITE | CREATE | DELETE | ADMIN
ACLS = st.sampled_from(
    [OPEN] * 12
    + [(), *((Acl(ALL & ~right),) for right in (READ, WRITE, CREATE, DELETE, ADMIN))]
    + [(Acl(ALL, "auth", ""),), (Acl(READ), Acl(ALL, "auth", ""), Acl(ALL, *ANN), Acl(READ))]
    + [
        (Acl(READ), Acl(ALL, *ANN)),
        (Acl(ADMIN), Acl(READ, *BEN)),
        (Acl(ALL, "ip", "10.0.0.0/8"),),
    ]
    + [(Acl(ALL, "ip", "10.0.0.2"), Acl(READ, "ip", "::/0")), (Acl(ALL, "sasl", "ann"),)]
    + [(Acl(ALL), Acl(ALL, "ip", "10.0.0/8")), (Acl(ALL, "digest", "ann"),)]
)

CREATES = st.builds(Create, PATHS, DATA, st.booleans(), st.booleans(), ACLS)
LIMITED = st.builds(
    Create, PATHS, DATA, sequential=st.booleans(), acl=ACLS, lifetime_ms=LIFETIMES
)
DELETES = st.builds(Delete, PATHS, VERSIONS)
SETS = st.builds(SetData, PATHS, DATA, VERSIONS)
CHECKS = st.builds(Check, PATHS, VERSIONS)
PARTS = st.one_of(CREATES, LIMITED, DELETES, SETS, CHECKS)
MULTIS = st.builds(Multi, st.lists(PARTS, max_size=4).map(tuple))
WRITES = st.one_of(
    CREATES,
    LIMITED,
    DELETES,
    SETS,
    MULTIS,
    st.builds(SetAcl, PATHS, ACLS, VERSIONS),
    st.builds(DeleteContainer, PATHS),
)
KINDS = st.sampled_from(["child", "data", "any", "persistent", "recursive"])
PARTS_OF_MULTI_READ = st.one_of(
    st.builds(GetData, PATHS, st.booleans()), st.builds(GetChildren, PATHS, st.booleans())
)
READS = st.one_of(
    st.builds(Exists, PATHS, st.booleans()),
    st.builds(GetData, PATHS, st.booleans()),
    st.builds(GetChildren, PATHS, st.booleans()),
    st.builds(GetAcl, PATHS),
    st.builds(GetEphemerals, PATHS),
    st.builds(AddWatch, PATHS, st.booleans()),
    st.builds(RemoveWatches, PATHS, kind=KINDS),
    st.builds(CheckWatches, PATHS, kind=KINDS),
    st.builds(CountDescendants, PATHS),
    st.builds(MultiRead, st.lists(PARTS_OF_MULTI_READ, max_size=3).map(tuple)),
    st.builds(Sync, PATHS),
)


def plain(operation: Operation[Any], answer: Any) -> Any:
    """An answer in the form in which the naive service gives it."""
    if isinstance(answer, Failure):
        return error_of(answer)
    if isinstance(answer, ZnodeView):
        return answer.data, answer.version, answer.mine, asdict(answer.stat)
    if isinstance(operation, GetEphemerals):
        return frozenset(answer)
    if isinstance(operation, MultiRead):
        return tuple(map(plain, operation.operations, answer))
    return answer


def dump(service: Server) -> Any:
    """All that can be read of a service, to see later whether it is still the same."""
    tree = service.tree
    return (
        tree.zxid,
        sorted(tree.sessions),
        {session: dict(paths) for session, paths in tree.ephemerals.items()},
        {
            path: (node.data, node.acl, node.stat, node.child_names)
            for path, node in tree.nodes.items()
        },
        {session: sorted(left) for session, left in service.watches.paths.items()},
    )


class SideBySide(RuleBasedStateMachine):
    """Every rule does the same to both services and compares what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.oracle = Oracle()
        self.sessions: list[int] = []
        self.opened = 0
        self.now_ms = 0
        self.kept: list[tuple[Server, Any]] = []

    @initialize()
    def begin(self) -> None:
        """Two sessions are there from the beginning."""
        self.open()
        self.open()

    @rule(who=st.integers(0, MOST_SESSIONS), operation=WRITES)
    def write(self, who: int, operation: Operation[Any]) -> None:
        """A client asks for a change."""
        self._do(who, operation)

    @rule(who=st.integers(0, MOST_SESSIONS), operation=READS)
    def read(self, who: int, operation: Operation[Any]) -> None:
        """A client looks, and perhaps leaves a watch."""
        self._do(who, operation)

    @rule(who=st.integers(0, MOST_SESSIONS), pick=st.integers(0, 99), deletes=st.booleans())
    def hit(self, who: int, pick: int, deletes: bool) -> None:
        """A client changes a znode that is there, at the version that it has."""
        paths = sorted(self.oracle.nodes)
        path = paths[pick % len(paths)]
        version = self.oracle.nodes[path].version
        self._do(who, Delete(path, version) if deletes else SetData(path, b"hit", version))

    @rule(pick=st.integers(0, 99), sets=st.booleans(), kind=KINDS)
    def look(self, pick: int, sets: bool, kind: WatchKind) -> None:
        """A client counts what is below a znode, and sets every watch there or removes some."""
        paths = sorted(self.oracle.nodes)
        path = paths[pick % len(paths)]
        self._do(0, CountDescendants(path))
        if sets:
            self._do(0, GetData(path, watch=True))
            self._do(0, GetChildren(path, watch=True))
            self._do(0, AddWatch(path))
            self._do(0, AddWatch(path, recursive=True))
        self._do(0, RemoveWatches(path, kind=kind))
        self._do(0, CheckWatches(path, kind=kind))

    @precondition(lambda self: len(self.sessions) < MOST_SESSIONS)
    @rule()
    def open(self) -> None:
        """A session begins."""
        self.opened += 1
        self.sessions.append(self.opened)
        self.server = standalone.open_session(self.server, self.opened)
        self.oracle.open(self.opened)

    @precondition(lambda self: len(self.sessions) > 1)
    @rule(who=st.integers(0, MOST_SESSIONS))
    def close(self, who: int) -> None:
        """A session ends."""
        session = self.sessions.pop(who % len(self.sessions))
        done = standalone.close_session(self.server, session)
        assert done.answer == self.oracle.close(session)
        self._take(done)

    @rule(who=st.integers(0, MOST_SESSIONS))
    def drop(self, who: int) -> None:
        """A connection breaks."""
        session = self.sessions[who % len(self.sessions)]
        self.server = standalone.drop_connection(self.server, session)
        self.oracle.drop_connection(session)

    @rule(who=st.integers(0, MOST_SESSIONS), proof=PROOFS)
    def prove(self, who: int, proof: tuple[str, str]) -> None:
        """A client shows an identity."""
        session = self.sessions[who % len(self.sessions)]
        self.server = standalone.authenticate(self.server, session, *proof)
        self.oracle.prove(session, *proof)

    @rule(limit=st.integers(0, 2))
    def clean(self, limit: int) -> None:
        """A server deletes what is due, but not all at once; it needs no session."""
        tree = self.server.tree
        due = sorted((*due_containers(tree), *due_by_ttl(tree, self.now_ms)))
        assert due == self.oracle.due(self.now_ms)
        for path in due[:limit]:
            self._do(None, DeleteContainer(path))

    @rule()
    def keep(self) -> None:
        """A client keeps the value of this moment."""
        self.kept.append((self.server, dump(self.server)))

    @invariant()
    def zxids_agree(self) -> None:
        """Both have taken as many zxids."""
        assert self.server.tree.zxid == self.oracle.zxid

    @invariant()
    def watches_agree(self) -> None:
        """The same watches are left in both."""
        left = {
            (session, kind, path)
            for session, own in self.server.watches.paths.items()
            for kind, path in own
        }
        assert left == set(self.oracle.watches)

    def teardown(self) -> None:
        """At the end every znode is the same, and whatever was kept is as it was."""
        nodes = self.server.tree.nodes
        assert set(nodes) == set(self.oracle.nodes)
        for path, node in self.oracle.nodes.items():
            assert asdict(nodes[path].stat) == node.stat()
            assert (nodes[path].acl, nodes[path].lifetime_ms) == (node.acl, node.lifetime)
        for service, before in self.kept:
            assert dump(service) == before

    def _do(self, who: int | None, operation: Operation[Any]) -> None:
        session = NO_SESSION if who is None else self.sessions[who % len(self.sessions)]
        self.now_ms += 1
        done = standalone.apply(self.server, session, operation, now_ms=self.now_ms)
        expected = self.oracle.do(session, operation, self.now_ms)
        if isinstance(operation, GetChildren) and isinstance(expected, tuple):
            assert done.answer == expected
        else:
            assert plain(operation, done.answer) == expected, operation
        self._take(done)

    def _take(self, done: standalone.Applied) -> None:
        fired = [(who, event.what.value, event.path) for who, event in done.fired]
        assert fired == self.oracle.fired
        self.server = done.server


SideBySide.TestCase.settings = settings(
    max_examples=200, stateful_step_count=50, derandomize=True, deadline=None
)
TestSideBySide = SideBySide.TestCase
