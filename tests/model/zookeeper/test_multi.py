"""Many operations at once: all of them or none."""

from __future__ import annotations

import pytest

from tests.support.zookeeper.script import ME, OTHER, Script, error_of
from watchkeeper.model.actor.errors import BadVersion, TransactionFailed
from watchkeeper.model.actor.operations import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Multi,
    PartOfMulti,
    SetData,
)
from watchkeeper.model.zookeeper import writes


def multi(*parts: PartOfMulti) -> Multi:
    return Multi(parts)


SEES_WHAT_CAME_BEFORE: list[tuple[str, Multi, tuple[object, ...] | str]] = [
    (
        "a check sees the version that a set made",
        multi(SetData("/a", b"x"), Check("/a", 1)),
        (1, None),
    ),
    (
        "a check does not see the version before",
        multi(SetData("/a", b"x"), Check("/a", 0)),
        "1: BadVersion",
    ),
    (
        "a set sees the version that a set made",
        multi(SetData("/a", b"x", 0), SetData("/a", b"y", 1)),
        (1, 2),
    ),
    (
        "a child goes below a parent that has just come",
        multi(Create("/n"), Create("/n/c")),
        ("/n", "/n/c"),
    ),
    (
        "a child does not go below a parent that comes later",
        multi(Create("/n/c"), Create("/n")),
        "0: NoNode",
    ),
    ("what has come may go", multi(Create("/n"), Delete("/n")), ("/n", None)),
    (
        "what has gone may come again, as new",
        multi(Delete("/leaf"), Create("/leaf"), Check("/leaf", 0)),
        (None, "/leaf", None),
    ),
    ("child, then parent", multi(Delete("/a/c"), Delete("/a")), (None, None)),
    ("parent, then child", multi(Delete("/a"), Delete("/a/c")), "0: NotEmpty"),
    ("twice the same", multi(Create("/n"), Create("/n")), "1: NodeExists"),
    (
        "below an ephemeral that has just come",
        multi(Create("/e", ephemeral=True), Create("/e/c")),
        "1: NoChildrenForEphemerals",
    ),
    (
        "what is gone cannot be checked",
        multi(Delete("/leaf"), Check("/leaf", ANY_VERSION)),
        "1: NoNode",
    ),
    ("nothing at all", multi(), ()),
]


def small_tree() -> Script:
    script = Script()
    script.create("/a", b"")
    script.create("/a/c")
    script.create("/leaf")
    return script


@pytest.mark.parametrize(
    ("operation", "outcome"),
    [row[1:] for row in SEES_WHAT_CAME_BEFORE],
    ids=[row[0] for row in SEES_WHAT_CAME_BEFORE],
)
def test_each_part_sees_what_the_earlier_parts_did(
    operation: Multi, outcome: tuple[object, ...] | str
) -> None:
    """The parts of a multi are done one after the other, and answered each for itself."""
    answer = small_tree().ask(operation)

    assert (error_of(answer) if isinstance(outcome, str) else answer) == outcome


def test_a_multi_that_fails_leaves_nothing_behind() -> None:
    """When one part fails, none has happened: no znode, no ephemeral, no event, no count."""
    script = small_tree()
    script.watch("recursive", "/", by=OTHER)
    before = script.server

    answer = script.ask(
        multi(
            Create("/n"),
            SetData("/a", b"x"),
            Create("/e", ephemeral=True),
            Create("/a/s-", sequential=True),
            Delete("/leaf"),
            Check("/a", 0),
        )
    )

    assert error_of(answer) == "5: BadVersion"
    assert script.server.tree.nodes is before.tree.nodes
    assert script.server.tree.ephemerals is before.tree.ephemerals
    assert script.server.watches is before.watches
    assert script.heard(OTHER) == []
    assert script.create("/a/s-", sequential=True) == "/a/s-0000000001"


def test_a_failed_multi_names_the_first_part_that_failed_and_why() -> None:
    """The error of a multi tells which of its operations failed, and what that one met."""
    answer = small_tree().ask(multi(Check("/a"), Delete("/leaf", 7), Check("/nope")))

    error = answer.error()

    assert isinstance(error, TransactionFailed)
    assert (error.index, error.cause.kind, error.cause.path) == (1, BadVersion, "/leaf")
    assert "operation 1" in str(error)
    assert not error.may_have_happened


@pytest.mark.parametrize(
    ("part", "outcome"),
    [
        (Create("bad"), "0: BadArguments"),
        (Create("/x", acl=()), "0: InvalidACL"),
        (Create("/nope/x"), "0: NoNode"),
        (Create("/leaf"), "0: NodeExists"),
        (Delete("/zookeeper"), "0: BadArguments"),
        (Delete("/a", 7), "0: BadVersion"),
        (Delete("/a"), "0: NotEmpty"),
        (SetData("/a/", b""), "0: BadArguments"),
        (SetData("/nope", b""), "0: NoNode"),
        (SetData("/a", b"", 7), "0: BadVersion"),
    ],
)
def test_a_part_fails_as_it_would_alone(part: PartOfMulti, outcome: str) -> None:
    """What refuses an operation refuses it inside a multi too, by the same word."""
    assert error_of(small_tree().ask(multi(part))) == outcome
    assert f"0: {error_of(small_tree().ask(part))}" == outcome


def test_ephemerals_of_a_multi_belong_to_the_session_that_asked() -> None:
    """Ephemeral and sequential work inside a multi, and end with the session."""
    script = Script()
    create = Create("/e-", ephemeral=True, sequential=True)

    paths = script.must(multi(create, create), by=OTHER)

    assert script.stat(paths[0]).ephemeral_owner == OTHER
    assert set(script.close(OTHER)) == set(paths)


def test_an_ephemeral_that_comes_and_goes_in_one_multi_is_forgotten() -> None:
    """The session does not try to delete what it has created and deleted in one multi."""
    script = Script()

    script.must(multi(Create("/e", ephemeral=True), Delete("/e")))
    script.create("/e", by=OTHER)

    assert script.close(ME) == ()
    assert script.is_there("/e")


def test_a_multi_gives_each_znode_as_it_was_at_that_point() -> None:
    """A create and a set see the changes before them and none after; the rest have no znode."""
    script = small_tree()
    parts = (
        SetData("/a", b"1"),
        Create("/a/s-", sequential=True),
        SetData("/a", b"22"),
        Check("/a", 2),
        Delete("/a/s-0000000001"),
    )

    written = writes.write(script.server.tree, ME, multi(*parts), now_ms=7)

    zxid = written.tree.zxid
    first, child, second, *others = written.znodes
    assert first is not None
    assert child is not None
    assert second is not None
    assert others == [None, None]
    assert (first.data, first.version, len(first.children)) == (b"1", 1, 1)
    assert (second.data, second.version, len(second.children)) == (b"22", 2, 2)
    assert {znode.mzxid for znode in (first, child, second)} == {zxid}
    assert child.czxid == zxid == second.pzxid != first.pzxid


@pytest.mark.parametrize("operation", [multi(Create("/n"), Create("/n")), Create("/n")])
def test_only_a_multi_that_succeeds_gives_znodes(operation: Multi | Create) -> None:
    """Of a failed multi, and of a single write, the tree alone says how znodes are."""
    assert writes.write(small_tree().server.tree, ME, operation).znodes == ()
