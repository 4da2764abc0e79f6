"""Blocking disk operations run in threads, or inline if that is faster."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.log.messages import TEST
from tests.support.patience import PATIENCE_S
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.settings import BrokerLogSettings, LogSettings
from watchkeeper.model.log.storage import Flush
from watchkeeper.real.broker.disk_worker import (
    LONGEST_S,
    MOST,
    QUICK_S,
    SLOW_S,
    SMALL_BYTES,
    DiskWorker,
)
from watchkeeper.real.broker.server import Broker
from watchkeeper.real.broker.settings import BrokerSettings
from watchkeeper.real.process.tasks import NOT_YET
from watchkeeper.real.storage.file_storage import FileStorage

HERE = threading.main_thread().name


def here(effect: Any) -> str:
    """An operation that returns its thread and takes as long as requested."""
    if isinstance(effect, Exception):
        raise effect
    if isinstance(effect, threading.Barrier):
        effect.wait(PATIENCE_S)
    else:
        time.sleep(effect)
    return threading.current_thread().name


@contextmanager
def working() -> Iterator[DiskWorker]:
    """A disk worker with that operation, in the running loop."""
    disk = DiskWorker(here)
    yield disk
    disk.close()


def test_what_is_slow_is_done_in_threads_side_by_side() -> None:
    async def main() -> None:
        with working() as disk:
            together = threading.Barrier(MOST)
            names = await asyncio.gather(*(disk.submit(together) for _ in range(MOST)))
        assert len(set(names)) == MOST
        assert HERE not in names

    asyncio.run(main())


def test_more_than_there_are_threads_wait_for_one_another() -> None:
    async def main() -> None:
        with working() as disk:
            names = await asyncio.gather(*(disk.submit(0.01) for _ in range(5 * MOST)))
        assert len(set(names)) <= MOST

    asyncio.run(main())


def test_an_error_is_raised_for_the_caller() -> None:
    async def main() -> None:
        with working() as disk:
            with pytest.raises(OSError, match="on purpose"):
                await disk.submit(OSError("on purpose"))
            assert await disk.submit(0.0) != HERE

    asyncio.run(main())


def test_who_is_ended_while_it_waits_is_not_answered() -> None:
    async def main() -> None:
        with working() as disk:
            disk.submit(0.05).cancel()
            assert await disk.submit(0.1) != HERE

    asyncio.run(main())


def test_its_threads_end_with_it() -> None:
    async def main() -> None:
        before = set(threading.enumerate())
        with working() as disk:
            await asyncio.gather(*(disk.submit(0.01) for _ in range(MOST)))
            begun = set(threading.enumerate()) - before
            assert len(begun) == MOST
        for thread in begun:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    asyncio.run(main())


def test_operations_that_are_quick_on_average_run_inline() -> None:
    """Not after a slow operation; other kinds of operations have an average of their own."""

    async def main() -> None:
        with working() as disk:
            for number in range(100):
                assert not disk.is_quick(float) or number > 10
                disk._learn(0.0, QUICK_S / 2)
            assert disk.is_quick(float)
            assert not disk.is_quick(int)
            assert disk.do(SLOW_S) == HERE
            assert not disk.is_quick(float)

    asyncio.run(main())


def test_in_one_turn_of_the_loop_not_too_much_is_done_on_the_spot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0

    def takes(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    async def main() -> None:
        disk = DiskWorker(takes)
        for _ in range(100):
            disk._learn(0.0, 0.0)
        for _ in range(3):
            began_s = now_s
            while disk.is_quick(float):
                disk.do(QUICK_S / 4)
            assert now_s - began_s == pytest.approx(LONGEST_S)
            await asyncio.sleep(0)
        assert disk.is_quick(float)

    monkeypatch.setattr("watchkeeper.real.broker.disk_worker.perf_counter", lambda: now_s)
    asyncio.run(main())


class Told(FileStorage):
    """Files whose flushes only record the thread in which they run."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.slow_s = 0.0
        self.flushed_in: list[str] = []
        self._answers[Flush] = self._tell

    def _tell(self, effect: Flush) -> None:
        time.sleep(self.slow_s)
        self.flushed_in.append(threading.current_thread().name)


def test_a_broker_flushes_inline_while_its_disk_is_quick(tmp_path: Path) -> None:
    """After one slow flush, the following flushes run in a thread."""
    storage = Told(tmp_path / "logs")
    settings = BrokerLogSettings(default=LogSettings(flush_messages=1))

    async def main() -> None:
        broker = Broker(
            BrokerSettings(tmp_path / "logs", broker_id=0, port=0, logs=settings),
            lambda notification: None,
            storage=storage,
        )
        await broker.open()
        try:
            log = await broker._tasks.run(broker.logs.get_or_create("clicks", 0), "a test")
            await append_often(broker, log)
        finally:
            await broker.close()

    async def append_often(broker: Broker, log: Log) -> None:
        def append() -> Any:
            return broker._tasks.run(log.append(TEST), "a test")

        while HERE not in storage.flushed_in:
            assert len(storage.flushed_in) < 1000, "it does not learn that its disk is quick"
            await append()
        assert storage.flushed_in.index(HERE) > 10
        large = Flush("clicks-0/" + "0" * 20 + ".kafka", SMALL_BYTES + 1)
        assert broker._disk._flush_if_quick(large) is NOT_YET
        storage.slow_s = SLOW_S
        await append()
        storage.flushed_in.clear()
        await append()
        assert HERE not in storage.flushed_in

    asyncio.run(main())
