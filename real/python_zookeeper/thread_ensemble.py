"""An ensemble in a thread of this process, with the faults that can be injected into it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import TypeVar

from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.recorder import SILENT, Recorder
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.ports import HOST
from watchkeeper.real.python_zookeeper.listener import Listener, LoopClock

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
        if ports and len(ports) != servers:
            raise ValueError(f"{servers} servers need {servers} ports, not {len(ports)}")
        self._servers = servers
        self.settings = settings or EnsembleSettings()
        self._ports = tuple(ports) or (0,) * servers
        self._host = host
        self._data = data
        self._recorder = recorder
        self._thread: Thread | None = None
        self._loop = asyncio.new_event_loop()
        self._started: Future[None] = Future()
        self.ensemble: Ensemble
        """The servers; to be used in the loop's thread alone, by `call`."""
        self._listener: Listener
        self._stop_data: Callable[[], None] = lambda: None
        self.failure: BaseException | None = None
        """The error of the disk that has stopped the servers."""

    def __enter__(self) -> ThreadEnsemble:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The client address of each server."""
        return tuple(f"{self._host}:{port}" for port in self._listener.ports)

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
            loop.run_until_complete(self._begin())
        except BaseException as error:
            self._stop_data()
            loop.close()
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(self._end())
            loop.close()

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        clock = LoopClock(loop)
        tree, journal = None, None
        if self._data is not None:
            from watchkeeper.real.zookeeper_data.data_folder import DataFolder

            from watchkeeper.real.python_zookeeper.group_commit import GroupCommit

            folder = DataFolder.open(self._data)
            commits = GroupCommit(loop, folder, self._fail)
            self._stop_data = commits.close
            tree, journal = folder.tree, commits.add
        self.ensemble = Ensemble(
            clock,
            servers=self._servers,
            settings=self.settings,
            tree=tree,
            journal=journal,
            recorder=self._recorder,
        )
        if self._data is not None:
            commits.durable_up_to = self.ensemble.durable_up_to
        self._listener = Listener(self.ensemble, self._host)
        await self._listener.start(self._ports)

    async def _end(self) -> None:
        self._listener.stop()
        self.ensemble.stop()
        for _ in range(3):  # asyncio calls the callbacks of the closed connections
            await asyncio.sleep(0)
        self._stop_data()

    def _fail(self, error: BaseException) -> None:
        """The disk has failed: nothing more can be promised."""
        self.failure = EnvironmentProblem(
            f"the log in {self._data} cannot be written: {error}; the ZooKeeper stops, and "
            "answers nothing that is not on the disk"
        )
        self._stop_data = lambda: None
        self._loop.stop()
