"""What is logged for single writes, and what replays of logs of other servers make of theirs."""

from __future__ import annotations

import struct
from zlib import adler32

import pytest

from tests.support.zookeeper_files.histories import RandomHistory, whole
from tests.support.zookeeper_files.tree_digest import digest_of
from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.operations import (
    CONTAINER_MS,
    Acl,
    Check,
    Create,
    Delete,
    Multi,
    SetData,
)
from watchkeeper.model.wire.fields import acl, boolean, buffer, int32, string
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.zookeeper import java_hash_order
from watchkeeper.model.zookeeper.tree import Tree, empty_tree
from watchkeeper.model.zookeeper.znode import CHILD_TABLE_CAPACITY
from watchkeeper.model.zookeeper_files.replay import Replay, apply_transaction
from watchkeeper.model.zookeeper_files.snapshot import decode_snapshot, encode_snapshot
from watchkeeper.model.zookeeper_files.transactions import Transaction

SESSION = 0x1000
OWN = (Acl(31, "digest", "keeper:secret"),)


@pytest.fixture(name="history")
def fixture_history() -> RandomHistory:
    """A history with one session and nothing else."""
    history = RandomHistory(0)
    history.step()
    return history


def session_of(history: RandomHistory) -> int:
    (session,) = history.tree.sessions
    return session


def restored(tree: Tree) -> Tree:
    """The tree that comes back from a snapshot."""
    return decode_snapshot(b"".join(encode_snapshot(tree)), tree.zxid)


PARENT_AND_CHILDREN = Multi((Create("/a"), Create("/a/b"), Create("/a/c-", sequential=True)))
MADE_ANEW = Multi(
    (Create("/a"), Create("/a/b"), Delete("/a/b"), Delete("/a"), *PARENT_AND_CHILDREN.operations)
)
CHANGED = Multi((Create("/a", b"1"), SetData("/a", b"2"), Check("/a", 1), SetData("/a", b"3")))
ALL_KINDS = Multi(
    (
        Create("/a", lifetime_ms=CONTAINER_MS),
        Create("/a/t", lifetime_ms=9),
        Create("/e", ephemeral=True),
    )
)


@pytest.mark.parametrize("multi", [PARENT_AND_CHILDREN, MADE_ANEW, CHANGED, ALL_KINDS])
def test_a_multi_is_replayed(history: RandomHistory, multi: Multi) -> None:
    """Its parts see one another: a parent that it creates, and one that it creates anew."""
    before = history.tree

    step = history.write(session_of(history), multi)

    assert type(step.written.answer) is tuple
    after = apply_transaction(before, step.transaction)
    assert whole(after) == whole(history.tree)
    assert digest_of(after) == digest_of(history.tree)
    assert after.nodes["/"].created == history.tree.nodes["/"].created


def test_a_failed_multi_names_its_error_at_its_place(history: RandomHistory) -> None:
    """0 before the part that failed and -2 after it, as Apache's servers answer."""
    multi = Multi((Create("/a"), Delete("/b"), Create("/c")))

    step = history.write(session_of(history), multi)

    assert type(step.written.answer) is Failure
    assert step.transaction.opcode == Opcode.MULTI
    assert struct.unpack(">i" + "iii" * 3, step.transaction.body) == (
        3,
        *(Opcode.ERROR, 4, 0),
        *(Opcode.ERROR, 4, -101),
        *(Opcode.ERROR, 4, -2),
    )


def test_nothing_of_a_failed_multi_is_replayed() -> None:
    """Apache's servers log the parts before the one that failed as if they had happened."""
    create = string("/a") + buffer(b"") + acl(OWN) + boolean(False) + int32(1)
    body = (
        int32(2)
        + int32(Opcode.CREATE)
        + buffer(create)
        + int32(Opcode.ERROR)
        + buffer(int32(-101))
    )

    after = apply_transaction(empty_tree(), Transaction(1, SESSION, 1, 1, Opcode.MULTI, body))

    assert "/a" not in after.nodes
    assert (after.nodes["/"].created, after.zxid) == (0, 1)


def test_a_create_of_an_old_server_counts_one_child_more() -> None:
    """Servers before 3.4 logged no number of children."""
    replay = Replay(empty_tree())
    for zxid, path in enumerate(("/a", "/b"), 1):
        body = string(path) + buffer(b"") + acl(OWN) + boolean(False)
        replay.apply(Transaction(zxid, SESSION, 1, 1, Opcode.CREATE, body))

    root = replay.tree().nodes["/"]

    assert (root.created, root.pzxid, sorted(root.children)) == (2, 2, ["a", "b", "zookeeper"])


def test_the_end_of_a_session_deletes_its_ephemerals_without_a_list() -> None:
    """Servers before 3.6 logged none."""
    create = string("/e") + buffer(b"") + acl(OWN) + boolean(True) + int32(1)
    replay = Replay(empty_tree())
    replay.apply(Transaction(1, SESSION, 0, 1, Opcode.CREATE_SESSION, int32(5000)))
    replay.apply(Transaction(2, SESSION, 1, 1, Opcode.CREATE, create))
    replay.apply(Transaction(3, SESSION, 0, 1, Opcode.CLOSE_SESSION, b""))

    after = replay.tree()

    assert ("/e" in after.nodes, len(after.sessions), after.nodes["/"].pzxid) == (False, 0, 3)


def test_a_znode_that_is_there_gets_the_list_of_its_create() -> None:
    """A fuzzy snapshot may have a znode whose list was added after the lists were written."""
    create = string("/a") + buffer(b"") + acl(OWN) + boolean(False) + int32(1)
    transaction = Transaction(1, SESSION, 1, 1, Opcode.CREATE, create)
    data = b"".join(encode_snapshot(apply_transaction(empty_tree(), transaction)))
    at = data.index(acl(OWN))
    with_other_number = data[: at - 8] + struct.pack(">q", 77) + data[at:]

    without_list = decode_snapshot(resealed(with_other_number), 0)

    assert without_list.nodes["/a"].acl != OWN
    assert apply_transaction(without_list, transaction).nodes["/a"].acl == OWN


SEALS_BYTES = 13 + (20 + 13) + (8 + 13)
"""The seals at the end of a snapshot, with the digest and the zxid between them."""


def resealed(data: bytes) -> bytes:
    """A snapshot that was changed, with the right checksum in its first and only seal."""
    body = data[:-SEALS_BYTES]
    return body + struct.pack(">q", adler32(body)) + string("/")


def test_a_later_child_comes_behind_those_of_its_bucket(history: RandomHistory) -> None:
    """Also if many children had been created and deleted before the snapshot."""
    names = [f"n{number}" for number in range(200)]
    of_one_bucket = [
        name for name in names if java_hash_order.bucket(name, CHILD_TABLE_CAPACITY) == 3
    ]
    first, second, later = of_one_bucket[:3]
    session = session_of(history)
    for name in (later, second, first):
        history.write(session, Create(f"/{name}"))
    history.write(session, Delete(f"/{later}"))

    again = RandomHistory(1, restored(history.tree))
    again.write(session, Create(f"/{later}"))

    there = [name for name in again.tree.nodes["/"].child_names if name != "zookeeper"]
    assert there == [second, first, later]
