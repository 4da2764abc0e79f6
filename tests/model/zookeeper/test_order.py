"""The order in which names come back: that of a Java HashSet, and no other."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import HOME
from tests.support.zookeeper.oracle import JavaSet, java_hash
from tests.support.zookeeper.script import ME, OTHER, Script
from watchkeeper.model.zookeeper.java_hash_order import bucket, in_clone_order, string_hash

# --- Java ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("hello", 99162322),
        ("polygenelubricants", -(1 << 31)),
        ("é", 233),
        ("\U0001f600", 1772899),
    ],
)
def test_the_hash_of_a_string_is_that_of_java(text: str, value: int) -> None:
    """`String.hashCode` goes over UTF-16 units and overflows as a 32-bit number."""
    assert string_hash(text) == value


@given(st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_the_hash_agrees_with_the_formula(text: str) -> None:
    """The hash is the sum of the units times the powers of 31."""
    assert string_hash(text) % 2**32 == java_hash(text)


# --- children --------------------------------------------------------------------------


def listed(names: list[str]) -> tuple[str, ...]:
    script = Script()
    script.create("/p")
    for name in names:
        script.create(f"/p/{name}")
    return script.children("/p")


def test_twelve_sequential_names_come_back_in_java_order() -> None:
    """Twelve sequential names are listed 9, 0, 11, 10, 2, 1, 4, 3, 6, 5, 8, 7."""
    script = Script()
    script.create("/p")
    for _ in range(12):
        script.create("/p/n-", sequential=True)

    order = [int(name[-10:]) for name in script.children("/p")]

    assert order == [9, 0, 11, 10, 2, 1, 4, 3, 6, 5, 8, 7]


SEEN_FROM_A_SERVER = [
    # created in this order, listed in that one
    (
        "alpha beta gamma delta epsilon zeta eta theta iota kappa",
        "epsilon zeta iota eta alpha delta kappa theta beta gamma",
    ),
    (
        "clicks orders users payments clicks-errors",
        "clicks orders clicks-errors users payments",
    ),
    (
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13",
        "11 12 13 0 1 2 3 4 5 6 7 8 9 10",
    ),
    (
        "0-0 0-1 1-0 1-1 2-0 2-1",
        "0-0 0-1 1-0 1-1 2-0 2-1",
    ),
    (
        "Aa BB AaAa BBBB AaBB BBAa C é z",
        "Aa BB C é z AaAa BBBB AaBB BBAa",
    ),
]


@pytest.mark.parametrize(("created", "expected"), SEEN_FROM_A_SERVER)
def test_children_come_as_a_server_listed_them(created: str, expected: str) -> None:
    """Names that a real server was given come back as it gave them."""
    assert " ".join(listed(created.split())) == expected


def test_a_name_that_was_deleted_and_created_again_goes_to_the_end_of_its_bucket() -> None:
    """Within a bucket names stand in the order in which they came, the last time they did."""
    script = Script()
    script.create("/p")
    for name in ("Aa", "BB"):
        script.create(f"/p/{name}")
    assert script.children("/p") == ("Aa", "BB")

    script.delete("/p/Aa")
    script.create("/p/Aa")

    assert script.children("/p") == ("BB", "Aa")


NAMES = st.sampled_from([*(f"n{k}" for k in range(40)), "Aa", "BB", "AaAa", "BBBB", "é", "z z"])


@given(st.lists(st.tuples(st.booleans(), NAMES), max_size=80))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_children_are_listed_as_by_a_naive_hash_set(steps: list[tuple[bool, str]]) -> None:
    """Whatever is created and deleted, the order is that of a set of real buckets."""
    script, naive = Script(), JavaSet(8)
    script.create("/p")
    for creates, name in steps:
        there = script.is_there(f"/p/{name}")
        if creates and not there:
            script.create(f"/p/{name}")
            naive.add(name)
        elif there and not creates:
            script.delete(f"/p/{name}")
            naive.remove(name)

        assert script.children("/p") == tuple(naive)


def test_the_table_of_children_never_shrinks() -> None:
    """A znode that has had many children lists the few that are left as from its big table."""
    names = [str(k * 7919) for k in range(100)]
    script = Script()
    script.create("/p")
    for name in names:
        script.create(f"/p/{name}")
    for name in names[10:]:
        script.delete(f"/p/{name}")

    assert script.children("/p") == tuple(sorted(names[:10], key=lambda name: bucket(name, 256)))
    assert script.children("/p") != listed(names[:10])


def colliding(with_name: str) -> list[str]:
    """Names that fall into the same bucket of a small table."""
    return [name for k in range(200) if bucket(name := f"k{k}", 8) == bucket(with_name, 8)]


def test_what_a_fresh_server_has_came_before_everything_else() -> None:
    """A new child of /zookeeper stands behind `quota` where it shares that one's bucket."""
    script = Script()
    for name in colliding("quota")[:2]:
        script.create(f"/zookeeper/{name}")

    own = [
        name for name in script.children("/zookeeper") if bucket(name, 8) == bucket("quota", 8)
    ]

    assert own == ["quota", *colliding("quota")[:2]]


