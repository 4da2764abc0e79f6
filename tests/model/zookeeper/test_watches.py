"""Which client gets which notifications, how often and in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.zookeeper.script import ME, OTHER, THIRD, Script
from watchkeeper.model.actor.operations import (
    ADMIN,
    CREATE,
    DELETE,
    OPEN,
    WRITE,
    Acl,
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    RemoveWatches,
    SetAcl,
    SetData,
)
from watchkeeper.model.zookeeper import standalone
from watchkeeper.model.zookeeper.tree import empty_tree
from watchkeeper.model.zookeeper.watches import Wanted, Watches
from watchkeeper.model.zookeeper.writes import write

UNREADABLE = (Acl(WRITE | CREATE | DELETE | ADMIN),)

# --- what fires what -------------------------------------------------------------------

NODE, PARENT, ABOVE, BESIDE = "/top/p/n", "/top/p", "/top", "/top/other"

DOES: dict[str, Operation[object]] = {
    "create": Create(NODE),
    "set": SetData(NODE, b"new"),
    "set the same": SetData(NODE, b"old"),
    "delete": Delete(NODE),
    "set ACL": SetAcl(NODE, OPEN),
    "create child": Create(f"{NODE}/c"),
    "delete child": Delete(f"{NODE}/c"),
    "fail to create": Create(NODE),
    "fail to set": SetData(NODE, b"", version=9),
    "fail to delete": Delete(NODE, version=9),
    "failed multi": Multi((SetData(NODE, b"new"), Create(f"{NODE}/d"), Check("/nope"))),
    "check": Multi((Check(NODE),)),
    "multi": Multi((SetData(NODE, b"new"),)),
}

CREATED, DELETED, CHANGED = f"created {NODE}", f"deleted {NODE}", f"changed {NODE}"
CHILD_OF_PARENT, CHILD = f"children changed {PARENT}", f"children changed {NODE}"
CHILD_CREATED, CHILD_DELETED = f"created {NODE}/c", f"deleted {NODE}/c"

WATCHES = (
    ("get", NODE),
    ("exists", NODE),
    ("children", NODE),
    ("children", PARENT),
    ("persistent", NODE),
    ("persistent", PARENT),
    ("recursive", NODE),
    ("recursive", PARENT),
    ("recursive", ABOVE),
    ("recursive", "/"),
)

NONE: tuple[str, ...] = ()
FIRES = {
    # the operation: what each of the watches above hears of it
    "create": (
        *("-", CREATED),  # get leaves nothing where there is no znode
        *("-", CHILD_OF_PARENT),
        *(CREATED, CHILD_OF_PARENT),
        *(CREATED, CREATED, CREATED, CREATED),
    ),
    "set": (
        *(CHANGED, CHANGED),
        *("-", "-"),
        *(CHANGED, "-"),
        *(CHANGED, CHANGED, CHANGED, CHANGED),
    ),
    "set the same": (
        *(CHANGED, CHANGED),
        *("-", "-"),
        *(CHANGED, "-"),
        *(CHANGED, CHANGED, CHANGED, CHANGED),
    ),
    "multi": (
        *(CHANGED, CHANGED),
        *("-", "-"),
        *(CHANGED, "-"),
        *(CHANGED, CHANGED, CHANGED, CHANGED),
    ),
    "delete": (
        *(DELETED, DELETED),
        *(DELETED, CHILD_OF_PARENT),
        *(DELETED, CHILD_OF_PARENT),
        *(DELETED, DELETED, DELETED, DELETED),
    ),
    "create child": (
        *("-", "-"),
        *(CHILD, "-"),
        *(CHILD, "-"),
        *(CHILD_CREATED, CHILD_CREATED, CHILD_CREATED, CHILD_CREATED),
    ),
    "delete child": (
        *("-", "-"),
        *(CHILD, "-"),
        *(CHILD, "-"),
        *(CHILD_DELETED, CHILD_DELETED, CHILD_DELETED, CHILD_DELETED),
    ),
    "set ACL": ("-",) * 10,
    "fail to create": ("-",) * 10,
    "fail to set": ("-",) * 10,
    "fail to delete": ("-",) * 10,
    "failed multi": ("-",) * 10,
    "check": ("-",) * 10,
}

assert set(FIRES) == set(DOES)


def before(doing: str) -> Script:
    """A tree in which the operation does what its name says."""
    script = Script()
    script.create(ABOVE)
    script.create(PARENT)
    script.create(BESIDE)
    if doing != "create":
        script.create(NODE, b"old")
    if doing == "delete child":
        script.create(f"{NODE}/c")
    return script


@pytest.mark.parametrize("doing", FIRES)
@pytest.mark.parametrize("place", range(len(WATCHES)), ids=[" ".join(watch) for watch in WATCHES])
def test_what_fires_what(doing: str, place: int) -> None:
    """Each kind of watch, on the znode, its parent or above, hears what the table says."""
    kind, path = WATCHES[place]
    script = before(doing)
    script.watch(kind, path, by=OTHER)

    script.ask(DOES[doing], by=ME)

    expected = FIRES[doing][place]
    assert script.heard(OTHER) == ([] if expected == "-" else [expected])
    assert script.heard(ME) == [], "no other client is notified"


@pytest.mark.parametrize("doing", FIRES)
@pytest.mark.parametrize("kind", ["get", "exists", "children", "persistent", "recursive"])
def test_a_watch_beside_hears_nothing(doing: str, kind: str) -> None:
    """A watch on a sibling is no concern of anything that happens here."""
    script = before(doing)
    script.watch(kind, BESIDE)

    script.ask(DOES[doing])

    assert script.heard() == []


def test_the_end_of_a_session_fires_as_deletions_do() -> None:
    """Others hear of each ephemeral that goes, then of its parent."""
    script = Script()
    script.create("/p")
    script.create("/p/e", by=OTHER, ephemeral=True)
    script.watch("get", "/p/e")
    script.watch("children", "/p")

    script.close(OTHER)

    assert script.heard() == ["deleted /p/e", "children changed /p"]


def test_a_client_that_closes_its_session_hears_of_its_own_ephemerals() -> None:
    """The events of a session's end reach its own watches, and then the watches are gone."""
    script = Script()
    script.create("/e", by=OTHER, ephemeral=True)
    script.watch("exists", "/e", by=OTHER)
    script.watch("persistent", "/", by=OTHER)

    script.close(OTHER)

    assert script.heard(OTHER) == ["deleted /e", "children changed /"]
    script.create("/later")
    assert script.heard(OTHER) == []


