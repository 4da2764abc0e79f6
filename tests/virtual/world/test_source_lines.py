"""Each request, section and event of a world has the line of the user's code in the trace."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

from kazoo.client import KazooClient
from kazoo.recipe.watchers import ChildrenWatch

from watchkeeper.model.trace.trace import LINE
from watchkeeper.virtual import World
from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.run import Case, run_once
from watchkeeper.virtual.world.world import WorldSettings


def once(user: Any) -> Outcome:
    """One process that runs this."""
    case = Case("a test", lambda world: world.process("user", user, world), WorldSettings())
    outcome = run_once(case, FirstInFirstOut(), "fifo", seed=0)
    assert not outcome.deaths, outcome.tracebacks
    return outcome


def lines_of(outcome: Outcome, kind: str) -> list[str]:
    """The code of the lines of all events of a kind, "" for an event without one."""
    return [
        str(row[-1].get(LINE, "")).partition(": ")[2] for row in outcome.rows if row[2] == kind
    ]


def connected(world: World) -> Any:
    client = KazooClient(hosts=world.hosts)
    client.start()
    return client


def test_a_request_has_the_line_that_calls_kazoo() -> None:
    """Also one of a recipe, which sends several; and one of another thread of the process."""

    def user(world: World) -> None:
        client = connected(world)
        client.create("/a")
        lock = client.Lock("/lock", "me")
        lock.acquire()
        thread = threading.Thread(target=lambda: client.set("/a", b"1"))
        thread.start()
        thread.join()
        client.stop()

    outcome = once(user)
    lines = lines_of(outcome, "request")
    assert lines[0] == 'client.create("/a")'
    assert lines.count("lock.acquire()") >= 3
    assert 'thread = threading.Thread(target=lambda: client.set("/a", b"1"))' in lines
    assert all(":" in row[-1][LINE] for row in outcome.rows if LINE in row[-1])


def test_a_request_of_a_library_has_none() -> None:
    """The watcher of a recipe reads the children again in a thread of kazoo."""

    def user(world: World) -> None:
        client = connected(world)
        client.ensure_path("/a")
        ChildrenWatch(client, "/a", lambda children: None)
        client.create("/a/b")
        time.sleep(1)
        client.stop()

    outcome = once(user)
    reads = [
        str(row[-1].get(LINE, ""))
        for row in outcome.rows
        if row[2] == "request" and row[-1]["op"] == "children"
    ]
    assert reads[0].endswith('ChildrenWatch(client, "/a", lambda children: None)')
    assert reads[1:] == [""]


def test_sections_and_own_events_have_a_line() -> None:
    """The one that enters the section, and the one that records."""

    def user(world: World) -> None:
        with world.section("alone"):
            world.record("thought", about="lunch")

    outcome = once(user)
    assert lines_of(outcome, "entered") == ['with world.section("alone"):']
    assert lines_of(outcome, "thought") == ['world.record("thought", about="lunch")']


def test_a_fingerprint_is_of_what_happens() -> None:
    """A line that moves in its file leaves it as it is."""
    outcome = once(lambda world: connected(world).create("/a"))
    moved = [
        (*row[:-1], {**row[-1], LINE: "elsewhere.py:1"}) if LINE in row[-1] else row
        for row in outcome.rows
    ]

    assert moved != list(outcome.rows)
    assert replace(outcome, rows=moved).fingerprint == outcome.fingerprint
