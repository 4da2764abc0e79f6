"""Which error is answered, and which of several: the first check that fails names it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.zookeeper.oracle import is_good
from tests.support.zookeeper.script import ME, OK, OTHER, Script, error_of
from watchkeeper.model.actor import errors
from watchkeeper.model.actor.errors import (
    ConnectionLoss,
    Failure,
    NoNode,
    TransactionFailed,
    ZooKeeperError,
)
from watchkeeper.model.actor.operations import (
    ADMIN,
    CREATE,
    DELETE,
    OPEN,
    READ,
    WRITE,
    Acl,
    Check,
    Create,
    Delete,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    Multi,
    Operation,
    SetAcl,
    SetData,
    Sync,
)
from watchkeeper.model.zookeeper import paths, standalone

ALL = READ | WRITE | CREATE | DELETE | ADMIN


def but(right: int) -> tuple[Acl, ...]:
    """Every right but one, for every user."""
    return (Acl(ALL & ~right),)


def tree_of_troubles() -> Script:
    """A tree with a znode for every reason to refuse something."""
    script = Script()
    script.create("/a", b"data")
    script.create("/a/child")
    script.create("/leaf")
    script.create("/eph", by=OTHER, ephemeral=True)
    for name, acl in (
        ("no-create", but(CREATE)),
        ("no-delete", but(DELETE)),
        ("no-write", but(WRITE)),
        ("no-admin", but(ADMIN)),
        ("no-read", but(READ)),
        ("admin-only", (Acl(ADMIN),)),
        ("write-only", (Acl(WRITE),)),
    ):
        script.create(f"/{name}", acl=OPEN)
        script.create(f"/{name}/child")
        script.must(SetAcl(f"/{name}", acl))
    script.must(SetAcl("/eph", OPEN))
    script.create("/eph-no-create", ephemeral=True, acl=but(CREATE))
    return script


def rows(*table: tuple[Operation[Any], str]) -> Any:
    """A table of operations and their outcomes as parameters of a test."""
    return pytest.mark.parametrize(
        ("operation", "outcome"), table, ids=[f"{row[0]}"[:70] for row in table]
    )


# --- create ----------------------------------------------------------------------------


@rows(
    # no slash or NUL, before anything else
    (Create("foo"), "BadArguments"),
    (Create(""), "BadArguments"),
    (Create("foo", acl=()), "BadArguments"),
    (Create("/a\0", acl=()), "BadArguments"),
    (Create("/nope/x\0"), "BadArguments"),
    # the ACL before the parent
    (Create("/nope/x", acl=()), "InvalidACL"),
    (Create("/a", acl=()), "InvalidACL"),
    (Create("/a/.", acl=()), "InvalidACL"),
    (Create("/no-create/x", acl=()), "InvalidACL"),
    (Create("/x", acl=(Acl(ALL, "world", "someone"),)), "InvalidACL"),
    (Create("/x", acl=(Acl(ALL, "nosuchscheme", "x"),)), "InvalidACL"),
    (Create("/x", acl=(Acl(ALL), Acl(ALL, "nosuchscheme", "x"))), "InvalidACL"),
    # the parent before the path
    (Create("foo/bar"), "NoNode"),
    (Create("/nope/x"), "NoNode"),
    (Create("/a//b"), "NoNode"),
    (Create("/nope/.."), "NoNode"),
    (Create("/nope/"), "NoNode"),
    # the right before the path, and before what is there
    (Create("/no-create/x"), "NoAuth"),
    (Create("/no-create/."), "NoAuth"),
    (Create("/no-create/child"), "NoAuth"),
    (Create("/eph-no-create/x"), "NoAuth"),
    (Create("/zookeeper/config/x"), "NoAuth"),
    # the path before what is there
    (Create("/a/"), "BadArguments"),
    (Create("/a/."), "BadArguments"),
    (Create("/a/.."), "BadArguments"),
    (Create("//"), "BadArguments"),
    (Create("//x"), "BadArguments"),
    (Create("/eph/."), "BadArguments"),
    # what is there, and then the parent's owner
    (Create("/a"), "NodeExists"),
    (Create("/"), "NodeExists"),
    (Create("/zookeeper"), "NodeExists"),
    (Create("/eph"), "NodeExists"),
    (Create("/eph/x"), "NoChildrenForEphemerals"),
    (Create("/eph/x", ephemeral=True), "NoChildrenForEphemerals"),
    (Create("/eph/x", sequential=True), "NoChildrenForEphemerals"),
    # and what is allowed
    (Create("/zookeeper/x"), OK),
    (Create("/a/", sequential=True), OK),
    (Create("/a/.", sequential=True), OK),
    (Create("/a//", sequential=True), "NoNode"),
    (Create("/x", acl=(Acl(0),)), OK),
    (Create("/x", acl=(Acl(ALL, "digest", "user:hash"),)), OK),
)
def test_create_is_refused_for_the_first_reason(operation: Create, outcome: str) -> None:
    """Create checks: slash and NUL, ACL, parent, right, path, existence, ephemeral parent."""
    assert error_of(tree_of_troubles().ask(operation)) == outcome


@pytest.mark.parametrize(
    "entry",
    [Acl(ALL, "auth", ""), Acl(ALL, "digest", "nocolon"), Acl(ALL, "ip", "nonsense")],
    ids=lambda entry: entry.scheme,
)
def test_an_acl_that_means_no_user_is_not_valid(entry: Acl) -> None:
    """`auth` of a session that has shown nothing, or an identity that cannot be: InvalidACL."""
    assert error_of(Script().ask(Create("/x", acl=(entry,)))) == "InvalidACL"


def test_an_entry_that_is_given_twice_is_kept_once() -> None:
    """What comes back of an ACL says nothing twice."""
    script = Script()
    script.create("/x", acl=(Acl(ALL), Acl(READ), Acl(ALL)))

    assert script.must(GetAcl("/x")) == (Acl(ALL), Acl(READ))


# --- delete ----------------------------------------------------------------------------


@rows(
    # no slash, NUL, or what a server keeps for itself
    (Delete("foo"), "BadArguments"),
    (Delete(""), "BadArguments"),
    (Delete("/a\0"), "BadArguments"),
    (Delete("/"), "BadArguments"),
    (Delete("/zookeeper"), "BadArguments"),
    (Delete("/zookeeper/quota"), "BadArguments"),
    (Delete("/zookeeper/config"), "BadArguments"),
    (Delete("/zookeeper", version=9), "BadArguments"),
    # the parent, its right, and only then the znode
    (Delete("/nope/x"), "NoNode"),
    (Delete("foo/bar"), "NoNode"),
    (Delete("/a//b"), "NoNode"),
    (Delete("/no-delete/child"), "NoAuth"),
    (Delete("/no-delete/child", version=9), "NoAuth"),
    (Delete("/no-delete/nope"), "NoAuth"),
    (Delete("/zookeeper/config/x"), "NoAuth"),
    (Delete("/nope"), "NoNode"),
    (Delete("/nope", version=9), "NoNode"),
    (Delete("/a/."), "NoNode"),
    # the version before the children
    (Delete("/a", version=9), "BadVersion"),
    (Delete("/a"), "NotEmpty"),
    (Delete("/a", version=0), "NotEmpty"),
    (Delete("/leaf", version=1), "BadVersion"),
    (Delete("/leaf", version=-2), "BadVersion"),
    # and what is allowed
    (Delete("/leaf"), OK),
    (Delete("/leaf", version=0), OK),
    (Delete("/eph"), OK),
    (Delete("/no-write/child"), OK),
)
def test_delete_is_refused_for_the_first_reason(operation: Delete, outcome: str) -> None:
    """Delete checks: reserved, parent, right on the parent, znode, version, children."""
    assert error_of(tree_of_troubles().ask(operation)) == outcome


# --- set, and set the ACL --------------------------------------------------------------


@rows(
    (SetData("", b""), "BadArguments"),
    (SetData("foo", b""), "BadArguments"),
    (SetData("/a/", b""), "BadArguments"),
    (SetData("/a//b", b""), "BadArguments"),
    (SetData("/nope/..", b""), "BadArguments"),
    (SetData("/nope", b"", version=9), "NoNode"),
    (SetData("/no-write", b"", version=9), "NoAuth"),
    (SetData("/zookeeper/config", b""), "NoAuth"),
    (SetData("/a", b"", version=9), "BadVersion"),
    (SetData("/a", b"", version=-2), "BadVersion"),
    (SetData("/a", b"", version=0), OK),
    (SetData("/a", b""), OK),
    (SetData("/", b""), OK),
    (SetData("/zookeeper", b""), OK),
    (SetData("/eph", b""), OK),
)
def test_set_is_refused_for_the_first_reason(operation: SetData, outcome: str) -> None:
    """Set checks: path, znode, right, version."""
    assert error_of(tree_of_troubles().ask(operation)) == outcome


@rows(
    (SetAcl("/a/", ()), "BadArguments"),
    (SetAcl("foo", OPEN), "BadArguments"),
    (SetAcl("/nope", ()), "InvalidACL"),
    (SetAcl("/no-admin", ()), "InvalidACL"),
    (SetAcl("/nope", OPEN), "NoNode"),
    (SetAcl("/no-admin", OPEN, version=9), "NoAuth"),
    (SetAcl("/a", OPEN, version=9), "BadVersion"),
    (SetAcl("/a", OPEN, version=-2), "BadVersion"),
    (SetAcl("/a", OPEN, version=0), OK),
    (SetAcl("/a", OPEN), OK),
    (SetAcl("/", OPEN), OK),
)
def test_setting_the_acl_is_refused_for_the_first_reason(operation: SetAcl, outcome: str) -> None:
    """Setting an ACL checks: path, the ACL, znode, right, version of the ACL."""
    assert error_of(tree_of_troubles().ask(operation)) == outcome


def test_the_version_of_the_acl_is_not_that_of_the_data() -> None:
    """Setting an ACL compares the aversion, whatever the version of the data is."""
    script = Script()
    script.create("/a")
    script.set("/a", b"1")
    script.set("/a", b"2")

    assert error_of(script.ask(SetAcl("/a", OPEN, version=2))) == "BadVersion"
    assert script.must(SetAcl("/a", OPEN, version=0)) == 1
    assert script.must(SetAcl("/a", OPEN, version=1)) == 2


@rows(
    (Check("/a/"), "0: BadArguments"),
    (Check("/nope", 9), "0: NoNode"),
    (Check("/no-read", 9), "0: NoAuth"),
    (Check("/a", 9), "0: BadVersion"),
    (Check("/a", -2), "0: BadVersion"),
    (Check("/a", 0), OK),
    (Check("/a"), OK),
    (Check("/"), OK),
)
def test_check_is_refused_for_the_first_reason(operation: Check, outcome: str) -> None:
    """Check checks: path, znode, right to read, version; without a version, existence."""
    assert error_of(tree_of_troubles().ask(Multi((operation,)))) == outcome


# --- reads -----------------------------------------------------------------------------

ODD_PATHS = ["/a/", "foo", "foo/bar", "/a//b", "//", "/a/.", "/..", "/\U0001f600"]


@pytest.mark.parametrize("path", ODD_PATHS)
@pytest.mark.parametrize("read", [GetData, GetChildren, GetAcl])
def test_reads_do_not_look_at_paths(read: type[Operation[Any]], path: str) -> None:
    """To a read, a path that cannot be is just one where nothing is."""
    assert error_of(tree_of_troubles().ask(read(path))) == "NoNode"


@pytest.mark.parametrize("path", ODD_PATHS)
def test_exists_does_not_look_at_paths(path: str) -> None:
    """To exists, a path that cannot be is just one where nothing is."""
    assert tree_of_troubles().ask(Exists(path)) is None


@rows(
    (Exists("/a\0"), "BadArguments"),
    (GetData("/a\0"), "NoNode"),
    (GetChildren("/a\0"), "NoNode"),
    (GetAcl("/a\0"), "NoNode"),
)
def test_only_exists_refuses_nul(operation: Operation[Any], outcome: str) -> None:
    """Of all reads only exists is refused for a NUL in its path."""
    assert error_of(tree_of_troubles().ask(operation)) == outcome


def test_the_empty_path_is_the_root() -> None:
    """Reads take the empty path for the root."""
    script = tree_of_troubles()

    assert script.ask(Exists("")) == script.ask(Exists("/"))
    assert script.must(GetData("")).stat == script.stat("/")
    assert script.must(GetChildren("")) == script.children("/")
    assert script.must(GetAcl("")) == OPEN


@rows(
    (GetData("/no-read"), "NoAuth"),
    (GetChildren("/no-read"), "NoAuth"),
    (GetAcl("/no-read"), OK),
    (GetAcl("/admin-only"), OK),
    (GetAcl("/write-only"), "NoAuth"),
    (GetData("/admin-only"), "NoAuth"),
    (GetData("/no-read/child"), OK),
)
def test_reads_need_the_right_to_read(operation: Operation[Any], outcome: str) -> None:
    """Reads need READ on the znode itself; the ACL may be read with ADMIN too."""
    assert error_of(tree_of_troubles().ask(operation)) == outcome


def test_exists_needs_the_right_to_read() -> None:
    """To exists, a znode that may not be read is NoAuth."""
    assert error_of(tree_of_troubles().ask(Exists("/no-read"))) == "NoAuth"


@pytest.mark.parametrize("path", ["/a", "foo", "/nope/../\0", ""])
def test_sync_never_fails(path: str) -> None:
    """Sync gives back the path it was given, whatever it is."""
    assert Script().ask(Sync(path)) == path


def test_an_identity_that_was_shown_opens_what_is_closed_to_the_world() -> None:
    """Rights granted to a digest are those of the sessions that have shown it."""
    script = Script()
    script.create("/mine", b"x", acl=(Acl(ALL, "digest", "user:hash"),))
    script.server = standalone.authenticate(script.server, OTHER, "digest", "user:hash")

    assert error_of(script.ask(GetData("/mine"), by=ME)) == "NoAuth"
    assert script.must(GetData("/mine"), by=OTHER).data == b"x"


# --- others' ephemerals ----------------------------------------------------------------


def test_anybody_may_change_an_ephemeral_of_another_session() -> None:
    """An ephemeral belongs to a session, but every session may set and delete it."""
    script = Script()
    script.create("/e", by=OTHER, ephemeral=True)

    script.set("/e", b"changed", by=ME)
    assert script.stat("/e").ephemeral_owner == OTHER
    script.delete("/e", by=ME)

    assert script.close(OTHER) == ()


# --- paths -----------------------------------------------------------------------------

GOOD_PATHS = [
    "/",
    "/a",
    "/a/b",
    "/...",
    "/..x",
    "/x..",
    "/.x/y.",
    "/ ",
    "/ leading and trailing ",
    "/\u00a0",
    "/é",
    "/\ud7ff",
    "/\uf900",
    "/\uffef",
    "/a~",
    "/\u00a1",
]
BAD_PATHS = [
    "",
    "a",
    "a/b",
    "//",
    "/a/",
    "/a//b",
    "//a",
    "/.",
    "/..",
    "/a/.",
    "/a/..",
    "/./a",
    "/../a",
    "/a/./b",
    "/a/../b",
    "/\0",
    "/\x01",
    "/\x1f",
    "/\x7f",
    "/\x9f",
    "/a\nb",
    "/\ud800",
    "/\ue000",
    "/\uf8ff",
    "/\ufff0",
    "/\uffff",
    "/\U0001f600",
    "/\U00010000",
]


@pytest.mark.parametrize("path", GOOD_PATHS, ids=ascii)
def test_paths_that_are_taken(path: str) -> None:
    """A path begins with a slash, has no empty or dotted part and no forbidden character."""
    assert paths.is_valid(path)
    assert is_good(path)


@pytest.mark.parametrize("path", BAD_PATHS, ids=ascii)
def test_paths_that_are_refused(path: str) -> None:
    """Control characters, surrogates, private use and everything beyond the basic plane."""
    assert not paths.is_valid(path)
    assert not is_good(path)
    assert error_of(Script().ask(SetData(path, b""))) == "BadArguments"


def test_every_character_of_the_basic_plane_is_sorted_as_a_server_does() -> None:
    """The forbidden units are 0-1f, 7f-9f, d800-f8ff and fff0-ffff, and the slash ends a name."""
    forbidden = {
        *range(0x20),
        *range(0x7F, 0xA0),
        *range(0xD800, 0xF900),
        *range(0xFFF0, 0x10000),
    }

    refused = {unit for unit in range(0x10000) if not paths.is_valid(f"/x{chr(unit)}x")}

    assert refused == forbidden


# --- errors as values ------------------------------------------------------------------

CODES = {
    "ServerError": -1,
    "RuntimeInconsistency": -2,
    "ConnectionLoss": -4,
    "MarshallingError": -5,
    "Unimplemented": -6,
    "BadArguments": -8,
    "NoNode": -101,
    "NoAuth": -102,
    "BadVersion": -103,
    "NoChildrenForEphemerals": -108,
    "NodeExists": -110,
    "NotEmpty": -111,
    "SessionExpired": -112,
    "InvalidACL": -114,
    "AuthFailed": -115,
    "SessionMoved": -118,
    "NotReadOnly": -119,
    "NoWatcher": -121,
    "ReconfigDisabled": -123,
    "Throttled": -127,
}


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_errors_bear_the_codes_of_zookeeper(name: str, code: int) -> None:
    """Each error has the number that goes over the wire."""
    assert getattr(errors, name).code == code


def test_every_error_is_in_the_table() -> None:
    """No error has a code that the table does not know."""
    coded = {kind.__name__ for kind in ZooKeeperError.__subclasses__() if kind.code}

    assert coded == set(CODES)


def test_only_a_request_that_left_may_have_happened() -> None:
    """Of all failures only the loss of a connection leaves open what happened."""
    open_ones = [
        failure
        for kind in ZooKeeperError.__subclasses__()
        if kind is not TransactionFailed
        for failure in (Failure(kind, "/a", sent=True), Failure(kind, "/a", sent=False))
        if failure.error().may_have_happened
    ]

    assert open_ones == [Failure(ConnectionLoss, "/a", sent=True)]


def test_a_failure_makes_a_fresh_exception_each_time() -> None:
    """Two raises of one failure share no exception, so that no traceback grows."""
    failure = Failure(NoNode, "/a")

    first, second = failure.error(), failure.error()

    assert first is not second
    assert (type(first), first.path) == (NoNode, "/a")