# --- what leaves a watch ---------------------------------------------------------------


@pytest.mark.parametrize("path", ["/missing", "/missing/below"])
def test_exists_leaves_a_watch_where_there_is_no_znode(path: str) -> None:
    """Exists on a missing znode, even under a missing parent, hears when it comes."""
    script = Script()
    script.watch("exists", path)

    script.create("/missing")
    script.create("/missing/below")

    assert script.heard() == [f"created {path}"]


@pytest.mark.parametrize("kind", ["get", "children"])
def test_a_read_that_fails_leaves_no_watch(kind: str) -> None:
    """Get and children of a missing znode leave nothing that could fire."""
    script = Script()
    script.watch(kind, "/missing")

    script.create("/missing")
    script.create("/missing/below")
    script.set("/missing", b"")

    assert script.heard() == []


@pytest.mark.parametrize("kind", ["get", "children"])
def test_a_read_that_is_not_allowed_leaves_no_watch(kind: str) -> None:
    """What is refused for want of a right leaves nothing that could fire."""
    script = Script()
    script.create("/a", acl=UNREADABLE)
    script.watch(kind, "/a")
    script.must(SetAcl("/a", OPEN))

    script.set("/a", b"")
    script.create("/a/b")

    assert script.heard() == []


def test_reads_that_ask_for_no_watch_leave_none() -> None:
    """Without `watch`, nothing is heard."""
    script = Script()
    script.create("/a")
    for read in (Exists("/a"), GetData("/a"), GetChildren("/a")):
        script.must(read)

    script.create("/a/b")
    script.set("/a", b"")

    assert script.heard() == []


