"""What a write does to zxids, Stats, sequence numbers and data."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from model.answers import Stat
from model.operations import (
    ADMIN,
    OPEN,
    READ,
    Acl,
    AddWatch,
    Check,
    Create,
    Delete,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    GetEphemerals,
    Multi,
    Operation,
    RemoveWatches,
    SetAcl,
    SetData,
    Sync,
)
from model.zookeeper import machine
from tests.zookeeper_story import ME, OK, OTHER, Story, error_of

# --- zxids -----------------------------------------------------------------------------

TAKES_A_ZXID = [
    ("create", Create("/new"), OK),
    ("create that fails", Create("/a"), "NodeExists"),
    ("create with a bad path", Create("foo"), "BadArguments"),
    ("create with a bad ACL", Create("/new", acl=()), "InvalidACL"),
    ("delete", Delete("/leaf"), OK),
    ("delete that fails", Delete("/a", version=7), "BadVersion"),
    ("set", SetData("/a", b"x"), OK),
    ("set to what is there already", SetData("/a", b"1"), OK),
    ("set that fails", SetData("/nope", b"x"), "NoNode"),
    ("set of the ACL", SetAcl("/a", OPEN), OK),
    ("set of the ACL that fails", SetAcl("/a", ()), "InvalidACL"),
    ("multi", Multi((Create("/m"), Create("/m/n"), Delete("/m/n"))), OK),
    ("multi that fails", Multi((Create("/m"), Check("/nope"))), "1: NoNode"),
    ("multi of nothing", Multi(()), OK),
    ("multi of checks alone", Multi((Check("/a"),)), OK),
]

TAKES_NONE = [
    ("exists", Exists("/a"), OK),
    ("exists of a missing znode", Exists("/nope"), OK),
    ("get", GetData("/a"), OK),
    ("get that fails", GetData("/nope"), "NoNode"),
    ("children", GetChildren("/"), OK),
    ("get of the ACL", GetAcl("/a"), OK),
    ("ephemerals", GetEphemerals("/"), OK),
    ("sync", Sync("/a"), OK),
    ("add watch", AddWatch("/a"), OK),
    ("removal of no watch", RemoveWatches("/a"), "NoWatcher"),
    ("check outside of a multi", Check("/a"), "Unimplemented"),
]


def small_tree() -> Story:
    story = Story()
    story.create("/a", b"1")
    story.create("/a/child", b"c")
    story.create("/leaf")
    return story


@pytest.mark.parametrize(
    ("operation", "outcome"),
    [row[1:] for row in TAKES_A_ZXID],
    ids=[row[0] for row in TAKES_A_ZXID],
)
def test_every_write_takes_one_zxid(operation: Operation[Any], outcome: str) -> None:
    """Whatever asks for a change takes exactly one zxid, also when it fails."""
    story = small_tree()
    before = story.zxid

    answer = story.ask(operation)

    assert (error_of(answer), story.zxid) == (outcome, before + 1)


@pytest.mark.parametrize(
    ("operation", "outcome"), [row[1:] for row in TAKES_NONE], ids=[row[0] for row in TAKES_NONE]
)
def test_no_read_takes_a_zxid(operation: Operation[Any], outcome: str) -> None:
    """Reads, sync and watches take no zxid and leave the tree as it is."""
    story = small_tree()
    before = story.service.tree

    answer = story.ask(operation)

    assert error_of(answer) == outcome
    assert story.service.tree is before


def test_a_session_takes_one_zxid_to_open_and_one_to_close() -> None:
    """Opening a session takes a zxid; closing takes one, however many ephemerals go."""
    story = Story(sessions=())

    story.open(ME)
    assert story.zxid == 1
    for name in "abc":
        story.create(f"/{name}", ephemeral=True)
    story.close(ME)

    assert story.zxid == 5


def test_the_end_of_no_session_takes_no_zxid() -> None:
    """Closing a session that is not there does nothing at all."""
    story = small_tree()
    before = story.service

    assert story.close(99) == ()
    assert story.service.tree is before.tree


def test_a_write_of_a_dead_session_takes_no_zxid() -> None:
    """What a session that has ended asks for fails and leaves no trace."""
    story = small_tree()
    story.close(OTHER)
    before = story.service.tree

    assert error_of(story.ask(Create("/new"), by=OTHER)) == "SessionExpired"
    assert error_of(story.ask(GetData("/a"), by=OTHER)) == "SessionExpired"
    assert story.service.tree is before


def test_a_failed_write_changes_nothing_but_the_zxid() -> None:
    """After a write that failed every Stat is what it was before."""
    story = small_tree()
    before = story.service.tree

    for _, operation, outcome in TAKES_A_ZXID:
        if outcome != OK:
            story.ask(operation)

    assert story.service.tree.nodes is before.nodes


# --- Stats -----------------------------------------------------------------------------

ZXID, NOW = "zxid", "now"
"""In the tables: the zxid of the operation, and its time."""

Fields = dict[str, int | str]
NEW: Fields = {"czxid": ZXID, "mzxid": ZXID, "pzxid": ZXID, "ctime": NOW, "mtime": NOW}
ONE_MORE: Fields = {"cversion": +1, "num_children": +1, "pzxid": ZXID}
ONE_LESS: Fields = {"cversion": +1, "num_children": -1, "pzxid": ZXID}

STAT_RULES: list[tuple[str, Operation[Any], str, Fields | None, Fields]] = [
    # what is done, to which znode, what changes of it, what changes of its parent
    ("create", Create("/p/new", b"12"), "/p/new", {**NEW, "data_length": 2}, ONE_MORE),
    ("create without data", Create("/p/new"), "/p/new", NEW, ONE_MORE),
    (
        "create an ephemeral",
        Create("/p/new", ephemeral=True),
        "/p/new",
        {**NEW, "ephemeral_owner": ME},
        ONE_MORE,
    ),
    ("delete", Delete("/p/n/leaf"), "/p/n/leaf", None, ONE_LESS),
    (
        "set",
        SetData("/p/n", b"12345"),
        "/p/n",
        {"version": +1, "mzxid": ZXID, "mtime": NOW, "data_length": +2},
        {},
    ),
    (
        "set to what is there",
        SetData("/p/n", b"123"),
        "/p/n",
        {"version": +1, "mzxid": ZXID, "mtime": NOW},
        {},
    ),
    (
        "set to nothing",
        SetData("/p/n", None),
        "/p/n",
        {"version": +1, "mzxid": ZXID, "mtime": NOW, "data_length": -3},
        {},
    ),
    ("set the ACL", SetAcl("/p/n", (Acl(READ | ADMIN),)), "/p/n", {"aversion": +1}, {}),
    ("create a grandchild", Create("/p/n/new"), "/p/n", ONE_MORE, {}),
    ("delete a grandchild", Delete("/p/n/leaf"), "/p/n", ONE_LESS, {}),
    ("fail to set", SetData("/p/n", b"", version=9), "/p/n", {}, {}),
    ("fail to create", Create("/p/n"), "/p/n", {}, {}),
    ("fail to delete", Delete("/p/n"), "/p/n", {}, {}),
    ("check", Multi((Check("/p/n", 0),)), "/p/n", {}, {}),
    ("read", GetData("/p/n"), "/p/n", {}, {}),
]

BLANK = Stat(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def changed(before: Stat, fields: Fields, moment: dict[str, int]) -> Stat:
    """A Stat with some fields moved on, or set to the zxid or the time of the moment."""
    values = {
        name: moment[by] if isinstance(by, str) else getattr(before, name) + by
        for name, by in fields.items()
    }
    return replace(before, **values)


@pytest.mark.parametrize(
    ("operation", "path", "own", "of_parent"),
    [row[1:] for row in STAT_RULES],
    ids=[row[0] for row in STAT_RULES],
)
def test_stat_after_each_operation(
    operation: Operation[Any], path: str, own: Fields | None, of_parent: Fields
) -> None:
    """Each operation moves the fields its row names, of a znode and its parent, and no other."""
    story = Story()
    story.create("/p")
    story.create("/p/n", b"123")
    story.create("/p/n/leaf")
    parent = path.rpartition("/")[0]
    before = story.stat(path) if story.is_there(path) else BLANK
    before_of_parent = story.stat(parent)
    root_before = story.stat("/")

    story.ask(operation)
    moment = {ZXID: story.zxid, NOW: story.clock_ms}

    if own is None:
        assert not story.is_there(path)
    else:
        assert story.stat(path) == changed(before, own, moment)
    assert story.stat(parent) == changed(before_of_parent, of_parent, moment)
    assert story.stat("/") == root_before


def test_the_stat_of_a_fresh_root() -> None:
    """The root of a fresh server has zxids 0 and a cversion of -1, and one child."""
    story = Story(sessions=(ME,))

    assert story.stat("/") == replace(BLANK, cversion=-1, num_children=1)
    assert story.children("/") == ("zookeeper",)
    assert set(story.children("/zookeeper")) == {"config", "quota"}
    assert story.stat("/zookeeper").cversion == -2


def test_the_stat_of_the_configuration_znode() -> None:
    """/zookeeper/config has an aversion of -1, as its ACL was set without a version."""
    assert Story().stat("/zookeeper/config").aversion == -1


def test_root_counts_its_changes_from_minus_one() -> None:
    """The cversion of the root is -1 plus the creations and deletions of its children."""
    story = Story()

    story.create("/a")
    story.create("/b")
    story.delete("/a")

    assert story.stat("/").cversion == -1 + 3


def test_the_end_of_a_session_counts_each_ephemeral() -> None:
    """A parent's cversion grows by one for each ephemeral that goes, all with one zxid."""
    story = Story()
    story.create("/p")
    for name in "xyz":
        story.create(f"/p/{name}", by=OTHER, ephemeral=True)
    before = story.stat("/p")

    story.close(OTHER)

    after = story.stat("/p")
    assert after == replace(
        before, cversion=before.cversion + 3, num_children=0, pzxid=story.zxid
    )


