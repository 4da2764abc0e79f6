"""Sessions and their ephemerals, and services as values."""

from __future__ import annotations

import pytest

from tests.support.zookeeper.script import ME, OK, OTHER, THIRD, Script, error_of
from watchkeeper.model.actor.operations import (
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    GetEphemerals,
    Multi,
    RemoveWatches,
    SetData,
    Sync,
)
from watchkeeper.model.zookeeper import standalone
from watchkeeper.model.zookeeper.standalone import Server


def test_ephemerals_end_with_their_session_and_no_other() -> None:
    """Closing a session deletes its ephemerals, leaves plain znodes and others' ephemerals."""
    script = Script()
    script.create("/plain", by=OTHER)
    script.create("/mine", by=ME, ephemeral=True)
    script.create("/his", by=OTHER, ephemeral=True)
    script.create("/plain/his", by=OTHER, ephemeral=True)

    gone = script.close(OTHER)

    assert set(gone) == {"/his", "/plain/his"}
    assert script.paths() == {"/plain", "/mine"}


def test_an_ephemeral_that_was_deleted_belongs_to_a_client_that_creates_it_next() -> None:
    """The end of the first owner leaves alone what another has created at the same path."""
    script = Script()
    script.create("/e", by=OTHER, ephemeral=True)
    script.delete("/e", by=ME)
    script.create("/e", by=THIRD, ephemeral=True)

    assert script.close(OTHER) == ()
    assert script.is_there("/e")
    assert script.close(THIRD) == ("/e",)


def test_a_session_without_ephemerals_ends_too() -> None:
    """A session that owns nothing, or nothing any more, can be closed."""
    script = Script()
    script.create("/e", by=OTHER, ephemeral=True)
    script.delete("/e", by=OTHER)
    script.watch("persistent", "/", by=THIRD)

    assert (script.close(OTHER), script.close(ME)) == ((), ())
    assert script.heard(THIRD) == []


@pytest.mark.parametrize(
    "operation",
    [
        Create("/x"),
        Delete("/a"),
        SetData("/a", b""),
        Multi(()),
        Exists("/a", watch=True),
        GetData("/a", watch=True),
        GetChildren("/a"),
        GetEphemerals("/"),
        Sync("/a"),
        RemoveWatches("/a"),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_nothing_can_be_asked_in_a_session_that_has_ended(operation: object) -> None:
    """Every request of a dead session, read or write, fails and leaves no watch."""
    script = Script()
    script.create("/a")
    script.close(OTHER)

    assert error_of(script.ask(operation, by=OTHER)) == "SessionExpired"  # type: ignore[arg-type]
    script.set("/a", b"")
    assert script.heard(OTHER) == []


def test_a_session_sees_its_own_ephemerals_below_a_prefix() -> None:
    """GetEphemerals lists the session's own paths that begin with the prefix."""
    script = Script()
    for path in ("/a", "/ab", "/b"):
        script.create(path)
        script.create(f"{path}/e", by=OTHER, ephemeral=True)
    script.create("/a/mine", by=ME, ephemeral=True)

    def of(prefix: str, by: int) -> set[str]:
        return set(script.must(GetEphemerals(prefix), by=by))

    assert of("/", OTHER) == {"/a/e", "/ab/e", "/b/e"}
    assert of("/a", OTHER) == {"/a/e", "/ab/e"}
    assert of("/a/", OTHER) == {"/a/e"}
    assert of("/a/", ME) == {"/a/mine"}
    assert of("/", THIRD) == set()


def test_a_session_number_is_used_once() -> None:
    """To open a session that is open already is a mistake of the caller, and is reported."""
    with pytest.raises(AssertionError):
        Script().open(ME)


# --- values ----------------------------------------------------------------------------


def test_an_older_service_is_unchanged_by_what_comes_later() -> None:
    """A service is a value: a client that keeps one keeps the past."""
    script = Script()
    script.create("/a", b"old")
    script.create("/e", by=OTHER, ephemeral=True)
    script.watch("get", "/a")
    kept = script.server

    script.set("/a", b"new")
    script.create("/a/b")
    script.close(OTHER)
    script.drop_connection(ME)

    past = standalone.apply(kept, ME, GetData("/a")).answer
    assert (past.data, past.stat.num_children) == (b"old", 0)
    assert standalone.apply(kept, ME, Exists("/e")).answer is not None
    assert [who for who, _ in standalone.apply(kept, OTHER, SetData("/a", b"")).fired] == [ME]


def test_one_service_may_have_two_futures() -> None:
    """Two operations applied to the same value know nothing of one another."""
    script = Script()
    fork = script.server

    left = standalone.apply(fork, ME, Create("/left"))
    right = standalone.apply(fork, ME, Create("/right"))

    assert standalone.apply(left.server, ME, Exists("/right")).answer is None
    assert standalone.apply(right.server, ME, Exists("/left")).answer is None
    assert left.server.tree.zxid == right.server.tree.zxid == fork.tree.zxid + 1


def test_an_answer_does_not_depend_on_what_else_was_done_with_the_value() -> None:
    """Applying is a function: the same operation on the same value gives the same."""
    script = Script()
    script.create("/a")
    script.watch("children", "/", by=OTHER)
    operation = Multi((Create("/b-", sequential=True), SetData("/a", b"x")))

    first = standalone.apply(script.server, ME, operation, now_ms=7)
    standalone.apply(first.server, OTHER, Delete("/a"))
    second = standalone.apply(script.server, ME, operation, now_ms=7)

    assert (first.answer, first.fired) == (second.answer, second.fired)
    assert first.server == second.server


def test_a_read_without_a_watch_leaves_the_value_as_it_is() -> None:
    """A service that was only read is still equal to itself, and so is its past."""
    script = Script()
    script.create("/a")
    before = script.server

    for read in (Exists("/a"), GetData("/a"), GetChildren("/"), Sync("/a"), GetEphemerals("/")):
        assert error_of(script.ask(read)) == OK

    assert script.server == before


def test_a_fresh_service_is_made_anew_each_time() -> None:
    """Two fresh services are equal and empty, whatever has happened to a third."""
    Script().create("/a")

    assert Server() == Server()
    assert set(Server().tree.nodes) == {
        "/",
        "/zookeeper",
        "/zookeeper/quota",
        "/zookeeper/config",
    }