# --- how often -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["get", "exists", "children"])
def test_a_watch_fires_once(kind: str) -> None:
    """Data and child watches are used up by the first event."""
    script = Script()
    script.create("/a")
    script.watch(kind, "/a")
    for _ in range(2):
        script.set("/a", b"")
        script.create("/a/s-", sequential=True)

    assert len(script.heard()) == 1


def test_a_watch_that_is_left_again_fires_again() -> None:
    """After an event the next one comes only to a client that has looked again."""
    script = Script()
    script.create("/a")
    for _ in range(3):
        script.watch("get", "/a")
        script.set("/a", b"")

    assert script.heard() == ["changed /a"] * 3


def test_many_watches_of_one_client_on_one_znode_are_one() -> None:
    """Exists and get, however often, leave one watch: one event comes."""
    script = Script()
    script.create("/a")
    for kind in ("exists", "get", "get", "exists"):
        script.watch(kind, "/a")

    script.set("/a", b"")
    script.set("/a", b"")

    assert script.heard() == ["changed /a"]


def test_a_deletion_is_heard_once_although_data_and_children_are_watched() -> None:
    """Data and child watch on one znode make one DELETED, and both are used up."""
    script = Script()
    script.create("/a")
    script.watch("get", "/a")
    script.watch("children", "/a")

    script.delete("/a")
    assert script.heard() == ["deleted /a"]
    script.create("/a")
    script.create("/a/b")
    script.delete("/a/b")
    script.delete("/a")

    assert script.heard() == []


@pytest.mark.parametrize(
    ("doing", "expected"),
    [("set", [CHANGED]), ("delete", [DELETED]), ("create child", [CHILD_CREATED, CHILD])],
)
def test_standard_persistent_and_recursive_make_one_event(
    doing: str, expected: list[str]
) -> None:
    """However many kinds of watch one client has at a path, it hears of each change once."""
    script = before(doing)
    for kind in ("get", "exists", "children", "persistent", "recursive"):
        script.watch(kind, NODE)

    script.ask(DOES[doing], by=OTHER)

    assert script.heard() == expected


@pytest.mark.parametrize("kind", ["persistent", "recursive"])
def test_a_persistent_watch_outlives_its_znode(kind: str) -> None:
    """A persistent watch goes on through deletion and creation of its znode."""
    script = Script()
    script.watch(kind, "/a")
    for _ in range(2):
        script.create("/a")
        script.set("/a", b"")
        script.delete("/a")

    assert script.heard() == ["created /a", "changed /a", "deleted /a"] * 2


def test_a_recursive_watch_does_not_take_a_longer_name_for_a_child() -> None:
    """A recursive watch on /a covers /a/b and not /ab."""
    script = Script()
    script.create("/a")
    script.watch("recursive", "/a")

    script.create("/ab")
    script.create("/a/b")

    assert script.heard() == ["created /a/b"]


# --- in which order --------------------------------------------------------------------


def test_a_client_hears_of_the_znode_before_its_parent() -> None:
    """The event of a znode comes before the event of its parent's children."""
    script = Script()
    script.create("/p")
    script.watch("exists", "/p/n")
    script.watch("children", "/p")
    script.create("/p/n")
    assert script.heard() == ["created /p/n", "children changed /p"]

    script.watch("get", "/p/n")
    script.watch("children", "/p")
    script.delete("/p/n")
    assert script.heard() == ["deleted /p/n", "children changed /p"]


def test_the_events_of_a_multi_come_in_the_order_of_its_operations() -> None:
    """A multi fires for each of its operations in turn, each one-shot watch at most once."""
    script = Script()
    script.create("/p")
    script.create("/p/a")
    for kind, path in (("get", "/p/a"), ("exists", "/p/b"), ("children", "/p")):
        script.watch(kind, path)

    script.must(
        Multi((SetData("/p/a", b"1"), Create("/p/b"), SetData("/p/a", b"2"), Delete("/p/a")))
    )

    assert script.heard() == ["changed /p/a", "created /p/b", "children changed /p"]


