"""Logged transactions, and the tree that they make."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from tests.support.zookeeper_files.histories import RandomHistory, whole
from watchkeeper.model.wire.fields import Malformed
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.zookeeper.tree import empty_tree
from watchkeeper.model.zookeeper_files.replay import Replay, apply_transaction
from watchkeeper.model.zookeeper_files.transactions import (
    Transaction,
    decode_transaction,
    encode_transaction,
)

SEEDS = st.integers(0, 1 << 30)


def exactly(tree: object) -> object:
    """All of a tree, with the tables that its order comes from."""
    nodes = {path: asdict(znode) for path, znode in tree.nodes.items()}  # type: ignore[attr-defined]
    return nodes, whole(tree)  # type: ignore[arg-type]


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_a_replayed_history_makes_the_tree_that_the_writes_made(seed: int) -> None:
    """Every field, every list, every order, every session."""
    history = RandomHistory(seed)
    replay = Replay(empty_tree())
    for step in history.steps(120):
        replay.apply(decode_transaction(encode_transaction(step.transaction)))

    assert exactly(replay.tree()) == exactly(history.tree)


def test_histories_have_every_kind_of_transaction() -> None:
    """Otherwise these tests would say little."""
    history = RandomHistory(1)

    seen = {step.transaction.opcode for step in history.steps(3000)}

    assert seen == {
        Opcode.CREATE,
        Opcode.CREATE_CONTAINER,
        Opcode.CREATE_TTL,
        Opcode.DELETE,
        Opcode.DELETE_CONTAINER,
        Opcode.SET_DATA,
        Opcode.SET_ACL,
        Opcode.MULTI,
        Opcode.ERROR,
        Opcode.CREATE_SESSION,
        Opcode.CLOSE_SESSION,
    }


@given(SEEDS, st.data())
@settings(max_examples=60, deadline=None)
def test_transactions_may_be_in_the_tree_already(seed: int, data: st.DataObject) -> None:
    """A fuzzy snapshot holds some of what follows it in the log; the end is the same."""
    history = RandomHistory(seed)
    trees = [history.tree]
    steps = []
    for _ in range(100):
        steps.append(history.step())
        trees.append(history.tree)
    begin = data.draw(st.integers(0, 100))
    end = data.draw(st.integers(begin, 100))

    replay = Replay(replace(trees[end], zxid=trees[begin].zxid))
    for step in steps[begin:]:
        replay.apply(step.transaction)

    replayed = replay.tree()
    found, expected = whole(replayed), whole(history.tree)
    assert found.znodes == expected.znodes
    assert found.sessions == expected.sessions
    for znode in replayed.nodes.values():
        numbers = sorted(znode.children.values())
        assert len(set(numbers)) == len(numbers)
        assert not numbers or numbers[-1] < max(znode.created, 1)


def test_ephemerals_of_a_session_that_has_ended_are_deleted() -> None:
    """Its end may have been logged before a fuzzy snapshot was complete."""
    history = RandomHistory(4)
    history.steps(150)
    owned = {path for paths in history.tree.ephemerals.values() for path in paths}
    assert owned

    tree = Replay(replace(history.tree, sessions=empty_tree().sessions)).tree()

    assert owned.isdisjoint(tree.nodes)
    assert not tree.ephemerals


def test_an_unknown_transaction_is_an_error() -> None:
    """It is not passed over: what it did is not known."""
    with pytest.raises(Malformed, match="transaction 0x7 is of type 77, which is unknown"):
        apply_transaction(empty_tree(), Transaction(7, 1, 1, 0, 77, b""))


def test_a_transaction_that_ends_too_early_is_an_error() -> None:
    """The checksum of its record was right, so another server has written it."""
    with pytest.raises(Malformed):
        apply_transaction(empty_tree(), Transaction(7, 1, 1, 0, Opcode.DELETE, b"\0\0"))
