"""What a write does to zxids, Stats, sequence numbers and data."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.zookeeper.script import ME, OK, OTHER, Script, error_of
from watchkeeper.model.actor.events import Stat
from watchkeeper.model.actor.operations import (
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
from watchkeeper.model.zookeeper import standalone

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


def small_tree() -> Script:
    script = Script()
    script.create("/a", b"1")
    script.create("/a/child", b"c")
    script.create("/leaf")
    return script


@pytest.mark.parametrize(
    ("operation", "outcome"),
    [row[1:] for row in TAKES_A_ZXID],
    ids=[row[0] for row in TAKES_A_ZXID],
)
def test_every_write_takes_one_zxid(operation: Operation[Any], outcome: str) -> None:
    """Whatever asks for a change takes exactly one zxid, also when it fails."""
    script = small_tree()
    before = script.zxid

    answer = script.ask(operation)

    assert (error_of(answer), script.zxid) == (outcome, before + 1)


@pytest.mark.parametrize(
    ("operation", "outcome"), [row[1:] for row in TAKES_NONE], ids=[row[0] for row in TAKES_NONE]
)
def test_no_read_takes_a_zxid(operation: Operation[Any], outcome: str) -> None:
    """Reads, sync and watches take no zxid and leave the tree as it is."""
    script = small_tree()
    before = script.server.tree

    answer = script.ask(operation)

    assert error_of(answer) == outcome
    assert script.server.tree is before


def test_a_session_takes_one_zxid_to_open_and_one_to_close() -> None:
    """Opening a session takes a zxid; closing takes one, however many ephemerals go."""
    script = Script(sessions=())

    script.open(ME)
    assert script.zxid == 1
    for name in "abc":
        script.create(f"/{name}", ephemeral=True)
    script.close(ME)

    assert script.zxid == 5


def test_the_end_of_no_session_takes_no_zxid() -> None:
    """Closing a session that is not there does nothing at all."""
    script = small_tree()
    before = script.server

    assert script.close(99) == ()
    assert script.server.tree is before.tree


def test_a_write_of_a_dead_session_takes_no_zxid() -> None:
    """What a session that has ended asks for fails and leaves no trace."""
    script = small_tree()
    script.close(OTHER)
    before = script.server.tree

    assert error_of(script.ask(Create("/new"), by=OTHER)) == "SessionExpired"
    assert error_of(script.ask(GetData("/a"), by=OTHER)) == "SessionExpired"
    assert script.server.tree is before


def test_a_failed_write_changes_nothing_but_the_zxid() -> None:
    """After a write that failed every Stat is what it was before."""
    script = small_tree()
    before = script.server.tree

    for _, operation, outcome in TAKES_A_ZXID:
        if outcome != OK:
            script.ask(operation)

    assert script.server.tree.nodes is before.nodes


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
    script = Script()
    script.create("/p")
    script.create("/p/n", b"123")
    script.create("/p/n/leaf")
    parent = path.rpartition("/")[0]
    before = script.stat(path) if script.is_there(path) else BLANK
    before_of_parent = script.stat(parent)
    root_before = script.stat("/")

    script.ask(operation)
    moment = {ZXID: script.zxid, NOW: script.clock_ms}

    if own is None:
        assert not script.is_there(path)
    else:
        assert script.stat(path) == changed(before, own, moment)
    assert script.stat(parent) == changed(before_of_parent, of_parent, moment)
    assert script.stat("/") == root_before


def test_the_stat_of_a_fresh_root() -> None:
    """The root of a fresh server has zxids 0 and a cversion of -1, and one child."""
    script = Script(sessions=(ME,))

    assert script.stat("/") == replace(BLANK, cversion=-1, num_children=1)
    assert script.children("/") == ("zookeeper",)
    assert set(script.children("/zookeeper")) == {"config", "quota"}
    assert script.stat("/zookeeper").cversion == -2


def test_the_stat_of_the_configuration_znode() -> None:
    """/zookeeper/config has an aversion of -1, as its ACL was set without a version."""
    assert Script().stat("/zookeeper/config").aversion == -1


def test_root_counts_its_changes_from_minus_one() -> None:
    """The cversion of the root is -1 plus the creations and deletions of its children."""
    script = Script()

    script.create("/a")
    script.create("/b")
    script.delete("/a")

    assert script.stat("/").cversion == -1 + 3


def test_the_end_of_a_session_counts_each_ephemeral() -> None:
    """A parent's cversion grows by one for each ephemeral that goes, all with one zxid."""
    script = Script()
    script.create("/p")
    for name in "xyz":
        script.create(f"/p/{name}", by=OTHER, ephemeral=True)
    before = script.stat("/p")

    script.close(OTHER)

    after = script.stat("/p")
    assert after == replace(
        before, cversion=before.cversion + 3, num_children=0, pzxid=script.zxid
    )