def test_a_persistent_watch_hears_every_operation_of_a_multi() -> None:
    """What stays fires for each operation, also for a znode that comes and goes in one."""
    script = Script()
    script.watch("persistent", "/a")
    script.watch("recursive", "/")

    script.must(Multi((Create("/a"), SetData("/a", b""), Delete("/a"))))

    assert script.heard() == ["created /a", "changed /a", "deleted /a"]


def test_every_watching_client_is_notified() -> None:
    """One change fires the watches of all clients."""
    script = Script()
    script.create("/a")
    for session in (ME, OTHER, THIRD):
        script.watch("get", "/a", by=session)

    script.set("/a", b"", by=ME)

    assert [script.heard(session) for session in (ME, OTHER, THIRD)] == [["changed /a"]] * 3


def test_a_child_watch_on_the_root_hears_of_its_children() -> None:
    """The root is a parent like any other."""
    script = Script()
    script.watch("children", "/")

    script.create("/a")

    assert script.heard() == ["children changed /"]


# --- rights ----------------------------------------------------------------------------


@pytest.mark.parametrize("doing", ["set", "delete", "create child"])
def test_a_client_that_may_not_read_the_znode_now_is_not_told(doing: str) -> None:
    """No event is sent of a znode that the watcher has no right to read at that moment."""
    script = before(doing)
    for kind in ("get", "children"):
        script.watch(kind, NODE)
    script.must(SetAcl(NODE, UNREADABLE))

    script.ask(DOES[doing], by=OTHER)

    assert script.heard() == []


# --- the end of watches ----------------------------------------------------------------


def test_a_broken_connection_takes_its_watches_with_it() -> None:
    """When a connection breaks every watch left over it is gone, and no ephemeral is."""
    script = Script()
    script.create("/a")
    script.create("/e", ephemeral=True)
    for kind in ("get", "children", "persistent", "recursive"):
        script.watch(kind, "/a")
    script.watch("get", "/a", by=OTHER)

    script.drop_connection(ME)
    script.set("/a", b"")
    script.delete("/a")

    assert script.heard(ME) == []
    assert script.heard(OTHER) == ["changed /a"]
    assert script.is_there("/e")


def test_removed_watches_do_not_fire() -> None:
    """A client may take back all it left at a path; another's watches stay."""
    script = Script()
    script.create("/a")
    for kind in ("get", "children", "persistent", "recursive"):
        script.watch(kind, "/a")
    script.watch("get", "/", by=ME)
    script.watch("get", "/a", by=OTHER)

    script.must(RemoveWatches("/a"))
    script.set("/a", b"")
    script.set("/", b"")

    assert script.heard(ME) == ["changed /"]
    assert script.heard(OTHER) == ["changed /a"]


def test_nothing_is_left_over_when_all_watches_have_gone() -> None:
    """A service whose watches have fired, been removed or dropped is equal to one without."""
    script = Script()
    script.create("/a")
    script.watch("get", "/a", by=ME)
    script.watch("children", "/a", by=OTHER)
    script.watch("recursive", "/a", by=THIRD)
    script.set("/a", b"")
    script.must(RemoveWatches("/a"), by=OTHER)
    script.drop_connection(THIRD)

    assert script.server.watches == standalone.Server().watches


# --- leaving watches again -------------------------------------------------------------


def away(wanted: Wanted) -> tuple[Script, int]:
    """A tree, and the zxid that a client had seen when it was cut off."""
    script = Script()
    for path in ("/still", "/changed", "/child-came", "/gone", "/again"):
        script.create(path, b"")
    seen = script.zxid
    script.drop_connection(ME)
    script.set("/changed", b"new", by=OTHER)
    script.create("/child-came/c", by=OTHER)
    script.delete("/gone", by=OTHER)
    script.delete("/again", by=OTHER)
    script.create("/again", by=OTHER)
    script.create("/came", by=OTHER)
    script.create("/came-and-gone", by=OTHER)
    script.delete("/came-and-gone", by=OTHER)
    return script, seen


