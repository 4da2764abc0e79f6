"""A live program and the tasks beside it share state, queues and ZooKeeper."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from watchkeeper.model.actor.effects import close_session, emit, new_session, next_event, sleep
from watchkeeper.model.actor.errors import NoNode
from watchkeeper.model.actor.events import LEAVE
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.rpc import Call, Unreachable
from watchkeeper.model.actor.tasks import Remind, Start, put, take
from watchkeeper.model.log.format.requests import FetchRequest
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Row
from watchkeeper.real.client.client import Client
from watchkeeper.real.ports import free_ports
from watchkeeper.real.process.task_driver import TaskDriver
from watchkeeper.real.trace.writer import RowWriter
from watchkeeper.real.zookeeper.ensemble import Ensemble

Turn = Callable[[ZooKeeper], Any]


class Played:
    """The result of a program and its tasks."""

    def __init__(self, hosts: str, turn: Turn) -> None:
        self.rows: list[Row] = []
        self.failed: list[tuple[str, Exception]] = []

        async def whole(zk: ZooKeeper, me: None, memory: None) -> Ended:
            await new_session()
            await turn(zk)
            await close_session()
            return Ended("left")

        driver = TaskDriver(
            Program(whole, None, None),
            RowWriter("joint", "", 0, self.rows.append),
            lambda hear: Client(hosts, "", 6000, hear),
            lambda *what: self.failed.append(what),
        )
        try:
            assert driver.run() == Ended("left")
        finally:
            driver.end_tasks()

    def kinds(self) -> list[str]:
        """The kinds of the written events."""
        return [row[2] for row in self.rows]


def test_a_program_and_its_tasks_share_queues(zookeeper: Ensemble) -> None:
    """In both directions, and a notification reaches the program's inbox."""

    async def echo() -> None:
        while (item := await take("to thread")) != "end":
            await put("to program", item * 2, 1)
        await Remind(LEAVE)
        await emit("said", what="bye")

    async def turn(zk: ZooKeeper) -> None:
        await Start("echo", echo)
        for number in (1, 2, 3):
            assert await put("to thread", number, 1)
            assert await take("to program") == 2 * number
        assert await take("to program", timeout_ms=0) is None
        await put("to thread", "end", 1)
        assert await next_event() == LEAVE

    played = Played(zookeeper.hosts, turn)
    assert played.failed == []
    assert "said" in played.kinds()


def test_tasks_use_zookeeper(zookeeper: Ensemble) -> None:
    """In the program's own session; a failure is raised where it was awaited."""

    async def writes(zk: ZooKeeper) -> None:
        await zk.create("/joint", b"first")
        await zk.set("/joint", b"second")
        with pytest.raises(NoNode):
            await zk.get("/none")
        await put("done", await zk.pipelined([zk.exists("/joint"), zk.exists("/none")]), 1)

    async def turn(zk: ZooKeeper) -> None:
        await Start("writes", lambda: writes(zk))
        there, missing = await take("done")
        assert there.mine is False
        assert missing is None
        assert (await zk.get("/joint")).data == b"second"
        await zk.delete("/joint")

    played = Played(zookeeper.hosts, turn)
    assert played.failed == []
    assert (
        played.kinds().count(EventKind.REQUEST) == played.kinds().count(EventKind.RESPONSE) == 6
    )


def test_no_task_is_interrupted_between_two_effects(zookeeper: Ensemble) -> None:
    """Neither the program by its tasks nor the reverse: their common count is right."""
    shared = {"count": 0, "inside": 0}

    def count() -> None:
        shared["inside"] += 1
        assert shared["inside"] == 1
        before = shared["count"]
        time.sleep(0.0001)  # lets any other task run
        shared["count"] = before + 1
        shared["inside"] -= 1

    async def work() -> None:
        for _ in range(300):
            count()
            await sleep(0)
        await put("done", True, 9)

    async def turn(zk: ZooKeeper) -> None:
        for number in range(3):
            await Start(f"{number}", work)
        for _ in range(300):
            count()
            await take("nothing", timeout_ms=0)
        for _ in range(3):
            await take("done")

    assert Played(zookeeper.hosts, turn).failed == []
    assert shared["count"] == 1200


def test_errors_of_tasks_are_reported_and_errors_of_calls_raised(zookeeper: Ensemble) -> None:
    """A failing task is named; a failing call of the program is raised there."""
    (port,) = free_ports(1)

    async def fails() -> None:
        raise RuntimeError("on purpose")

    async def turn(zk: ZooKeeper) -> None:
        await Start("fails", fails)
        with pytest.raises(Unreachable):
            await Call(f"127.0.0.1:{port}", FetchRequest("test", 0, 0, 100))

    ((name, error),) = Played(zookeeper.hosts, turn).failed
    assert (name, str(error)) == ("fails", "on purpose")
