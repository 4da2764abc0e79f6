"""Containers and TTLs: which znodes a server deletes by itself, and when."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.support.live_zookeeper import skip_without_zookeeper, until
from tests.support.zookeeper.real_client import Player
from tests.support.zookeeper.script import ME, Script, error_of
from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.operations import (
    CONTAINER_MS,
    UNLIMITED_MS,
    Create,
    Delete,
    DeleteContainer,
    Exists,
    GetChildren,
    Multi,
    SetData,
)
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.lifetimes import LONGEST_TTL_MS, due_by_ttl, due_containers
from watchkeeper.model.zookeeper.tree import Session, Tree, empty_tree
from watchkeeper.model.zookeeper.znode import NO_SESSION
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.settings import Settings

Step = Create | Delete | SetData | Multi


def tree_with(*operations: Step, now_ms: int = 0) -> Tree:
    """A tree after these operations of one session at one moment."""
    return after(writes.open_session(empty_tree(), ME, Session(6000)), *operations, now_ms=now_ms)


def after(tree: Tree, *operations: Step, now_ms: int = 0) -> Tree:
    """The tree after more operations, none of which fails."""
    for operation in operations:
        written = writes.write(tree, ME, operation, now_ms=now_ms)
        assert not isinstance(written.answer, Failure), written.answer
        tree = written.tree
    return tree


# --- what is due -----------------------------------------------------------------------


def test_a_container_is_due_once_its_last_child_is_gone() -> None:
    """A container that has no child is due if it once had one."""
    new = tree_with(Create("/c", lifetime_ms=CONTAINER_MS))
    used = after(new, Create("/c/a"), Create("/c/b"), Delete("/c/a"))

    assert due_containers(new) == ()
    assert due_containers(used) == ()
    assert due_containers(after(used, Delete("/c/b"))) == ("/c",)


def test_a_ttl_counts_from_the_last_change_of_the_data() -> None:
    """A znode is due when it is older than its TTL; a set begins it anew."""
    tree = tree_with(Create("/t", lifetime_ms=100), now_ms=1000)
    changed = after(tree, SetData("/t", b""), now_ms=1050)

    assert due_by_ttl(tree, 1100) == ()
    assert due_by_ttl(tree, 1101) == ("/t",)
    assert due_by_ttl(changed, 1150) == ()
    assert due_by_ttl(changed, 1151) == ("/t",)


def test_a_ttl_waits_for_children_and_does_not_count_from_them() -> None:
    """A child keeps a znode with a TTL, and its deletion does not begin the TTL anew."""
    tree = tree_with(Create("/t", lifetime_ms=100), Create("/t/a"))

    assert due_by_ttl(tree, 10_000) == ()
    assert due_by_ttl(after(tree, Delete("/t/a"), now_ms=9_999), 10_000) == ("/t",)


def test_containers_and_ttls_are_due_apart() -> None:
    """A container has no TTL, and a znode with a TTL is no container."""
    tree = tree_with(
        Create("/c", lifetime_ms=CONTAINER_MS),
        Create("/t", lifetime_ms=1),
        Create("/p"),
        *(Create(f"/{name}/x") for name in "ctp"),
        *(Delete(f"/{name}/x") for name in "ctp"),
    )

    assert due_containers(tree) == ("/c",)
    assert due_by_ttl(tree, 10_000) == ("/t",)


@given(names=st.sets(st.sampled_from("abcdefgh"), min_size=2))
def test_what_is_due_comes_in_the_order_of_the_paths(names: set[str]) -> None:
    """Equal trees give equal lists, however they came about."""
    tree = tree_with(*(Create(f"/{name}", lifetime_ms=1) for name in names))

    assert due_by_ttl(tree, 10) == tuple(f"/{name}" for name in sorted(names))


def test_a_deleted_znode_is_not_looked_at_again() -> None:
    """A delete takes the lifetime away: a new znode at the path has none."""
    tree = tree_with(Create("/t", lifetime_ms=1), Delete("/t"), Create("/t"))

    assert due_by_ttl(tree, 10) == ()
    assert not tree.limited


# --- the request that deletes ----------------------------------------------------------


def test_a_server_deletes_without_a_session() -> None:
    """The request takes a zxid and is one deletion for those who watch."""
    tree = tree_with(Create("/c", lifetime_ms=CONTAINER_MS), Create("/c/a"), Delete("/c/a"))

    written = writes.write(tree, NO_SESSION, DeleteContainer("/c"))

    assert written.answer is None
    assert written.tree.zxid == tree.zxid + 1
    assert [(change.what.value, change.path) for change in written.changes] == [("deleted", "/c")]
    assert "/c" not in written.tree.nodes
    assert due_containers(written.tree) == ()


def test_a_session_that_has_ended_deletes_nothing_else() -> None:
    """Every other write needs a session that is open."""
    tree = tree_with(Create("/c", lifetime_ms=CONTAINER_MS))

    written = writes.write(tree, NO_SESSION, Delete("/c"))

    assert error_of(written.answer) == "SessionExpired"
    assert written.tree is tree


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/c", "NotEmpty"),
        ("/e", "BadVersion"),
        ("/nope", "NoNode"),
        ("/nope/x", "NoNode"),
        ("/", "BadArguments"),
        ("/zookeeper/quota", "BadArguments"),
        ("c", "BadArguments"),
    ],
)
def test_what_has_changed_in_between_is_not_deleted(path: str, error: str) -> None:
    """The request looks again: a child may have come, the znode may be gone, or another's."""
    script = Script()
    script.must(Create("/c", lifetime_ms=CONTAINER_MS))
    script.create("/c/a")
    script.create("/e", ephemeral=True)
    before = script.paths()

    assert error_of(script.ask(DeleteContainer(path))) == error
    assert script.paths() == before


