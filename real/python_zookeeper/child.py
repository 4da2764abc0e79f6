"""A ZooKeeper in a process of its own, started and controlled by `process_ensemble`.

Its one argument, the order, is JSON (`Order`). The first line on standard output is JSON with
the ports, or with the error that keeps it from serving. Then each line on standard input is a
verb of `control` with its arguments, answered by a line with the result or the error. The
process ends when its input ends, or when its parent is gone: so it cannot outlive the process
that started it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.model.ensemble.control import ControlError
from watchkeeper.model.ensemble.history import History
from watchkeeper.model.ensemble.recorder import SILENT
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.python_zookeeper.orders import RECORD, STOP, Order, Request, Result
from watchkeeper.real.python_zookeeper.service import Service
from watchkeeper.real.python_zookeeper.write_record import WriteRecord

INPUT, OUTPUT = 0, 1
POLL_S = 0.5
"""Interval at which it compares its parent; the end of its input is noticed at once."""
USAGE = 4


class Child:
    """The service of this process, and the lines that control it."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._parent = os.getppid()
        self._line = b""
        self._ended = asyncio.Event()
        self._is_orphan = False
        """Whether the parent has died, and not ended this process."""
        self._problem: EnvironmentProblem | None = None
        self._record = WriteRecord()
        recorder = self._record if order.has_record else SILENT
        self._service = Service(
            len(order.ports),
            settings=order.settings,
            ports=order.ports,
            data=None if order.data is None else Path(order.data),
            recorder=History() if order.has_history else recorder,
            failed=self._fail,
        )

    async def run(self) -> int:
        """Serve until the input ends; returns the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._ended.set)
        try:
            await self._service.start()
        except EnvironmentProblem as problem:
            _write(Result(error=str(problem)))
            return USAGE
        _write(Result(list(self._service.ports)))
        loop.add_reader(INPUT, self._read)
        while not self._ended.is_set():
            await self._wait()
        await self._service.stop()
        if self._is_orphan and self._order.removed:
            shutil.rmtree(self._order.removed, ignore_errors=True)
        if self._problem is not None:
            print(self._problem, file=sys.stderr)
        return 0 if self._problem is None else USAGE

    async def _wait(self) -> None:
        try:
            await asyncio.wait_for(self._ended.wait(), POLL_S)
        except TimeoutError:
            # A fork of the parent may hold the input open after the parent has died.
            if os.getppid() != self._parent:
                self._is_orphan = True
                self._ended.set()

    def _fail(self, problem: EnvironmentProblem) -> None:
        self._problem = problem
        self._ended.set()

    def _read(self) -> None:
        data = os.read(INPUT, 65536)
        if not data:
            asyncio.get_running_loop().remove_reader(INPUT)
            self._is_orphan = not self._ended.is_set()
            self._ended.set()
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            request = msgspec.json.decode(line, type=Request)
            if request.verb == STOP:
                self._ended.set()
            else:
                _write(self._answer(request))

    def _answer(self, request: Request) -> Result:
        if request.verb == RECORD:
            return Result(self._record.rows)
        try:
            return Result(self._service.control.do(request.verb, request.arguments))
        except ControlError as error:
            return Result(error=str(error))


def _write(result: Any) -> None:
    line = memoryview(msgspec.json.encode(result) + b"\n")
    while line:
        line = line[os.write(OUTPUT, line) :]


def main(order: str) -> int:
    """Run the process; returns its exit code."""
    child = msgspec.json.decode(order, type=Order)

    async def run() -> int:
        return await Child(child).run()

    return asyncio.run(run())
