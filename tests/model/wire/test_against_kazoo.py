"""kazoo's encoding and ours, each read by the other."""

from __future__ import annotations

from typing import Any

import pytest
from kazoo.exceptions import NodeExistsError, RolledBackError, RuntimeInconsistency
from kazoo.protocol import serialization as kazoo
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from watchkeeper.model.actor.errors import Failure, NodeExists, TransactionFailed
from watchkeeper.model.actor.events import Fired, WatchEventType, ZnodeView
from watchkeeper.model.actor.operations import (
    OPEN,
    Acl,
    Check,
    Create,
    Delete,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    Multi,
    SetAcl,
    SetData,
    Sync,
)
from watchkeeper.model.wire.connect import (
    ConnectRequest,
    ConnectResponse,
    decode_connect_request,
    encode_connect_response,
)
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.replies import (
    encode_event,
    encode_reply,
    failed_multi_body,
    multi_body,
    reply_body,
)
from watchkeeper.model.wire.requests import (
    HEADER,
    Auth,
    CloseSession,
    Ping,
    Reconfig,
    Sasl,
    decode_request,
    encode_request,
)
from watchkeeper.model.zookeeper.tree import Session, empty_tree
from watchkeeper.model.zookeeper.writes import open_session, write
from watchkeeper.model.zookeeper.znode import Znode

SESSION = 5
ZNODE = Znode(b"\0data", version=3, czxid=1 << 40, mzxid=9, ctime=1 << 41, owner=SESSION)
STAT = kazoo.ZnodeStat(1 << 40, 9, 1 << 41, 0, 3, 0, 0, SESSION, 5, 0, 0)
PATH = "/äpp/node"
LIST = [OPEN_ACL_UNSAFE[0], CREATOR_ALL_ACL[0]]
ENTRIES = (*OPEN, Acl(31, "auth", ""))

REQUESTS: list[tuple[Any, Any]] = [
    (kazoo.Create(PATH, b"x", OPEN_ACL_UNSAFE, 0), Create(PATH, b"x")),
    (kazoo.Create(PATH, None, LIST, 3), Create(PATH, None, True, True, ENTRIES)),
    (kazoo.Create2(PATH, b"", OPEN_ACL_UNSAFE, 1), Create(PATH, b"", True)),
    (kazoo.Delete(PATH, 4), Delete(PATH, 4)),
    (kazoo.Exists(PATH, True), Exists(PATH, True)),
    (kazoo.GetData(PATH, False), GetData(PATH)),
    (kazoo.SetData(PATH, b"\xff", -1), SetData(PATH, b"\xff")),
    (kazoo.GetACL(PATH), GetAcl(PATH)),
    (kazoo.SetACL(PATH, LIST, 2), SetAcl(PATH, ENTRIES, 2)),
    (kazoo.GetChildren(PATH, True), GetChildren(PATH, True)),
    (kazoo.GetChildren2(PATH, False), GetChildren(PATH)),
    (kazoo.Sync(PATH), Sync(PATH)),
    (kazoo.Reconfig("a", "b", None, -1), Reconfig("a", "b", None, -1)),
    (kazoo.Auth(0, "digest", "ann:secret"), Auth(0, "digest", b"ann:secret")),
    (kazoo.SASL(b"token"), Sasl(b"token")),
    (kazoo.Ping(), Ping()),
    (kazoo.Close(), CloseSession()),
    (
        kazoo.Transaction(
            [
                kazoo.Create("/a", b"1", OPEN_ACL_UNSAFE, 2),
                kazoo.SetData("/b", b"2", 7),
                kazoo.CheckVersion("/c", 1),
                kazoo.Delete("/d", -1),
            ]
        ),
        Multi(
            (
                Create("/a", b"1", sequential=True),
                SetData("/b", b"2", 7),
                Check("/c", 1),
                Delete("/d"),
            )
        ),
    ),
]


@pytest.mark.parametrize(("sent", "body"), REQUESTS, ids=lambda it: type(it).__name__)
def test_what_kazoo_writes_is_read(sent: Any, body: Any) -> None:
    """kazoo's requests become the operations that they stand for."""
    request = decode_request(HEADER.pack(9, sent.type) + bytes(sent.serialize()))

    assert (request.xid, request.opcode, request.body) == (9, sent.type, body)


