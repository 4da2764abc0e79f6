"""An ensemble in a thread of this process, with the faults that can be injected into it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.recorder import SILENT, Recorder
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.ports import HOST
from watchkeeper.real.python_zookeeper.service import Service

T = TypeVar("T")

TIMEOUT_S = 10.0


class ThreadEnsemble:
    """A ZooKeeper that listens on the loopback as long as it is started."""

    def __init__(
        self,
        servers: int = 1,
        *,
        settings: EnsembleSettings | None = None,
        ports: Sequence[int] = (),
        host: str = HOST,
        data: Path | None = None,
        recorder: Recorder = SILENT,
    ) -> None:
        """Prepare servers that are down; without `ports` each takes any free one.

        With `data` every write is durable in that folder before it is answered.
        """
        self._service = Service(
            servers,
            settings=settings,
            ports=ports,
            host=host,
            data=data,
            recorder=recorder,
            failed=self._fail,
        )
        self.settings = self._service.settings
        self._host = host
        self._thread: Thread | None = None
        self._loop = asyncio.new_event_loop()
        self._started: Future[None] = Future()
        self.failure: EnvironmentProblem | None = None
        """The error of the disk that has stopped the servers."""

    def __enter__(self) -> ThreadEnsemble:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def ensemble(self) -> Ensemble:
        """The servers; to be used in the loop's thread alone, by `call`."""
        return self._service.ensemble

    def do(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a verb of `control`; raises ControlError for what cannot be done."""
        return self.call(lambda: self._service.control.do(verb, arguments))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The client address of each server."""
        return tuple(f"{self._host}:{port}" for port in self._service.ports)

    @property
    def hosts(self) -> str:
        """All addresses as a ZooKeeper connection string."""
        return ",".join(self.addresses)

    def start(self) -> None:
        """Start the servers; returns when they serve.

        Raises EnvironmentProblem for a port in use or a data folder that cannot be used.
        """
        self._thread = Thread(target=self._run, name="zookeeper", daemon=True)
        self._thread.start()
        self._started.result()

    def stop(self) -> None:
        """Close every connection and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()

    def call(self, work: Callable[[], T]) -> T:
        """Run a function in the loop's thread and return its result."""
        if self._thread is None:
            raise RuntimeError("the ZooKeeper does not run; start it before it is used")
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result(TIMEOUT_S)

    # --- in the thread -----------------------------------------------------------------

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._service.start())
        except BaseException as error:
            loop.close()
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(self._service.stop())
            loop.close()

    def _fail(self, problem: EnvironmentProblem) -> None:
        self.failure = problem
        self._loop.stop()
