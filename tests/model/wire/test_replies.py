"""Answers and events as bytes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.zookeeper.wire_values import (
    bmp_texts,
    data,
    lists_of_permissions,
    long_numbers,
    numbers,
    stats,
)
from watchkeeper.model.actor.errors import (
    BadVersion,
    Failure,
    NodeExists,
    NoNode,
    TransactionFailed,
)
from watchkeeper.model.actor.events import Fired, Stat, WatchEventType, ZnodeView
from watchkeeper.model.actor.operations import (
    Check,
    Create,
    Delete,
    GetChildren,
    GetData,
    Multi,
    SetData,
)
from watchkeeper.model.wire.fields import Malformed, int32
from watchkeeper.model.wire.opcodes import CREATES, Opcode
from watchkeeper.model.wire.replies import (
    Event,
    Reply,
    decode_body,
    decode_event,
    decode_reply,
    encode_event,
    encode_reply,
    failed_multi_body,
    multi_body,
    multi_read_body,
    reply_body,
)
from watchkeeper.model.wire.requests import END_OF_PARTS, PART
from watchkeeper.model.zookeeper.tree import Session, empty_tree
from watchkeeper.model.zookeeper.writes import open_session, write
from watchkeeper.model.zookeeper.znode import Znode

SESSION = 5
ZNODE = Znode(b"data", version=3, czxid=7, mzxid=9, pzxid=7, ctime=1, mtime=2)
names = st.lists(bmp_texts, max_size=4).map(tuple)
views = st.builds(ZnodeView, data, numbers, st.booleans(), stats)


# --- heads and events ------------------------------------------------------------------


@given(numbers, long_numbers, numbers, st.binary(max_size=30))
def test_a_reply_is_read_as_it_was_written(xid: int, zxid: int, error: int, body: bytes) -> None:
    """The head has the xid of the request, a zxid and an error code."""
    assert decode_reply(encode_reply(xid, zxid, error, body)) == Reply(xid, zxid, error, body)


@pytest.mark.parametrize("size", range(16))
def test_a_frame_without_a_whole_head_is_no_reply(size: int) -> None:
    """A client cannot tell what such a frame answers."""
    with pytest.raises(Malformed, match=f"a reply of {size} bytes has no header"):
        decode_reply(bytes(size))


@given(long_numbers, st.sampled_from(WatchEventType), bmp_texts)
def test_an_event_is_read_as_it_was_written(zxid: int, what: WatchEventType, path: str) -> None:
    """An event is a reply with xid -1 and the zxid of the change, of a connected session."""
    reply = decode_reply(encode_event(zxid, Fired(what, path)))

    assert (reply.xid, reply.zxid, reply.error) == (-1, zxid, 0)
    event = decode_event(reply.body)
    assert (event.what, event.state, event.path) == (what, 3, path)


def test_the_types_of_events_are_those_of_apaches_client() -> None:
    """The numbers are those of `Watcher.Event.EventType`; another one is of the session."""
    numbers = [
        decode_event(decode_reply(encode_event(1, Fired(what, "/a"))).body).type
        for what in (
            WatchEventType.CREATED,
            WatchEventType.DELETED,
            WatchEventType.CHANGED,
            WatchEventType.CHILDREN,
        )
    ]

    assert numbers == [1, 2, 3, 4]
    assert Event(-1, 0, "").what is None


# --- bodies ----------------------------------------------------------------------------


def back(opcode: Opcode, answer: Any, znode: Znode | None = None) -> Any:
    return decode_body(opcode, reply_body(opcode, answer, znode))


@given(bmp_texts)
def test_a_create_answers_with_its_path(path: str) -> None:
    """All but the plain one add the Stat of the new znode."""
    assert back(Opcode.CREATE, path) == back(Opcode.SYNC, path) == path
    for opcode in CREATES - {Opcode.CREATE}:
        assert back(opcode, path, ZNODE) == (path, ZNODE.stat)


@given(views)
def test_a_read_answers_with_what_the_session_sees(view: ZnodeView) -> None:
    """getData has data and Stat, exists the Stat alone; missing data are no empty data."""
    assert back(Opcode.GET_DATA, view) == (view.data, view.stat)
    assert back(Opcode.EXISTS, view) == view.stat


@given(names)
def test_names_and_paths_keep_their_order(several: tuple[str, ...]) -> None:
    """A server's order is no alphabet, and clients may compare it."""
    assert back(Opcode.GET_CHILDREN, several) == back(Opcode.GET_EPHEMERALS, several) == several
    assert back(Opcode.GET_CHILDREN_2, several, ZNODE) == (several, ZNODE.stat)


@given(lists_of_permissions(bmp_texts))
def test_a_list_of_permissions_comes_with_a_stat(entries: Any) -> None:
    """getACL shows the version to compare in a setACL."""
    assert back(Opcode.GET_ACL, entries, ZNODE) == (entries, ZNODE.stat)


