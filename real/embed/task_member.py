"""Clients inside an application: threads on a loop, with or without a program beside them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NoReturn

from model.asks import Tell
from model.program import Program
from real.account import Account
from real.callers import Callers
from real.driver import Fetching
from real.joint import JointDriver
from real.living import Connect, Halt, LiveDriver, Member
from real.loops import Loop
from real.threads import Threads


class LiveJointDriver(LiveDriver, JointDriver):
    """A driver that bears with turns that fail, and has threads beside it."""


class Companion(Member):
    """A program inside an application, and the threads that share its memory."""

    driver: LiveJointDriver

    def __init__(
        self,
        program: Program,
        hosts: str,
        *,
        name: str,
        logger: logging.Logger,
        session_timeout_ms: int = 6000,
        kazoo: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            program,
            hosts,
            name=name,
            logger=logger,
            session_timeout_ms=session_timeout_ms,
            kazoo=kazoo,
        )
        self.callers = Callers(name, self.driver.threads, self.driver.loop)

    def make_driver(
        self, program: Program, connect: Connect, fetching: Fetching | None
    ) -> LiveDriver:
        """The driver has threads beside it."""
        return LiveJointDriver(program, self.account, connect, self._thread_failed, fetching)

    def _thread_failed(self, name: str, error: Exception) -> None:
        """What a thread does not catch is a fault: its process cannot go on without it."""
        self.logger.error("%s: %s has failed", self.name, name, exc_info=error)
        self._error = error
        self.driver.queue.put(Halt())

    def _clean_up(self) -> None:
        super()._clean_up()
        self.callers.end()
        self.driver.end_threads()


class Alone:
    """Threads on a loop, and no program beside them: for clients that need no ZooKeeper."""

    def __init__(self, name: str, logger: logging.Logger) -> None:
        self._logger = logger
        self.name = name
        self.account = Account(name, logger)
        self._loop = Loop(name)
        self._threads = Threads(remind=_nobody, failed=self._thread_failed)
        self._threads.answer_too(Tell, self._tell)
        self.callers = Callers(name, self._threads, self._loop)
        self._is_over = False

    def close(self) -> None:
        """End every thread."""
        if self._is_over:
            return
        self._is_over = True
        self.callers.end()
        self._loop.begin(self._threads.end()).result()
        self._loop.close()

    def _thread_failed(self, name: str, error: Exception) -> None:
        self._logger.error("%s: %s has failed", self.name, name, exc_info=error)

    def _tell(self, ask: Tell) -> None:
        self.account.write(ask.kind, dict(ask.detail), topic=ask.topic)


def _nobody(note: object) -> NoReturn:
    """No note can come, where there is no program to take it."""
    raise AssertionError(note)
