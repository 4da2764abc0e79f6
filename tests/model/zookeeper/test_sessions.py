"""Sessions and their ephemerals, and services as values."""

from __future__ import annotations

import pytest

from model.operations import (
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
from model.zookeeper import machine
from model.zookeeper.machine import Service
from tests.zookeeper_story import ME, OK, OTHER, THIRD, Story, error_of


def test_ephemerals_end_with_their_session_and_no_other() -> None:
    """Closing a session deletes its ephemerals, leaves plain znodes and others' ephemerals."""
    story = Story()
    story.create("/plain", by=OTHER)
    story.create("/mine", by=ME, ephemeral=True)
    story.create("/his", by=OTHER, ephemeral=True)
    story.create("/plain/his", by=OTHER, ephemeral=True)

    gone = story.close(OTHER)

    assert set(gone) == {"/his", "/plain/his"}
    assert story.paths() == {"/plain", "/mine"}


def test_an_ephemeral_that_was_deleted_belongs_to_whoever_creates_it_next() -> None:
    """The end of the first owner leaves alone what another has created at the same path."""
    story = Story()
    story.create("/e", by=OTHER, ephemeral=True)
    story.delete("/e", by=ME)
    story.create("/e", by=THIRD, ephemeral=True)

    assert story.close(OTHER) == ()
    assert story.is_there("/e")
    assert story.close(THIRD) == ("/e",)


def test_a_session_without_ephemerals_ends_too() -> None:
    """A session that owns nothing, or nothing any more, can be closed."""
    story = Story()
    story.create("/e", by=OTHER, ephemeral=True)
    story.delete("/e", by=OTHER)
    story.watch("persistent", "/", by=THIRD)

    assert (story.close(OTHER), story.close(ME)) == ((), ())
    assert story.heard(THIRD) == []


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
    story = Story()
    story.create("/a")
    story.close(OTHER)

    assert error_of(story.ask(operation, by=OTHER)) == "SessionExpired"  # type: ignore[arg-type]
    story.set("/a", b"")
    assert story.heard(OTHER) == []


def test_a_session_sees_its_own_ephemerals_below_a_prefix() -> None:
    """GetEphemerals lists the asker's own paths that begin with the prefix, and nobody else's."""
    story = Story()
    for path in ("/a", "/ab", "/b"):
        story.create(path)
        story.create(f"{path}/e", by=OTHER, ephemeral=True)
    story.create("/a/mine", by=ME, ephemeral=True)

    def of(prefix: str, by: int) -> set[str]:
        return set(story.must(GetEphemerals(prefix), by=by))

    assert of("/", OTHER) == {"/a/e", "/ab/e", "/b/e"}
    assert of("/a", OTHER) == {"/a/e", "/ab/e"}
    assert of("/a/", OTHER) == {"/a/e"}
    assert of("/a/", ME) == {"/a/mine"}
    assert of("/", THIRD) == set()


def test_a_session_number_is_used_once() -> None:
    """To open a session that is open already is a mistake of the caller, and is told."""
    with pytest.raises(AssertionError):
        Story().open(ME)


# --- values ----------------------------------------------------------------------------


def test_an_older_service_is_unchanged_by_what_comes_later() -> None:
    """A service is a value: whoever keeps one keeps the past."""
    story = Story()
    story.create("/a", b"old")
    story.create("/e", by=OTHER, ephemeral=True)
    story.watch("get", "/a")
    kept = story.service

    story.set("/a", b"new")
    story.create("/a/b")
    story.close(OTHER)
    story.drop_connection(ME)

    past = machine.apply(kept, ME, GetData("/a")).answer
    assert (past.data, past.stat.num_children) == (b"old", 0)
    assert machine.apply(kept, ME, Exists("/e")).answer is not None
    assert [who for who, _ in machine.apply(kept, OTHER, SetData("/a", b"")).fired] == [ME]


def test_one_service_may_have_two_futures() -> None:
    """Two operations applied to the same value know nothing of one another."""
    story = Story()
    fork = story.service

    left = machine.apply(fork, ME, Create("/left"))
    right = machine.apply(fork, ME, Create("/right"))

    assert machine.apply(left.service, ME, Exists("/right")).answer is None
    assert machine.apply(right.service, ME, Exists("/left")).answer is None
    assert left.service.tree.zxid == right.service.tree.zxid == fork.tree.zxid + 1


def test_an_answer_does_not_depend_on_what_else_was_done_with_the_value() -> None:
    """Applying is a function: the same operation on the same value gives the same."""
    story = Story()
    story.create("/a")
    story.watch("children", "/", by=OTHER)
    operation = Multi((Create("/b-", sequential=True), SetData("/a", b"x")))

    first = machine.apply(story.service, ME, operation, now_ms=7)
    machine.apply(first.service, OTHER, Delete("/a"))
    second = machine.apply(story.service, ME, operation, now_ms=7)

    assert (first.answer, first.fired) == (second.answer, second.fired)
    assert first.service == second.service


def test_a_read_without_a_watch_leaves_the_value_as_it_is() -> None:
    """A service that was only read is still equal to itself, and so is its past."""
    story = Story()
    story.create("/a")
    before = story.service

    for read in (Exists("/a"), GetData("/a"), GetChildren("/"), Sync("/a"), GetEphemerals("/")):
        assert error_of(story.ask(read)) == OK

    assert story.service == before


def test_a_fresh_service_is_made_anew_each_time() -> None:
    """Two fresh services are equal and empty, whatever has happened to a third."""
    Story().create("/a")

    assert Service() == Service()
    assert set(Service().tree.nodes) == {
        "/",
        "/zookeeper",
        "/zookeeper/quota",
        "/zookeeper/config",
    }
