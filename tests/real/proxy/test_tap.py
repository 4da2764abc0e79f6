"""What the tap makes of the writes that passed."""

from __future__ import annotations

from typing import Any

from watchkeeper.model.actor.errors import BadVersion, Failure, TransactionFailed
from watchkeeper.model.actor.operations import (
    Check,
    Create,
    Delete,
    DeleteContainer,
    Multi,
    SetAcl,
    SetData,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.replies import failed_multi_body, multi_body, reply_body
from watchkeeper.model.wire.requests import encode_body, opcode_of
from watchkeeper.model.zookeeper.tree import Session, Tree, Written, empty_tree
from watchkeeper.model.zookeeper.writes import open_session, write
from watchkeeper.real.proxy.tap import AnsweredRequest
from watchkeeper.real.trace.write_events import WriteEvents

SESSION = 5


def tree_with(*operations: Any) -> Tree:
    tree = open_session(empty_tree(), SESSION, Session(30_000))
    for operation in operations:
        tree = write(tree, SESSION, operation).tree
    return tree


def answered(operation: Any, reply: bytes, error: int = 0) -> AnsweredRequest:
    opcode = opcode_of(operation)
    request = encode_body(opcode, operation)
    return AnsweredRequest(SESSION, 1, 0, 0, opcode, request, reply, error)


def rows_of(request: AnsweredRequest) -> list[Any]:
    kind, detail = request.event(WriteEvents("/run"))
    assert kind == EventKind.APPLIED
    return [row[:3] for row in detail["did"]]


def multi_of(*operations: Any, tree: Tree) -> tuple[Multi, Written]:
    multi = Multi(operations)
    return multi, write(tree, SESSION, multi)


def test_a_create_is_shown_with_the_name_that_the_server_gave() -> None:
    """The number of a sequential znode is in the answer alone."""
    create = Create("/run/a-", b"", ephemeral=True, sequential=True)
    request = answered(create, reply_body(Opcode.CREATE, "/run/a-0000000003"))

    assert rows_of(request) == [["created", "/a-0000000003", SESSION]]


def test_the_parts_of_a_multi_are_shown_with_their_results() -> None:
    """Each part has its own result, a Stat or a name, and a check changes nothing."""
    multi, written = multi_of(
        Create("/run/a-", b"", sequential=True),
        SetData("/run/old", b"x"),
        Check("/run"),
        Create("/run/ttl", b"", lifetime_ms=1_000),
        Delete("/run/old"),
        tree=tree_with(Create("/run"), Create("/run/old")),
    )
    parts = [opcode_of(operation) for operation in multi.operations]
    request = answered(multi, multi_body(parts, written))

    assert [row[0] for row in rows_of(request)] == ["created", "changed", "created", "deleted"]
    assert [row[1] for row in rows_of(request)] == ["/a-0000000001", "/old", "/ttl", "/old"]
    assert list(request.deletes("/run")) == ["/old"]


def test_a_multi_that_failed_changed_nothing() -> None:
    """Its own error code is 0; those of its parts tell."""
    multi = Multi((Delete("/run/a"), Check("/run", 9)))
    failure = Failure(TransactionFailed, "/run", index=1, cause=Failure(BadVersion, "/run"))
    request = answered(multi, failed_multi_body(failure, 2))

    assert request.is_refused
    assert request.event(WriteEvents("/run")) == (EventKind.REFUSED, {"op": "multi"})
    assert list(request.deletes("/run")) == []


def test_a_container_that_was_deleted_is_gone() -> None:
    """A client may request that too."""
    request = answered(DeleteContainer("/run/box"), b"")

    assert list(request.deletes("/run")) == ["/box"]


def test_a_change_of_permissions_is_no_change_of_a_znode() -> None:
    """It has a zxid, and an event without changes."""
    create = tree_with(Create("/run")).nodes["/run"]
    request = answered(SetAcl("/run", ()), reply_body(Opcode.SET_ACL, 1, create))

    assert rows_of(request) == []
