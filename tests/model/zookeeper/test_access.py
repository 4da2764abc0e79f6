"""Access control lists: which are valid, whom they permit what, and what a client may read."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.support.zookeeper.real_client import OPERATOR, Real
from tests.support.zookeeper.script import Script, error_of
from tests.support.zookeeper.worlds import ARMS, TOP, Arm, Proof, Step
from watchkeeper.model.actor.operations import (
    ADMIN,
    CREATE,
    DELETE,
    OPEN,
    READ,
    WRITE,
    Acl,
    AddWatch,
    Check,
    CountDescendants,
    Create,
    Delete,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    Multi,
    MultiRead,
    SetAcl,
    SetData,
)
from watchkeeper.model.zookeeper import standalone
from watchkeeper.model.zookeeper.acl import is_allowed, readable, resolved

ALL = READ | WRITE | CREATE | DELETE | ADMIN
ANN, BEN = Proof("ann", "a"), Proof("ben", "b")
REAL: Arm = Real()
LOCAL = ("ip", "127.0.0.1")
AUTH = Acl(ALL, "auth", "")

# What Apache's server stores and refuses, measured on 3.9.5.
GOOD_ADDRESSES = [
    *("127.0.0.1", "10.0.0.0/8", "10.0.0.0/0", "10.0.0.0/08", "1.1.1.1/+8", "010.1.1.1"),
    *("+1.1.1.1", "-0.1.1.1", "1.1.1.0001", "::", "::1", "1::", "fe80::/10", "::1/128"),
    *("2001:db8:0:0:0:0:0:1", "1:2:3:4:5:6:7:8/64", "1:2:3:4:5:6:7::", "1:2:3:4::5:6:7"),
    *("::2:3:4:5:6:7:8", "0001::", "::+1", "::-1", "::+fff", "ABCD::abcd"),
]
BAD_ADDRESSES = [
    *("", "a", "10.0.0/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.1.1.1/255.0.0.0"),
    *("256.1.1.1", " 1.1.1.1", "1.1.1.1 ", "1..1.1", "1.1.1.", "1.2.3", "1.2.3.4.5"),
    *("1.1.1.1/ 8", "1.1.1.99999999999", "1_0.1.1.1", "1::1::1", "::ffff:1.2.3.4", "[::1]"),
    *("fe80::1%eth0", "1:2:3:4:5:6:7", "12345::", "::g", "::1/129", "::1/", "::00001", ":1::2"),
    *("1::2:", "1:2:3:4:5:6:7:8:9", "1:2:3:4::5:6:7:8", ":::", "::1::", "1:2:3:4:5:6:7:8::"),
    *("::1:2:3:4:5:6:7:8", "::+ffff", "1:::2", ":", "1:2:3:4:5:6:7:", "1 ::"),
]
GOOD_ENTRIES = [
    *(("world", "anyone"), ("digest", "a:b"), ("digest", ":b"), ("digest", "a:b:")),
    *(("ip", address) for address in GOOD_ADDRESSES),
]
BAD_ENTRIES = [
    *(("world", "other"), ("world", ""), ("auth", ""), ("auth", "ann"), ("", "")),
    *(("digest", text) for text in ("a", "a:", ":", "a:b:c", "", "::b")),
    *((scheme, "x") for scheme in ("sasl", "x509", "super", "nope")),
    *(("ip", address) for address in BAD_ADDRESSES),
]


@pytest.mark.parametrize(("scheme", "identity"), GOOD_ENTRIES)
def test_an_entry_that_is_understood_is_stored_as_it_is(scheme: str, identity: str) -> None:
    """World, digests, addresses and networks are stored in the words of the request."""
    acl = (Acl(ALL, scheme, identity),)

    assert resolved((), acl) == acl


@pytest.mark.parametrize(("scheme", "identity"), BAD_ENTRIES)
def test_an_entry_that_is_not_understood_refuses_the_list(scheme: str, identity: str) -> None:
    """One bad entry refuses the whole list; `auth` is bad if the client has proved nothing."""
    assert resolved((LOCAL,), (Acl(ALL), Acl(ALL, scheme, identity))) is None


def test_every_entry_of_the_table_meets_the_same_answer_at_a_real_server() -> None:
    """A real server stores and refuses exactly these entries.

    kazoo sends an empty text as none, so entries with one are left out.
    """
    entries = [entry for entry in (*GOOD_ENTRIES, *BAD_ENTRIES) if all(entry)]
    mine = Acl(ALL, "digest", OPERATOR.identity)
    script: list[Step] = [
        (0, Create(f"{TOP}/{number}", acl=(Acl(ALL, *entry), mine)))
        for number, entry in enumerate(entries)
    ]

    answers = [observed.answer for observed in REAL.play(1, script)]

    assert [answer == "InvalidACL" for answer in answers] == [
        entry in BAD_ENTRIES for entry in entries
    ]


def test_auth_stands_for_every_name_that_was_proved_and_not_for_the_address() -> None:
    """The entries of a repeated `auth` are stored again, those of a repeated entry are not."""
    known = (LOCAL, ("digest", "ann:1"), ("digest", "ben:2"))
    ann, ben = (Acl(READ, "digest", name) for name in ("ann:1", "ben:2"))

    assert resolved(known, (Acl(READ, "auth", "x"),)) == (ann, ben)
    assert resolved(known, (ann, Acl(READ, "auth", ""), ann)) == (ann, ann, ben)


def test_a_decoded_list_that_is_open_is_stored_as_the_open_one() -> None:
    """Most lists are open, and whether one is takes no more than a comparison of identity."""
    assert resolved((), (Acl(ALL, "world", "anyone"),)) is OPEN


@pytest.mark.parametrize(
    ("entry", "address", "is_match"),
    [
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.4", False),
        ("010.1.2.3", "10.1.2.3", True),
        ("10.0.0.0/8", "10.255.0.1", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("10.9.9.9/8", "10.1.1.1", True),
        ("127.0.0.2/31", "127.0.0.1", False),
        ("127.0.0.2/30", "127.0.0.1", True),
        ("0.0.0.0/0", "1.2.3.4", True),
        ("::/0", "::1", True),
        ("fe80::/10", "fe80::1", True),
        ("fe80::/10", "fec0::1", False),
        ("2001:db8::1", "2001:0db8:0:0:0:0:0:1", True),
        ("::/0", "1.2.3.4", False),
        ("7f00:1::/32", "127.0.0.1", False),
        ("0.0.0.0/0", "::1", False),
    ],
)
def test_an_address_matches_its_networks(entry: str, address: str, is_match: bool) -> None:
    """An entry permits the addresses of its family that begin with its bits."""
    acl = (Acl(READ, "ip", entry),)

    assert is_allowed((("ip", address),), acl, READ) is is_match
    assert not is_allowed((("digest", entry),), acl, READ)


def test_one_of_several_permissions_is_enough_and_another_entry_does_not_lend_its_own() -> None:
    """Each entry permits by itself: the identity of one and the permission of another do not."""
    acl = (Acl(READ, "digest", "ann:1"), Acl(WRITE, "digest", "ben:2"))
    ann = (("digest", "ann:1"),)

    assert is_allowed(ann, acl, READ | ADMIN)
    assert not is_allowed(ann, acl, WRITE)
    assert not is_allowed((), acl, READ)


def test_only_who_administers_reads_the_digests_of_others() -> None:
    """Without ADMIN the part of a digest behind the name reads as x."""
    acl = (Acl(READ), Acl(ALL, "digest", "ann:hash:"), Acl(READ, "ip", "::1"))

    assert readable((("digest", "ann:hash:"),), acl) == acl
    assert readable((), acl) == (Acl(READ), Acl(ALL, "digest", "ann:x"), Acl(READ, "ip", "::1"))


def test_identities_end_with_the_connection() -> None:
    """The same session has to prove its names again on its next connection."""
    script = Script()
    script.server = standalone.authenticate(script.server, 1, "digest", "ann:1")
    script.create("/mine", acl=(AUTH,), by=1)
    script.drop_connection(1)

    assert error_of(script.ask(GetData("/mine"), by=1)) == "NoAuth"


def test_a_watch_fires_for_who_may_read_at_that_moment() -> None:
    """An identity that was proved after the watch was set counts, another client's does not."""
    script = Script()
    for session in (1, 2):
        script.server = standalone.authenticate(script.server, session, "digest", "ann:1")
    script.create("/mine", acl=(AUTH,), by=1)
    script.watch("persistent", "/mine", by=1)
    script.watch("persistent", "/mine", by=2)
    script.drop_connection(2)
    script.watch("persistent", "/mine", by=2)

    script.set("/mine", b"", by=1)

    assert (script.heard(1), script.heard(2)) == (["changed /mine"], [])