LEFT_AGAIN = [
    # kind, path, what the client has missed, what it hears of the next change
    ("data", "/still", None, "changed /still"),
    ("data", "/changed", "changed /changed", None),
    ("data", "/child-came", None, "changed /child-came"),
    ("data", "/gone", "deleted /gone", None),
    ("data", "/again", "changed /again", None),
    ("exist", "/still", "created /still", None),
    ("exist", "/came", "created /came", None),
    ("exist", "/gone", None, "created /gone"),
    ("exist", "/came-and-gone", None, "created /came-and-gone"),
    ("child", "/still", None, "children changed /still"),
    ("child", "/changed", None, "children changed /changed"),
    ("child", "/child-came", "children changed /child-came", None),
    ("child", "/gone", "deleted /gone", None),
    ("child", "/again", "children changed /again", None),
]


@pytest.mark.parametrize(("kind", "path", "missed", "later"), LEFT_AGAIN)
def test_a_watch_that_is_left_again_tells_what_was_missed(
    kind: str, path: str, missed: str | None, later: str | None
) -> None:
    """A watch that is left again fires at once for what it missed, or else later."""
    wanted = Wanted(**{kind: (path,)})
    script, seen = away(wanted)

    assert script.leave_again(ME, wanted, since=seen) == ([missed] if missed else [])
    if script.is_there(path):
        script.set(path, b"later", by=OTHER)
        script.create(f"{path}/later", by=OTHER)
    else:
        script.create(path, by=OTHER)

    assert script.heard() == ([later] if later else [])


def test_what_the_client_has_seen_itself_is_not_told_again() -> None:
    """A change with the very zxid that the client saw last is no news."""
    script = Script()
    script.create("/a", b"")
    script.set("/a", b"seen")
    script.create("/a/b")
    wanted = Wanted(data=("/a",), child=("/a",))

    assert script.leave_again(ME, wanted, since=script.zxid) == []
    assert script.leave_again(OTHER, wanted, since=script.zxid - 1) == ["children changed /a"]
    assert script.leave_again(OTHER, wanted, since=script.zxid - 2) == [
        "changed /a",
        "children changed /a",
    ]


def test_what_was_missed_comes_list_by_list_and_is_not_merged() -> None:
    """Data watches are looked at first, then exists, then children; each tells for itself."""
    wanted = Wanted(
        child=("/gone", "/child-came"), exist=("/came",), data=("/gone", "/changed", "/still")
    )
    script, seen = away(wanted)

    assert script.leave_again(ME, wanted, since=seen) == [
        "deleted /gone",
        "changed /changed",
        "created /came",
        "deleted /gone",
        "children changed /child-came",
    ]


def test_watches_that_stay_are_left_again_without_a_word() -> None:
    """Persistent and recursive watches tell nothing of what was missed, but go on."""
    wanted = Wanted(persistent=("/changed",), recursive=("/gone",))
    script, seen = away(wanted)

    assert script.leave_again(ME, wanted, since=seen) == []
    script.set("/changed", b"", by=OTHER)
    script.create("/gone", by=OTHER)

    assert script.heard() == ["changed /changed", "created /gone"]


# --- many at once ----------------------------------------------------------------------

READS = st.builds(GetData, st.sampled_from(("/a", "/b", "/closed", "/missing")), st.booleans())


@given(st.lists(READS), st.lists(st.tuples(st.integers(1, 2), READS)))
def test_reads_of_data_at_once_are_the_reads_one_by_one(
    batch: list[GetData], before: list[tuple[int, GetData]]
) -> None:
    """A batch that is read at once answers, and leaves watches, as its reads one by one do."""
    tree = empty_tree()
    for path, acl in (("/a", OPEN), ("/b", OPEN), ("/closed", UNREADABLE)):
        tree = write(tree, 1, Create(path, path.encode(), acl=acl)).tree
    watches = Watches()
    for client, read in before:
        watches, _ = standalone.serve(tree, watches, client, client, read)
    one_by_one, expected = watches, []
    for read in batch:
        one_by_one, answer = standalone.serve(tree, one_by_one, 1, 1, read)
        expected.append(answer)
    at_once, answers = standalone.serve_data(tree, watches, 1, 1, batch)
    assert answers == expected
    assert at_once == one_by_one
    assert at_once.drop_client(1) == one_by_one.drop_client(1)