def test_all_that_a_multi_touches_carries_its_one_zxid() -> None:
    """The operations of a multi change Stats as they would alone, under one zxid."""
    script = Script()
    script.create("/p")

    script.must(Multi((Create("/p/a"), SetData("/p", b"x"), Create("/p/b"), Delete("/p/a"))))

    p, b = script.stat("/p"), script.stat("/p/b")
    assert {p.mzxid, p.pzxid, b.czxid, b.mzxid, b.pzxid} == {script.zxid}
    assert (p.version, p.cversion, p.num_children) == (1, 3, 1)


def test_a_set_inside_a_multi_is_answered_with_the_version_at_that_point() -> None:
    """What a multi answers for a set does not count the sets that come after it."""
    script = Script()
    script.create("/a")

    answer = script.must(Multi((SetData("/a", b"1"), SetData("/a", b"2"))))

    assert answer == (1, 2)


@pytest.mark.parametrize("data", [None, b"", b"x", b"\0" * 1000])
def test_data_comes_back_as_it_was_written(data: bytes | None) -> None:
    """Data is kept as it is; none at all is not the same as an empty string."""
    script = Script()
    script.create("/by-create", data)
    script.create("/by-set", b"before")
    script.set("/by-set", data)

    assert (script.data("/by-create"), script.data("/by-set")) == (data, data)
    assert script.stat("/by-set").data_length == len(data or b"")


def test_only_its_own_session_sees_an_ephemeral_as_its_own() -> None:
    """`mine` is said to the session that owns an ephemeral and to no other client."""
    script = Script()
    script.create("/e", by=OTHER, ephemeral=True)
    script.create("/plain", by=OTHER)

    assert [script.ask(GetData("/e"), by=who).mine for who in (ME, OTHER)] == [False, True]
    assert script.ask(GetData("/plain"), by=OTHER).mine is False
    assert script.stat("/e").ephemeral_owner == OTHER


# --- sequential names ------------------------------------------------------------------


def sequential(script: Script, path: str = "/p/s-", **options: Any) -> str:
    return script.create(path, sequential=True, **options)


def test_the_suffix_is_ten_digits_of_the_children_ever_created() -> None:
    """A sequential znode gets the number of children that its parent had had before."""
    script = Script()
    script.create("/p")

    assert [sequential(script) for _ in range(3)] == [f"/p/s-000000000{n}" for n in range(3)]


def test_a_plain_create_in_the_same_parent_leaves_a_gap() -> None:
    """Every child counts, whatever its name."""
    script = Script()
    script.create("/p")

    names = [sequential(script), script.create("/p/plain"), sequential(script, "/p/other-")]

    assert names == ["/p/s-0000000000", "/p/plain", "/p/other-0000000002"]


def test_deletions_do_not_count() -> None:
    """The suffix is no function of the visible cversion: two creates and a delete make 2."""
    script = Script()
    script.create("/p")
    sequential(script)
    script.delete(sequential(script))

    assert script.stat("/p").cversion == 3
    assert sequential(script) == "/p/s-0000000002"


def test_children_of_children_do_not_count() -> None:
    """A grandchild leaves the number as it is."""
    script = Script()
    script.create("/p")
    script.create("/p/c")
    script.create("/p/c/grandchild")

    assert sequential(script) == "/p/s-0000000001"


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
    script = Script()
    script.create("/p")
    script.create("/p/there")

    assert error_of(script.ask(failing)) != OK
    assert sequential(script) == "/p/s-0000000001"


def test_the_number_grows_within_a_multi() -> None:
    """Two sequential creates of one multi get two numbers."""
    script = Script()
    script.create("/p")
    create = Create("/p/s-", sequential=True)

    assert script.must(Multi((create, create))) == ("/p/s-0000000000", "/p/s-0000000001")


def test_a_parent_made_anew_begins_at_zero() -> None:
    """When the parent was deleted and created again, names come again."""
    script = Script()
    script.create("/p")
    first = sequential(script)
    script.delete(first)
    script.delete("/p")
    script.create("/p")

    assert sequential(script) == first


@pytest.mark.parametrize(
    ("path", "created"),
    [("/p/", "/p/0000000000"), ("/", "/0000000001"), ("/p/.", "/p/.0000000000")],
)
def test_a_sequential_name_may_be_nothing_but_its_number(path: str, created: str) -> None:
    """The path rules are applied to the name with its number, so an empty name will do."""
    script = Script()
    script.create("/p")

    assert script.create(path, sequential=True) == created


def test_sequential_ephemerals_are_both() -> None:
    """A znode may be sequential and ephemeral at once."""
    script = Script()
    script.create("/p")
    path = sequential(script, by=OTHER, ephemeral=True)

    assert script.stat(path).ephemeral_owner == OTHER
    assert script.close(OTHER) == (path,)


def after_creating(count: int) -> Script:
    """A script whose znode /p has had so many children, of which none is left."""
    script = Script()
    script.create("/p")
    tree = script.server.tree
    worn = replace(tree.nodes["/p"], created=count)
    script.server = standalone.Server(replace(tree, nodes=tree.nodes.set("/p", worn)))
    return script


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