def test_all_that_a_multi_touches_carries_its_one_zxid() -> None:
    """The operations of a multi change Stats as they would alone, under one zxid."""
    story = Story()
    story.create("/p")

    story.must(Multi((Create("/p/a"), SetData("/p", b"x"), Create("/p/b"), Delete("/p/a"))))

    p, b = story.stat("/p"), story.stat("/p/b")
    assert {p.mzxid, p.pzxid, b.czxid, b.mzxid, b.pzxid} == {story.zxid}
    assert (p.version, p.cversion, p.num_children) == (1, 3, 1)


def test_a_set_inside_a_multi_is_answered_with_the_version_at_that_point() -> None:
    """What a multi answers for a set does not count the sets that come after it."""
    story = Story()
    story.create("/a")

    answer = story.must(Multi((SetData("/a", b"1"), SetData("/a", b"2"))))

    assert answer == (1, 2)


@pytest.mark.parametrize("data", [None, b"", b"x", b"\0" * 1000])
def test_data_comes_back_as_it_was_written(data: bytes | None) -> None:
    """Data is kept as it is; none at all is not the same as an empty string."""
    story = Story()
    story.create("/by-create", data)
    story.create("/by-set", b"before")
    story.set("/by-set", data)

    assert (story.data("/by-create"), story.data("/by-set")) == (data, data)
    assert story.stat("/by-set").data_length == len(data or b"")


