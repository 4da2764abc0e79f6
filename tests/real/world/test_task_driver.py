"""A live program and the threads beside it: they share memory, queues and ZooKeeper."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from model.answers import LEAVE
from model.asks import close_session, new_session, next_note, sleep, tell
from model.calls import Call, Unreachable
from model.errors import NoNode
from model.log.requests import FetchRequest
from model.operations import ZooKeeper
from model.program import Ended, Program
from model.threads import Remind, Start, put, take
from model.trace import Row
from real.client import Client
from real.diary import Notes
from real.ensemble import Ensemble
from real.joint import JointDriver
from real.ports import free_ports

Turn = Callable[[ZooKeeper], Any]


class Played:
    """What a program and its threads have left behind."""

    def __init__(self, hosts: str, turn: Turn) -> None:
        self.rows: list[Row] = []
        self.failed: list[tuple[str, Exception]] = []

        async def whole(zk: ZooKeeper, me: None, memory: None) -> Ended:
            await new_session()
            await turn(zk)
            await close_session()
            return Ended("left")

        driver = JointDriver(
            Program(whole, None, None),
            Notes("joint", "", 0, self.rows.append),
            lambda hear: Client(hosts, "", 6000, hear),
            lambda *what: self.failed.append(what),
        )
        try:
            assert driver.run() == Ended("left")
        finally:
            driver.end_threads()

    def kinds(self) -> list[str]:
        """What was taken down."""
        return [row[2] for row in self.rows]


def test_a_program_and_its_threads_share_queues(zookeeper: Ensemble) -> None:
    """In both directions, and a note comes to the program's inbox."""

    async def echo() -> None:
        while (item := await take("to thread")) != "end":
            await put("to program", item * 2, 1)
        await Remind(LEAVE)
        await tell("said", what="bye")

    async def turn(zk: ZooKeeper) -> None:
        await Start("echo", echo)
        for number in (1, 2, 3):
            assert await put("to thread", number, 1)
            assert await take("to program") == 2 * number
        assert await take("to program", timeout_ms=0) is None
        await put("to thread", "end", 1)
        assert await next_note() == LEAVE

    played = Played(zookeeper.hosts, turn)
    assert played.failed == []
    assert "said" in played.kinds()


def test_threads_ask_zookeeper(zookeeper: Ensemble) -> None:
    """Over the program's own session; what fails is raised where it was awaited."""

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
    assert played.kinds().count("asks") == played.kinds().count("answers") == 6


def test_nobody_is_disturbed_between_two_asks(zookeeper: Ensemble) -> None:
    """Neither the program by its threads nor they by it: what both count is right."""
    shared = {"count": 0, "inside": 0}

    def count() -> None:
        shared["inside"] += 1
        assert shared["inside"] == 1
        before = shared["count"]
        time.sleep(0.0001)  # whoever may go on now, does
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


def test_what_a_thread_raises_is_heard_of_and_a_program_catches(zookeeper: Ensemble) -> None:
    """A thread that fails is named; a call of the program's that fails is raised there."""
    (port,) = free_ports(1)

    async def fails() -> None:
        raise RuntimeError("on purpose")

    async def turn(zk: ZooKeeper) -> None:
        await Start("fails", fails)
        with pytest.raises(Unreachable):
            await Call(f"127.0.0.1:{port}", FetchRequest("test", 0, 0, 100))

    ((name, error),) = Played(zookeeper.hosts, turn).failed
    assert (name, str(error)) == ("fails", "on purpose")
