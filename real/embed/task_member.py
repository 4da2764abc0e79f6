"""Clients inside an application: tasks on an event loop, with or without a program."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NoReturn

from watchkeeper.model.actor.effects import Emit
from watchkeeper.model.actor.program import Program
from watchkeeper.real.embed.counters import Counters
from watchkeeper.real.embed.member import Connect, Halt, LiveDriver, Member
from watchkeeper.real.process.driver import Fetching
from watchkeeper.real.process.loop_thread import Loop
from watchkeeper.real.process.sync_calls import SyncCalls
from watchkeeper.real.process.task_driver import TaskDriver
from watchkeeper.real.process.tasks import Tasks


class LiveTaskDriver(LiveDriver, TaskDriver):
    """A driver that survives turns that fail, and has tasks beside its program."""


class TaskMember(Member):
    """A program inside an application, and the tasks that share its memory."""

    driver: LiveTaskDriver

    def __init__(
        self,
        program: Program,
        hosts: str,
        *,
        name: str,
        logger: logging.Logger,
        session_timeout_ms: int = 6000,
        kazoo: Mapping[str, Any] | None = None,
        resends_watches: bool = False,
    ) -> None:
        super().__init__(
            program,
            hosts,
            name=name,
            logger=logger,
            session_timeout_ms=session_timeout_ms,
            kazoo=kazoo,
            resends_watches=resends_watches,
        )
        self.callers = SyncCalls(name, self.driver.tasks, self.driver.loop)

    def make_driver(
        self, program: Program, connect: Connect, fetching: Fetching | None
    ) -> LiveDriver:
        """Return a driver that runs tasks beside the program."""
        return LiveTaskDriver(program, self.account, connect, self._thread_failed, fetching)

    def _thread_failed(self, name: str, error: Exception) -> None:
        """Halt the member: its program cannot continue without the failed task."""
        self.logger.error("%s: %s has failed", self.name, name, exc_info=error)
        self._error = error
        self.driver.queue.put(Halt())

    def _clean_up(self) -> None:
        super()._clean_up()
        self.callers.end()
        self.driver.end_tasks()


class Alone:
    """Tasks on an event loop without a program: for clients that need no ZooKeeper."""

    def __init__(self, name: str, logger: logging.Logger) -> None:
        self._logger = logger
        self.name = name
        self.account = Counters(name, logger)
        self._loop = Loop(name)
        self._threads = Tasks(remind=_refuse, failed=self._thread_failed)
        self._threads.answer_immediately(Emit, self._tell)
        self.callers = SyncCalls(name, self._threads, self._loop)
        self._is_over = False

    def close(self) -> None:
        """End every task, and the loop."""
        if self._is_over:
            return
        self._is_over = True
        self.callers.end()
        self._loop.begin(self._threads.end()).result()
        self._loop.close()

    def _thread_failed(self, name: str, error: Exception) -> None:
        """An error that a thread does not catch is a fault; its callers would wait in vain."""
        self._logger.error("%s: %s has failed", self.name, name, exc_info=error)
        self.callers.end(f"{name} has failed: {type(error).__name__}: {error}")

    def _tell(self, effect: Emit) -> None:
        self.account.write(effect.kind, dict(effect.detail), topic=effect.topic)


def _refuse(notification: object) -> NoReturn:
    """Refuse a notification: there is no program to receive it."""
    raise AssertionError(notification)