@pytest.mark.parametrize(
    ("sent", "body"),
    [pair for pair in REQUESTS if "auth" not in str(pair[0])],  # kazoo has no empty strings
    ids=lambda it: type(it).__name__,
)
def test_a_request_is_written_as_kazoo_writes_it(sent: Any, body: Any) -> None:
    """Our bytes are kazoo's bytes."""
    expected = HEADER.pack(9, sent.type) + bytes(sent.serialize())

    assert encode_request(9, sent.type, body) == expected


@pytest.mark.parametrize("read_only", [False, True])
def test_kazoo_connects(read_only: bool) -> None:
    """The first frames of both sides are read by the other."""
    sent = kazoo.Connect(0, 1 << 40, 10_000, SESSION, b"p" * 16, read_only)
    assert decode_connect_request(bytes(sent.serialize())) == ConnectRequest(
        0, 1 << 40, 10_000, SESSION, b"p" * 16, read_only
    )

    answer = encode_connect_response(ConnectResponse(0, 9_000, SESSION, b"q" * 16, read_only))
    found, end = kazoo.Connect.deserialize(answer, 0)
    assert found == kazoo.Connect(0, 0, 9_000, SESSION, b"q" * 16, read_only)
    assert end == len(answer)


def read(kind: Any, answer: Any, znode: Znode | None = None) -> Any:
    reply = encode_reply(9, 1 << 40, 0, reply_body(kind.type, answer, znode))
    header, at = kazoo.ReplyHeader.deserialize(reply, 0)
    assert header == (9, 1 << 40, 0)
    return kind.deserialize(reply, at)


def test_kazoo_reads_our_answers() -> None:
    """Each of kazoo's readers gives what the specification answered."""
    view = ZnodeView(ZNODE.data, ZNODE.version, True, ZNODE.stat)

    assert read(kazoo.Create, PATH) == PATH
    assert read(kazoo.Create2, PATH, ZNODE) == (PATH, STAT)
    assert read(kazoo.Exists, view) == STAT
    assert read(kazoo.GetData, view) == (ZNODE.data, STAT)
    assert read(kazoo.SetData, 3, ZNODE) == STAT
    assert read(kazoo.GetACL, OPEN, ZNODE) == (OPEN_ACL_UNSAFE, STAT)
    assert read(kazoo.SetACL, 1, ZNODE) == STAT
    assert read(kazoo.GetChildren, ("b", "a")) == ["b", "a"]
    assert read(kazoo.GetChildren2, ("b", "ä"), ZNODE) == (["b", "ä"], STAT)
    assert read(kazoo.Sync, PATH) == PATH
    assert read(kazoo.Delete, None) is True


def test_kazoo_reads_the_results_of_a_multi() -> None:
    """A path, a Stat, and nothing for the others; after a failure an error for each part."""
    tree = open_session(empty_tree(), SESSION, Session(30_000))
    operations = (Create("/a", b""), SetData("/a", b"1"), Check("/a", 1), Delete("/a"))
    written = write(tree, SESSION, Multi(operations))
    parts = [Opcode.CREATE, Opcode.SET_DATA, Opcode.CHECK, Opcode.DELETE]

    path, stat, *others = kazoo.Transaction.deserialize(multi_body(parts, written), 0)

    assert (path, stat.version, others) == ("/a", 1, [True, True])
    failure = Failure(TransactionFailed, "/a", index=1, cause=Failure(NodeExists, "/a"))
    errors = kazoo.Transaction.deserialize(failed_multi_body(failure, 3), 0)
    assert [type(error) for error in errors] == [
        RolledBackError,
        NodeExistsError,
        RuntimeInconsistency,
    ]


def test_kazoo_reads_our_events() -> None:
    """An event has kazoo's xid for events, its type, the connected state and the path."""
    event = encode_event(77, Fired(WatchEventType.CHILDREN, PATH))

    header, at = kazoo.ReplyHeader.deserialize(event, 0)
    watch, end = kazoo.Watch.deserialize(event, at)

    assert header == (-1, 77, 0)
    assert watch == (4, 3, PATH)
    assert end == len(event)
