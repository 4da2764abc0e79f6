"""Who is told what, how often and in which order."""

from __future__ import annotations

import pytest

from model.operations import (
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
from model.zookeeper import machine
from model.zookeeper.watches import Wanted
from tests.zookeeper_story import ME, OTHER, THIRD, Story

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


def before(doing: str) -> Story:
    """A tree in which the operation does what its name says."""
    story = Story()
    story.create(ABOVE)
    story.create(PARENT)
    story.create(BESIDE)
    if doing != "create":
        story.create(NODE, b"old")
    if doing == "delete child":
        story.create(f"{NODE}/c")
    return story


@pytest.mark.parametrize("doing", FIRES)
@pytest.mark.parametrize("place", range(len(WATCHES)), ids=[" ".join(one) for one in WATCHES])
def test_what_fires_what(doing: str, place: int) -> None:
    """Each kind of watch, on the znode, its parent or above, hears what the table says."""
    kind, path = WATCHES[place]
    story = before(doing)
    story.watch(kind, path, by=OTHER)

    story.ask(DOES[doing], by=ME)

    expected = FIRES[doing][place]
    assert story.heard(OTHER) == ([] if expected == "-" else [expected])
    assert story.heard(ME) == [], "nobody else is told"


@pytest.mark.parametrize("doing", FIRES)
@pytest.mark.parametrize("kind", ["get", "exists", "children", "persistent", "recursive"])
def test_a_watch_beside_hears_nothing(doing: str, kind: str) -> None:
    """A watch on a sibling is no concern of anything that happens here."""
    story = before(doing)
    story.watch(kind, BESIDE)

    story.ask(DOES[doing])

    assert story.heard() == []


def test_the_end_of_a_session_fires_as_deletions_do() -> None:
    """Others hear of each ephemeral that goes, then of its parent."""
    story = Story()
    story.create("/p")
    story.create("/p/e", by=OTHER, ephemeral=True)
    story.watch("get", "/p/e")
    story.watch("children", "/p")

    story.close(OTHER)

    assert story.heard() == ["deleted /p/e", "children changed /p"]


def test_whoever_closes_its_session_hears_of_its_own_ephemerals() -> None:
    """The events of a session's end reach its own watches, and then the watches are gone."""
    story = Story()
    story.create("/e", by=OTHER, ephemeral=True)
    story.watch("exists", "/e", by=OTHER)
    story.watch("persistent", "/", by=OTHER)

    story.close(OTHER)

    assert story.heard(OTHER) == ["deleted /e", "children changed /"]
    story.create("/later")
    assert story.heard(OTHER) == []


# --- what leaves a watch ---------------------------------------------------------------


@pytest.mark.parametrize("path", ["/missing", "/missing/below"])
def test_exists_leaves_a_watch_where_there_is_no_znode(path: str) -> None:
    """Exists on a missing znode, even under a missing parent, hears when it comes."""
    story = Story()
    story.watch("exists", path)

    story.create("/missing")
    story.create("/missing/below")

    assert story.heard() == [f"created {path}"]


@pytest.mark.parametrize("kind", ["get", "children"])
def test_a_read_that_fails_leaves_no_watch(kind: str) -> None:
    """Get and children of a missing znode leave nothing that could fire."""
    story = Story()
    story.watch(kind, "/missing")

    story.create("/missing")
    story.create("/missing/below")
    story.set("/missing", b"")

    assert story.heard() == []


@pytest.mark.parametrize("kind", ["get", "children"])
def test_a_read_that_is_not_allowed_leaves_no_watch(kind: str) -> None:
    """What is refused for want of a right leaves nothing that could fire."""
    story = Story()
    story.create("/a", acl=UNREADABLE)
    story.watch(kind, "/a")
    story.must(SetAcl("/a", OPEN))

    story.set("/a", b"")
    story.create("/a/b")

    assert story.heard() == []


def test_reads_that_ask_for_no_watch_leave_none() -> None:
    """Without `watch`, nothing is heard."""
    story = Story()
    story.create("/a")
    for read in (Exists("/a"), GetData("/a"), GetChildren("/a")):
        story.must(read)

    story.create("/a/b")
    story.set("/a", b"")

    assert story.heard() == []


# --- how often -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["get", "exists", "children"])
def test_a_watch_fires_once(kind: str) -> None:
    """Data and child watches are used up by the first event."""
    story = Story()
    story.create("/a")
    story.watch(kind, "/a")
    for _ in range(2):
        story.set("/a", b"")
        story.create("/a/s-", sequential=True)

    assert len(story.heard()) == 1


def test_a_watch_that_is_left_again_fires_again() -> None:
    """After an event the next one comes only to whoever has looked again."""
    story = Story()
    story.create("/a")
    for _ in range(3):
        story.watch("get", "/a")
        story.set("/a", b"")

    assert story.heard() == ["changed /a"] * 3


def test_many_watches_of_one_client_on_one_znode_are_one() -> None:
    """Exists and get, however often, leave one watch: one event comes."""
    story = Story()
    story.create("/a")
    for kind in ("exists", "get", "get", "exists"):
        story.watch(kind, "/a")

    story.set("/a", b"")
    story.set("/a", b"")

    assert story.heard() == ["changed /a"]


def test_a_deletion_is_heard_once_although_data_and_children_are_watched() -> None:
    """Data and child watch on one znode make one DELETED, and both are used up."""
    story = Story()
    story.create("/a")
    story.watch("get", "/a")
    story.watch("children", "/a")

    story.delete("/a")
    assert story.heard() == ["deleted /a"]
    story.create("/a")
    story.create("/a/b")
    story.delete("/a/b")
    story.delete("/a")

    assert story.heard() == []


@pytest.mark.parametrize(
    ("doing", "expected"),
    [("set", [CHANGED]), ("delete", [DELETED]), ("create child", [CHILD_CREATED, CHILD])],
)
def test_standard_persistent_and_recursive_make_one_event(
    doing: str, expected: list[str]
) -> None:
    """However many kinds of watch one client has at a path, it hears of each change once."""
    story = before(doing)
    for kind in ("get", "exists", "children", "persistent", "recursive"):
        story.watch(kind, NODE)

    story.ask(DOES[doing], by=OTHER)

    assert story.heard() == expected


@pytest.mark.parametrize("kind", ["persistent", "recursive"])
def test_a_persistent_watch_outlives_its_znode(kind: str) -> None:
    """A persistent watch goes on through deletion and creation of its znode."""
    story = Story()
    story.watch(kind, "/a")
    for _ in range(2):
        story.create("/a")
        story.set("/a", b"")
        story.delete("/a")

    assert story.heard() == ["created /a", "changed /a", "deleted /a"] * 2


def test_a_recursive_watch_does_not_take_a_longer_name_for_a_child() -> None:
    """A recursive watch on /a covers /a/b and not /ab."""
    story = Story()
    story.create("/a")
    story.watch("recursive", "/a")

    story.create("/ab")
    story.create("/a/b")

    assert story.heard() == ["created /a/b"]


# --- in which order --------------------------------------------------------------------


def test_a_client_hears_of_the_znode_before_its_parent() -> None:
    """The event of a znode comes before the event of its parent's children."""
    story = Story()
    story.create("/p")
    story.watch("exists", "/p/n")
    story.watch("children", "/p")
    story.create("/p/n")
    assert story.heard() == ["created /p/n", "children changed /p"]

    story.watch("get", "/p/n")
    story.watch("children", "/p")
    story.delete("/p/n")
    assert story.heard() == ["deleted /p/n", "children changed /p"]


def test_the_events_of_a_multi_come_in_the_order_of_its_operations() -> None:
    """A multi fires for each of its operations in turn, each one-shot watch at most once."""
    story = Story()
    story.create("/p")
    story.create("/p/a")
    for kind, path in (("get", "/p/a"), ("exists", "/p/b"), ("children", "/p")):
        story.watch(kind, path)

    story.must(
        Multi((SetData("/p/a", b"1"), Create("/p/b"), SetData("/p/a", b"2"), Delete("/p/a")))
    )

    assert story.heard() == ["changed /p/a", "created /p/b", "children changed /p"]


def test_a_persistent_watch_hears_every_operation_of_a_multi() -> None:
    """What stays fires for each operation, also for a znode that comes and goes in one."""
    story = Story()
    story.watch("persistent", "/a")
    story.watch("recursive", "/")

    story.must(Multi((Create("/a"), SetData("/a", b""), Delete("/a"))))

    assert story.heard() == ["created /a", "changed /a", "deleted /a"]


def test_everybody_who_watches_is_told() -> None:
    """One change fires the watches of all clients."""
    story = Story()
    story.create("/a")
    for session in (ME, OTHER, THIRD):
        story.watch("get", "/a", by=session)

    story.set("/a", b"", by=ME)

    assert [story.heard(session) for session in (ME, OTHER, THIRD)] == [["changed /a"]] * 3


def test_a_child_watch_on_the_root_hears_of_its_children() -> None:
    """The root is a parent like any other."""
    story = Story()
    story.watch("children", "/")

    story.create("/a")

    assert story.heard() == ["children changed /"]


# --- rights ----------------------------------------------------------------------------


@pytest.mark.parametrize("doing", ["set", "delete", "create child"])
def test_whoever_may_not_read_the_znode_now_is_not_told(doing: str) -> None:
    """No event is sent of a znode that the watcher has no right to read at that moment."""
    story = before(doing)
    for kind in ("get", "children"):
        story.watch(kind, NODE)
    story.must(SetAcl(NODE, UNREADABLE))

    story.ask(DOES[doing], by=OTHER)

    assert story.heard() == []


# --- the end of watches ----------------------------------------------------------------


def test_a_broken_connection_takes_its_watches_with_it() -> None:
    """When a connection breaks every watch left over it is gone, and no ephemeral is."""
    story = Story()
    story.create("/a")
    story.create("/e", ephemeral=True)
    for kind in ("get", "children", "persistent", "recursive"):
        story.watch(kind, "/a")
    story.watch("get", "/a", by=OTHER)

    story.drop_connection(ME)
    story.set("/a", b"")
    story.delete("/a")

    assert story.heard(ME) == []
    assert story.heard(OTHER) == ["changed /a"]
    assert story.is_there("/e")


def test_removed_watches_do_not_fire() -> None:
    """A client may take back all it left at a path; another's watches stay."""
    story = Story()
    story.create("/a")
    for kind in ("get", "children", "persistent", "recursive"):
        story.watch(kind, "/a")
    story.watch("get", "/", by=ME)
    story.watch("get", "/a", by=OTHER)

    story.must(RemoveWatches("/a"))
    story.set("/a", b"")
    story.set("/", b"")

    assert story.heard(ME) == ["changed /"]
    assert story.heard(OTHER) == ["changed /a"]


def test_nothing_is_left_over_when_all_watches_have_gone() -> None:
    """A service whose watches have fired, been removed or dropped is equal to one without."""
    story = Story()
    story.create("/a")
    story.watch("get", "/a", by=ME)
    story.watch("children", "/a", by=OTHER)
    story.watch("recursive", "/a", by=THIRD)
    story.set("/a", b"")
    story.must(RemoveWatches("/a"), by=OTHER)
    story.drop_connection(THIRD)

    assert story.service.watches == machine.Service().watches


# --- leaving watches again -------------------------------------------------------------


def away(wanted: Wanted) -> tuple[Story, int]:
    """A tree, and the zxid that a client had seen when it was cut off."""
    story = Story()
    for path in ("/still", "/changed", "/child-came", "/gone", "/again"):
        story.create(path, b"")
    seen = story.zxid
    story.drop_connection(ME)
    story.set("/changed", b"new", by=OTHER)
    story.create("/child-came/c", by=OTHER)
    story.delete("/gone", by=OTHER)
    story.delete("/again", by=OTHER)
    story.create("/again", by=OTHER)
    story.create("/came", by=OTHER)
    story.create("/came-and-gone", by=OTHER)
    story.delete("/came-and-gone", by=OTHER)
    return story, seen


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
    story, seen = away(wanted)

    assert story.leave_again(ME, wanted, since=seen) == ([missed] if missed else [])
    if story.is_there(path):
        story.set(path, b"later", by=OTHER)
        story.create(f"{path}/later", by=OTHER)
    else:
        story.create(path, by=OTHER)

    assert story.heard() == ([later] if later else [])


def test_what_the_client_has_seen_itself_is_not_told_again() -> None:
    """A change with the very zxid that the client saw last is no news."""
    story = Story()
    story.create("/a", b"")
    story.set("/a", b"seen")
    story.create("/a/b")
    wanted = Wanted(data=("/a",), child=("/a",))

    assert story.leave_again(ME, wanted, since=story.zxid) == []
    assert story.leave_again(OTHER, wanted, since=story.zxid - 1) == ["children changed /a"]
    assert story.leave_again(OTHER, wanted, since=story.zxid - 2) == [
        "changed /a",
        "children changed /a",
    ]


def test_what_was_missed_comes_list_by_list_and_is_not_merged() -> None:
    """Data watches are looked at first, then exists, then children; each tells for itself."""
    wanted = Wanted(
        child=("/gone", "/child-came"), exist=("/came",), data=("/gone", "/changed", "/still")
    )
    story, seen = away(wanted)

    assert story.leave_again(ME, wanted, since=seen) == [
        "deleted /gone",
        "changed /changed",
        "created /came",
        "deleted /gone",
        "children changed /child-came",
    ]


def test_watches_that_stay_are_left_again_without_a_word() -> None:
    """Persistent and recursive watches tell nothing of what was missed, but go on."""
    wanted = Wanted(persistent=("/changed",), recursive=("/gone",))
    story, seen = away(wanted)

    assert story.leave_again(ME, wanted, since=seen) == []
    story.set("/changed", b"", by=OTHER)
    story.create("/gone", by=OTHER)

    assert story.heard() == ["changed /changed", "created /gone"]