def test_only_its_own_session_sees_an_ephemeral_as_its_own() -> None:
    """`mine` is said to the session that owns an ephemeral and to nobody else."""
    story = Story()
    story.create("/e", by=OTHER, ephemeral=True)
    story.create("/plain", by=OTHER)

    assert [story.ask(GetData("/e"), by=who).mine for who in (ME, OTHER)] == [False, True]
    assert story.ask(GetData("/plain"), by=OTHER).mine is False
    assert story.stat("/e").ephemeral_owner == OTHER


# --- sequential names ------------------------------------------------------------------


def sequential(story: Story, path: str = "/p/s-", **options: Any) -> str:
    return story.create(path, sequential=True, **options)


def test_the_suffix_is_ten_digits_of_the_children_ever_created() -> None:
    """A sequential znode gets the number of children that its parent had had before."""
    story = Story()
    story.create("/p")

    assert [sequential(story) for _ in range(3)] == [f"/p/s-000000000{n}" for n in range(3)]


def test_a_plain_create_in_the_same_parent_leaves_a_gap() -> None:
    """Every child counts, whatever its name."""
    story = Story()
    story.create("/p")

    names = [sequential(story), story.create("/p/plain"), sequential(story, "/p/other-")]

    assert names == ["/p/s-0000000000", "/p/plain", "/p/other-0000000002"]


