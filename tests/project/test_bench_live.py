"""What the benches of the live world find, on cases made by hand: rest, ways, kills, leaks."""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests import HOME
from tests.support.patience import PATIENCE_S

pytest.importorskip("kazoo")
sys.path.append(str(HOME / "bench"))

import soak
from bench.support.contenders import critical_path, operations_of
from bench.support.group_join import Change, Group, MemberTrace, Row, change_of

from watchkeeper.model.trace.kinds import EventKind

# --- rest ------------------------------------------------------------------------------


class Still(Group):
    """A group of members that hold what they are said to hold."""

    rests = frozenset({EventKind.WAITING})
    prepare = start = read_registry = registers = cost = None  # type: ignore[assignment]

    def __init__(self, partitions: int, owns: Mapping[int, int]) -> None:
        super().__init__("still", None, partitions)
        for session, number in owns.items():
            self.traces[f"member/{session}"] = trace = MemberTrace(Path("none"))
            trace.last = Row(0, EventKind.WAITING, session, {})
            trace.owns = number


Still.__abstractmethods__ = frozenset()


@pytest.mark.parametrize(
    ("owns", "held", "why"),
    [
        ({1: 2, 2: 1}, {"a": 1, "b": 1, "c": 2}, ""),
        ({1: 2, 2: 1}, {"a": 1, "b": 1}, "1 partitions are not held by exactly one"),
        ({1: 1, 2: 1}, {"a": 1, "b": 1, "c": 2}, "member/1 reports that it holds 1, and holds 2"),
        ({1: 1, 2: 1}, {"a": 1, "b": 2, "c": 9}, "session 0x9 holds some, and is no member's"),
        ({1: 3, 2: 0}, {"a": 1, "b": 1, "c": 1}, "member/1 holds 3, which is not its share"),
    ],
)
def test_a_group_at_rest(owns: Mapping[int, int], held: Mapping[str, int], why: str) -> None:
    """Everything is held once, by members, in equal shares, as they say themselves."""
    assert Still(3, owns)._why_not_settled(held) == why


def test_what_has_changed_hands() -> None:
    """Losers and gainers are counted once, however much they lose or gain."""
    change = change_of({"a": 1, "b": 1, "c": 2, "d": 2}, {"a": 3, "b": 3, "c": 2, "d": 1})

    assert change == Change(moved=3, losers=2, gainers=2)


# --- the way to rest -------------------------------------------------------------------


def asks(at_us: int, purpose: str, op: str = "get", **more: Any) -> Row:
    return Row(at_us, EventKind.REQUEST, 1, {"purpose": purpose, "op": op, **more})


def hears(at_us: int, what: str) -> Row:
    return Row(at_us, EventKind.NOTIFIED, 1, {"what": what})


def of_kind(at_us: int, kind: str, **detail: Any) -> Row:
    return Row(at_us, kind, 1, detail)


def test_the_way_to_rest_goes_through_a_process_that_was_waited_for() -> None:
    """Registered, looked, let go, claimed: what others did meanwhile is not on it."""
    rows = {
        "new": [
            asks(10, "register"),
            asks(20, "read members"),
            of_kind(30, EventKind.WAITING),
            hears(100, "deleted"),
            of_kind(101, EventKind.WOKEN),
            asks(102, "claim"),
            of_kind(110, EventKind.WAITING),
        ],
        "old": [
            hears(12, "children changed"),
            of_kind(13, EventKind.WOKEN),
            asks(40, "read members"),
            of_kind(50, EventKind.SLEEPING, ms=2000),
            asks(90, "release"),
            asks(103, "read offsets"),
            of_kind(105, EventKind.WAITING),
        ],
        "quick": [
            hears(12, "children changed"),
            of_kind(13, EventKind.WOKEN),
            asks(20, "release"),
        ],
    }

    assert critical_path(rows, "new") == (4, 2.0)


def test_a_batch_is_as_many_requests_as_are_in_it() -> None:
    """A multi is one request, whatever is in it."""
    assert operations_of(asks(0, "claim", "pipelined", number=7)) == 7
    assert operations_of(asks(0, "claim", "multi", number=7)) == 1


# --- kills -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_kills_strike_who_is_there_and_never_the_quorum_for_long(seed: int) -> None:
    """As many as requested; every process returns; two servers are down for under a second."""
    timeline = soak.Timeline(Random(seed))
    timeline.draw(40)
    entries = soak.fields_of(timeline, "0.7", 10.0)["timeline"][1:]
    down: dict[str, int] = {}
    two_since, longest_ms = 0, 0
    for entry in entries:
        at_ms = int(entry["at"].removesuffix("ms"))
        name = entry.get("crash") or entry["restart"]
        assert ("crash" in entry) is (name not in down)
        servers = sum(process.startswith("zookeeper") for process in down)
        if "crash" in entry:
            down[name] = at_ms
        else:
            del down[name]
        after = sum(process.startswith("zookeeper") for process in down)
        assert after < 3
        if after == 2:
            two_since = at_ms
        elif servers == 2:
            longest_ms = max(longest_ms, at_ms - two_since)
        assert sum(process.startswith(soak.GROUP) for process in down) < soak.CONSUMERS
        assert sum(process.startswith("broker") for process in down) < soak.BROKERS

    assert down == {}
    assert longest_ms < 1000
    assert timeline.kills.total() == 40
    assert set(timeline.kills) == {"consumer", "broker", "server"}


# --- what is left ----------------------------------------------------------------------


def test_what_a_round_leaves_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A thread, a file, a folder, a port, a process: each alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(soak, "PATIENCE_S", 0.0)
    before = soak.here()
    assert soak.left_behind(before, []) == []

    (tmp_path / "watchkeeper-live-x").mkdir()
    go = threading.Event()
    thread = threading.Thread(target=go.wait)
    thread.start()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        found = soak.left_behind(before, [port])
    go.set()
    thread.join(PATIENCE_S)

    assert found == [
        "left behind: 1 threads",
        "left behind: 1 files",
        "left behind: 1 folders",
        f"left behind: 1 ports, {port} among them",
    ]