# --- creating --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lifetime_ms", "error"),
    [(-2, "BadArguments"), (LONGEST_TTL_MS + 1, "BadArguments"), (LONGEST_TTL_MS, None)],
)
def test_a_lifetime_is_checked_before_everything_else(
    lifetime_ms: int, error: str | None
) -> None:
    """A lifetime out of range is refused before the list, the parent and the path."""
    create = Create("/nope/x", acl=(), lifetime_ms=lifetime_ms)

    assert error_of(Script().ask(create)) == (error or "InvalidACL")


def test_a_ttl_is_unimplemented_where_servers_have_none() -> None:
    """Without TTLs, a create with one is refused first of all, and fails its multi."""
    tree = tree_with()
    create = Create("x", acl=(), lifetime_ms=2**50)
    many = Multi((Create("/a"), Create("/t", lifetime_ms=1)))

    written = writes.write(tree, ME, create, has_ttls=False)
    failed = writes.write(tree, ME, many, has_ttls=False)
    container = writes.write(tree, ME, Create("/c", lifetime_ms=CONTAINER_MS), has_ttls=False)

    assert error_of(written.answer) == "Unimplemented"
    assert written.tree.zxid == tree.zxid + 1
    assert error_of(failed.answer) == "1: Unimplemented"
    assert container.answer == "/c"


def test_an_ephemeral_has_no_lifetime() -> None:
    """A znode that ends with a session cannot end otherwise too."""
    create = Create("/e", ephemeral=True, lifetime_ms=CONTAINER_MS)

    assert error_of(Script().ask(create)) == "BadArguments"


@pytest.mark.parametrize("lifetime_ms", [CONTAINER_MS, 1000])
def test_a_znode_with_a_lifetime_is_like_any_other(lifetime_ms: int) -> None:
    """It may be sequential, may have ephemeral children, and its Stat names no owner."""
    script = Script()
    path: str = script.must(Create("/c-", sequential=True, lifetime_ms=lifetime_ms))
    script.create(f"{path}/e", ephemeral=True)

    assert path == "/c-0000000000"
    assert script.stat(path).ephemeral_owner == 0
    assert script.close(ME) == (f"{path}/e",)
    assert script.server.tree.nodes[path].lifetime_ms == lifetime_ms
    assert UNLIMITED_MS == 0


# --- a real server ---------------------------------------------------------------------


def test_a_real_server_deletes_what_is_due_and_nothing_else() -> None:
    """A server that looks often comes to what the functions say is due, and keeps the rest."""
    skip_without_zookeeper()
    operations: list[Step] = [
        Create("/used", lifetime_ms=CONTAINER_MS),
        Create("/unused", lifetime_ms=CONTAINER_MS),
        Create("/full", lifetime_ms=CONTAINER_MS),
        Create("/short", lifetime_ms=1),
        Create("/long", lifetime_ms=LONGEST_TTL_MS),
        Multi((Create("/parent", lifetime_ms=1), Create("/parent/x"))),
        Create("/plain"),
        *(Create(f"/{name}/x") for name in ("used", "full", "plain")),
        *(Delete(f"/{name}/x") for name in ("used", "plain")),
    ]
    tree = tree_with(*operations)
    due = {*due_containers(tree), *due_by_ttl(tree, 60_000)}
    kept = {path for path in tree.nodes if path.count("/") == 1 and path != "/"} - due

    often = Settings(tick_ms=2000, has_ttls=True, container_check_ms=50)
    with Ensemble(settings=often) as zookeeper:
        player = Player(zookeeper.hosts)
        assert not any(isinstance(player.ask(operation), Failure) for operation in operations)
        until(lambda: not any(player.ask(Exists(path)) for path in due))
        left = {f"/{name}" for name in player.ask(GetChildren("/"))}
        player.close()

    assert due == {"/used", "/short"}
    assert left == kept