def test_the_other_answers() -> None:
    """Writes of one znode answer with its Stat; what needs no answer has no body."""
    assert back(Opcode.SET_DATA, 3, ZNODE) == back(Opcode.SET_ACL, 1, ZNODE) == ZNODE.stat
    assert back(Opcode.COUNT_DESCENDANTS, 12) == 12
    assert back(Opcode.WHO_AM_I, (("ip", "::1"), ("digest", "a"))) == (
        ("ip", "::1"),
        ("digest", "a"),
    )
    assert reply_body(Opcode.ADD_WATCH, None) == int32(0)
    for opcode in (
        Opcode.DELETE,
        Opcode.DELETE_CONTAINER,
        Opcode.CHECK_WATCHES,
        Opcode.REMOVE_WATCHES,
        Opcode.SET_WATCHES,
        Opcode.PING,
        Opcode.AUTH,
        Opcode.CLOSE_SESSION,
    ):
        assert reply_body(opcode, None) == b""
        assert back(opcode, None) is None


@given(st.sampled_from(Opcode), st.binary(max_size=90))
def test_noise_as_a_body_is_malformed_at_worst(opcode: Opcode, noise: bytes) -> None:
    """A client that reads a broken server's answer gets a value or Malformed."""
    with suppress(Malformed):
        decode_body(opcode, noise)


@given(st.sampled_from([Opcode.GET_DATA, Opcode.GET_CHILDREN_2, Opcode.CREATE_2]), st.data())
def test_a_body_that_is_cut_is_malformed(opcode: Opcode, data: st.DataObject) -> None:
    """There is no shorter answer of the same opcode."""
    answers = {
        Opcode.GET_DATA: ZnodeView(b"x", 3, False, ZNODE.stat),
        Opcode.GET_CHILDREN_2: ("a", "b"),
        Opcode.CREATE_2: "/a",
    }
    body = reply_body(opcode, answers[opcode], ZNODE)

    with pytest.raises(Malformed):
        decode_body(opcode, body[: data.draw(st.integers(0, len(body) - 1))])


# --- multis ----------------------------------------------------------------------------


def test_the_results_of_a_multi_are_of_the_moment_of_each_part() -> None:
    """A Stat in a result is the one after its own part, and the result of any create but the
    plain one has the type of create2.
    """
    tree = open_session(empty_tree(), SESSION, Session(30_000))
    parts = (
        (Opcode.CREATE, Create("/a", b"")),
        (Opcode.CREATE_TTL, Create("/b", b"", lifetime_ms=1_000)),
        (Opcode.SET_DATA, SetData("/a", b"12", 0)),
        (Opcode.SET_DATA, SetData("/a", b"123", 1)),
        (Opcode.CHECK, Check("/a", 2)),
        (Opcode.DELETE, Delete("/a", 2)),
    )
    written = write(tree, SESSION, Multi(tuple(operation for _, operation in parts)))

    results = decode_body(Opcode.MULTI, multi_body([opcode for opcode, _ in parts], written))

    assert [opcode for opcode, _ in results] == [1, 15, 5, 5, 13, 2]
    stats = [result for opcode, result in results if opcode == Opcode.SET_DATA]
    assert [(found.version, found.data_length) for found in stats] == [(1, 2), (2, 3)]
    assert results[0][1] == "/a"
    path, created = results[1][1]
    assert path == "/b"
    assert type(created) is Stat
    assert created.czxid == written.tree.zxid
    assert results[4][1] is results[5][1] is None


def test_a_multi_that_fails_has_a_code_for_each_part() -> None:
    """Parts before the failed one have 0, it has its own code, those after it have -2."""
    failure = Failure(TransactionFailed, "/b", index=1, cause=Failure(BadVersion, "/b"))
    body = failed_multi_body(failure, 4)

    assert decode_body(Opcode.MULTI, body) == [(-1, 0), (-1, -103), (-1, -2), (-1, -2)]
    assert body.startswith(PART.pack(-1, False, 0) + int32(0) + PART.pack(-1, False, -103))
    assert body.endswith(END_OF_PARTS)


def test_each_part_of_a_multi_read_has_its_own_result() -> None:
    """A read that fails leaves the others as they are."""
    parts: list[GetData | GetChildren] = [
        GetData("/a"),
        GetChildren("/none"),
        GetChildren("/a"),
    ]
    answers = [ZnodeView(b"x", 3, False, ZNODE.stat), Failure(NoNode, "/none"), ("b", "c")]

    body = multi_read_body(parts, answers)

    assert decode_body(Opcode.MULTI_READ, body) == [
        (Opcode.GET_DATA, (b"x", ZNODE.stat)),
        (Opcode.ERROR, NoNode.code),
        (Opcode.GET_CHILDREN, ("b", "c")),
    ]


def test_an_empty_multi_has_an_empty_list_of_results() -> None:
    """The record at the end is all."""
    tree = open_session(empty_tree(), SESSION, Session(30_000))

    assert multi_body([], write(tree, SESSION, Multi(()))) == END_OF_PARTS
    assert decode_body(Opcode.MULTI, END_OF_PARTS) == []


def test_an_error_has_no_body_of_its_own() -> None:
    """The code is all that a client learns."""
    assert decode_reply(encode_reply(1, 2, NodeExists.code)) == Reply(1, 2, -110, b"")