# --- the same at a real server ---------------------------------------------------------

MINE = Acl(ALL, "digest", OPERATOR.identity)
"""It lets the operator clean up."""
LISTS = st.sampled_from(
    [
        *[OPEN] * 3,
        (),
        (Acl(ALL), Acl(ALL, "digest", "ann")),
        (AUTH, MINE),
        (Acl(READ), AUTH, Acl(READ), MINE),
        (Acl(READ | ADMIN), Acl(ALL, "digest", ANN.identity), MINE),
        (Acl(READ), Acl(ALL, "digest", ANN.identity), Acl(READ, "digest", BEN.identity), MINE),
        (Acl(ALL, "ip", "127.0.0.0/8"), MINE),
        (Acl(READ, "ip", "127.0.0.1"), Acl(WRITE, "ip", "10.0.0.0/8"), MINE),
        *((Acl(ALL & ~one), MINE) for one in (READ, WRITE, CREATE, DELETE, ADMIN)),
    ]
)
PATHS = st.sampled_from([f"{TOP}/{name}" for name in ("a", "a/b", "b", "b/a")])
DATA = st.just(b"x")
PARTS = st.one_of(
    st.builds(Create, PATHS, DATA, acl=LISTS),
    st.builds(SetData, PATHS, DATA),
    st.builds(Delete, PATHS),
    st.builds(Check, PATHS),
)
READS = st.one_of(
    st.builds(GetData, PATHS, st.booleans()), st.builds(GetChildren, PATHS, st.booleans())
)
STEPS: st.SearchStrategy[Any] = st.one_of(
    st.builds(Create, PATHS, DATA, acl=LISTS),
    st.builds(Create, PATHS, DATA, acl=LISTS),
    st.builds(SetAcl, PATHS, LISTS),
    st.builds(GetAcl, PATHS),
    PARTS.filter(lambda part: not isinstance(part, Check)),
    st.builds(Multi, st.lists(PARTS, min_size=1, max_size=3).map(tuple)),
    READS,
    st.builds(MultiRead, st.lists(READS, max_size=3).map(tuple)),
    st.builds(Exists, PATHS, st.booleans()),
    st.builds(AddWatch, PATHS, st.booleans()),
    st.builds(CountDescendants, PATHS),
    st.sampled_from([ANN, BEN]),
)


@pytest.mark.slow
@given(script=st.lists(st.tuples(st.integers(0, 2), STEPS), min_size=10, max_size=40))
@settings(max_examples=150, derandomize=True, deadline=None)
def test_clients_who_prove_names_cannot_tell_a_real_server_from_the_machine(
    script: list[Step],
) -> None:
    """Three clients with lists, addresses and digests: the same answers, the same events."""
    assert REAL.play(3, script) == ARMS[0].play(3, script)