LIST_THE_ROOT = """
from tests.support.zookeeper.script import Script
script = Script()
script.create("/{name}")
print(*script.children("/"))
"""


def test_the_order_does_not_depend_on_the_hashes_of_python() -> None:
    """A name in the bucket of `zookeeper` is listed after it, whatever PYTHONHASHSEED is."""
    name = colliding("zookeeper")[0]
    home = str(HOME / "src")
    listings = set()
    for seed in "01234":
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": home}
        program = [sys.executable, "-c", LIST_THE_ROOT.format(name=name)]
        done = subprocess.run(
            program, env=environment, capture_output=True, text=True, check=True
        )
        listings.add(done.stdout.strip())

    assert listings == {f"zookeeper {name}"}


# --- the end of a session --------------------------------------------------------------


def own_ephemerals(names: list[str]) -> Script:
    script = Script()
    script.create("/p")
    for name in names:
        script.create(f"/p/{name}", by=OTHER, ephemeral=True)
    return script


@given(st.lists(NAMES, unique=True, max_size=40))
@settings(max_examples=50, derandomize=True, deadline=None)
def test_ephemerals_go_in_the_order_of_a_cloned_set(names: list[str]) -> None:
    """The end of a session deletes in the order of a clone of the set of its paths."""
    naive = JavaSet(16)
    for name in names:
        naive.add(f"/p/{name}")

    assert own_ephemerals(names).close(OTHER) == tuple(naive.clone())


def test_a_client_that_watches_hears_the_deletions_in_that_order() -> None:
    """The events of a session's end come in the order of its deletions."""
    script = own_ephemerals([f"n{k}" for k in range(20)])
    script.watch("recursive", "/p", by=ME)

    gone = script.close(OTHER)

    assert script.heard(ME) == [f"deleted {path}" for path in gone]
    assert list(gone) != sorted(gone)


def test_the_table_of_ephemerals_never_shrinks() -> None:
    """A session that has had many ephemerals deletes the rest as from its big table."""
    names = [f"{k * 7919 % 100_003}" for k in range(60)]
    script, naive = own_ephemerals(names), JavaSet(16)
    for name in names:
        naive.add(f"/p/{name}")
    for name in names[10:]:
        script.delete(f"/p/{name}")
        naive.remove(f"/p/{name}")

    assert script.close(OTHER) == tuple(naive.clone())


def test_a_clone_is_sized_by_what_it_holds() -> None:
    """A clone of a big table that is nearly empty is small, so that its order is another."""
    names = tuple(f"/p/{k}" for k in range(6))

    assert in_clone_order(names) == tuple(JavaSetOf(names).clone())


def JavaSetOf(names: tuple[str, ...]) -> JavaSet:  # noqa: N802 - it stands for a constructor
    """A set whose table lists the names in this order: one bucket."""
    made = JavaSet(1)
    made.buckets[0] = list(names)
    return made
