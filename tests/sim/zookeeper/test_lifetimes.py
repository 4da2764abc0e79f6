"""Containers and TTLs in a simulated ensemble: its leader deletes what is due."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.zookeeper.programs import Run, S, Script, play
from watchkeeper.model.actor.effects import new_session, next_event
from watchkeeper.model.actor.operations import (
    CONTAINER_MS,
    Create,
    Delete,
    Exists,
    Operation,
    ZooKeeper,
)
from watchkeeper.model.trace.kinds import EventKind

CONTAINER = Create("/c", lifetime_ms=CONTAINER_MS)


def script(*operations: Operation[Any]) -> Script:
    """A client that makes these requests and then listens."""

    async def client(zk: ZooKeeper) -> None:
        await new_session()
        for operation in operations:
            await operation
        while True:
            await next_event()

    return client


def deletions(run: Run) -> list[tuple[str, int]]:
    """What was deleted, and in which second."""
    return [
        (change[1], event.t_us // S)
        for event in run.events(EventKind.APPLIED)
        for change in event.detail["did"]
        if change[0] == "deleted"
    ]


@pytest.mark.parametrize("servers", [1, 3])
def test_a_container_goes_at_the_next_full_minute(servers: int) -> None:
    """The leader deletes an empty container, and a client that watches hears of it."""
    operations = [CONTAINER, Create("/c/a"), Exists("/c", watch=True), Delete("/c/a")]

    run = play(script(*operations), servers=servers, settle="130s")

    assert [path for path, _ in deletions(run)] == ["/c/a", "/c"]
    assert deletions(run)[1][1] == 60
    assert [
        event.detail["path"]
        for event in run.events(EventKind.NOTIFIED, node="clients/0")
        if "path" in event.detail
    ] == ["/c"]


def test_what_is_not_due_stays() -> None:
    """A container that was never used and a TTL that has not passed outlive many looks."""
    run = play(script(CONTAINER, Create("/t", lifetime_ms=10_000_000)), settle="400s")

    assert deletions(run) == []


def test_a_ttl_passes() -> None:
    """A znode whose TTL has passed by a look is deleted then; one with a longer TTL, later."""
    run = play(
        script(Create("/short", lifetime_ms=1000), Create("/long", lifetime_ms=61_000)),
        settle="200s",
    )

    assert deletions(run) == [("/short", 60), ("/long", 120)]


def test_a_leader_that_stands_still_deletes_nothing() -> None:
    """A look that falls into the pause of the only server is missed; the next one is not."""
    run = play(
        script(CONTAINER, Create("/c/a"), Delete("/c/a")),
        servers=1,
        timeline=[{"pause": "zookeeper/1", "at": "59s", "for": "2s"}],
        settle="200s",
    )

    assert deletions(run)[-1] == ("/c", 120)
