"""Snapshots: a tree as bytes and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.zookeeper_files.histories import RandomHistory, whole
from watchkeeper.model.actor.operations import Create, Delete
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.tree import Session, Tree, empty_tree
from watchkeeper.model.zookeeper_files.snapshot import (
    NotASnapshot,
    decode_snapshot,
    encode_snapshot,
)

SEEDS = st.integers(0, 1 << 30)


def bytes_of(tree: Tree) -> bytes:
    return b"".join(encode_snapshot(tree))


def tree_of(seed: int, steps: int = 150) -> Tree:
    history = RandomHistory(seed)
    history.steps(steps)
    return history.tree


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_a_tree_comes_back(seed: int) -> None:
    """Every znode with its data, its Stat, its list and its owner; and every session."""
    tree = tree_of(seed)

    found = decode_snapshot(bytes_of(tree), tree.zxid)

    assert whole(found).znodes == whole(tree).znodes
    assert whole(found).sessions == whole(tree).sessions
    assert found.limited == tree.limited
    assert found.zxid == tree.zxid


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_a_history_goes_on_alike(seed: int) -> None:
    """The numbers of sequential znodes and the versions go on where they were."""
    tree = tree_of(seed)
    restarted = RandomHistory(seed + 1, decode_snapshot(bytes_of(tree), tree.zxid))
    straight = RandomHistory(seed + 1, tree)

    for one, other in zip(restarted.steps(60), straight.steps(60), strict=True):
        assert one.written.answer == other.written.answer or one.operation is None


def test_children_keep_their_order_in_a_new_table() -> None:
    """A table that had grown is as small as its names need, as after a restart of Apache's."""
    tree = writes.open_session(empty_tree(), 1, Session(1000))
    for number in range(40):
        tree = writes.write(tree, 1, Create(f"/{number}")).tree
    for number in range(35):
        tree = writes.write(tree, 1, Delete(f"/{number}")).tree

    found = decode_snapshot(bytes_of(tree), tree.zxid)

    assert (tree.nodes["/"].child_table, found.nodes["/"].child_table) == (64, 8)
    assert sorted(found.nodes["/"].child_names) == sorted(tree.nodes["/"].child_names)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_damaged_byte_is_found(data: st.DataObject) -> None:
    """Whichever it is."""
    snapshot = bytearray(bytes_of(tree_of(2, 40)))
    at = data.draw(st.integers(0, len(snapshot) - 1))
    snapshot[at] ^= data.draw(st.integers(1, 255))

    with pytest.raises(NotASnapshot):
        decode_snapshot(bytes(snapshot), 40)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_part_of_a_snapshot_is_none(data: st.DataObject) -> None:
    """Unless it ends after one of its seals, as those of older servers do."""
    snapshot = bytes_of(tree_of(2, 40))
    ends = {len(snapshot) - 21, len(snapshot) - 54}
    length = data.draw(st.integers(0, len(snapshot) - 1).filter(lambda end: end not in ends))

    with pytest.raises(NotASnapshot):
        decode_snapshot(snapshot[:length], 40)


def test_a_snapshot_of_an_older_server_is_read() -> None:
    """It ends after the first seal, or after the digest."""
    tree = tree_of(2, 40)
    snapshot = bytes_of(tree)

    for missing in (21, 54):
        assert whole(decode_snapshot(snapshot[:-missing], 40)) == whole(
            decode_snapshot(snapshot, 40)
        )


def test_a_deep_tree_has_a_snapshot() -> None:
    """Its depth is no matter of the stack."""
    tree = writes.open_session(empty_tree(), 1, Session(1000))
    path = ""
    for _ in range(3000):
        path += "/a"
        tree = writes.write(tree, 1, Create(path)).tree

    assert path in decode_snapshot(bytes_of(tree), tree.zxid).nodes