def test_deletions_do_not_count() -> None:
    """The suffix is no function of the visible cversion: two creates and a delete make 2."""
    story = Story()
    story.create("/p")
    sequential(story)
    story.delete(sequential(story))

    assert story.stat("/p").cversion == 3
    assert sequential(story) == "/p/s-0000000002"


def test_children_of_children_do_not_count() -> None:
    """A grandchild leaves the number as it is."""
    story = Story()
    story.create("/p")
    story.create("/p/c")
    story.create("/p/c/grandchild")

    assert sequential(story) == "/p/s-0000000001"


@pytest.mark.parametrize(
    "failing",
    [
        Create("/p/there"),
        Create("/p/bad", acl=()),
        Create("/p/.."),
        Multi((Create("/p/s-", sequential=True), Create("/p/s-", sequential=True), Check("/no"))),
    ],
    ids=["exists", "bad ACL", "bad path", "multi"],
)
def test_what_fails_does_not_count(failing: Operation[Any]) -> None:
    """A failed create, and every create of a failed multi, leaves the number as it was."""
    story = Story()
    story.create("/p")
    story.create("/p/there")

    assert error_of(story.ask(failing)) != OK
    assert sequential(story) == "/p/s-0000000001"


def test_the_number_grows_within_a_multi() -> None:
    """Two sequential creates of one multi get two numbers."""
    story = Story()
    story.create("/p")
    create = Create("/p/s-", sequential=True)

    assert story.must(Multi((create, create))) == ("/p/s-0000000000", "/p/s-0000000001")


def test_a_parent_made_anew_begins_at_zero() -> None:
    """When the parent was deleted and created again, names come again."""
    story = Story()
    story.create("/p")
    first = sequential(story)
    story.delete(first)
    story.delete("/p")
    story.create("/p")

    assert sequential(story) == first


@pytest.mark.parametrize(
    ("path", "created"),
    [("/p/", "/p/0000000000"), ("/", "/0000000001"), ("/p/.", "/p/.0000000000")],
)
def test_a_sequential_name_may_be_nothing_but_its_number(path: str, created: str) -> None:
    """The path rules are applied to the name with its number, so an empty name will do."""
    story = Story()
    story.create("/p")

    assert story.create(path, sequential=True) == created


def test_sequential_ephemerals_are_both() -> None:
    """A znode may be sequential and ephemeral at once."""
    story = Story()
    story.create("/p")
    path = sequential(story, by=OTHER, ephemeral=True)

    assert story.stat(path).ephemeral_owner == OTHER
    assert story.close(OTHER) == (path,)


def after_creating(count: int) -> Story:
    """A story whose znode /p has had so many children, of which none is left."""
    story = Story()
    story.create("/p")
    tree = story.service.tree
    worn = replace(tree.nodes["/p"], created=count)
    story.service = machine.Service(replace(tree, nodes=tree.nodes.set("/p", worn)))
    return story


@pytest.mark.parametrize(
    ("count", "suffix"),
    [
        (9_999_999_99, "0999999999"),
        (1_000_000_000, "1000000000"),
        ((1 << 31) - 1, "2147483647"),
        (1 << 31, "-2147483648"),
        ((1 << 31) + 1, "-2147483647"),
    ],
)
def test_the_number_wraps_to_negative(count: int, suffix: str) -> None:
    """Java keeps the number in 32 bits: after 2147483647 comes -2147483648."""
    assert sequential(after_creating(count)) == f"/p/s-{suffix}"
