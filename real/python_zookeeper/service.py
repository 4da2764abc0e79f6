"""An ensemble that listens, in a loop of its world: with its data folder and its faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from watchkeeper.model.ensemble.control import Control
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.history import History
from watchkeeper.model.ensemble.recorder import SILENT, Recorder
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.ports import HOST
from watchkeeper.real.python_zookeeper.listener import Listener, LoopClock

if TYPE_CHECKING:
    from watchkeeper.real.python_zookeeper.group_commit import GroupCommit
    from watchkeeper.real.zookeeper_data.data_folder import DataFolder

CALLBACK_ROUNDS = 3
"""How many turns of the loop asyncio needs until the closed connections know it."""


class Service:
    """The servers of one ZooKeeper, from their first connection to the last."""

    def __init__(
        self,
        servers: int = 1,
        *,
        settings: EnsembleSettings | None = None,
        ports: Sequence[int] = (),
        host: str = HOST,
        data: Path | None = None,
        recorder: Recorder = SILENT,
        failed: Callable[[EnvironmentProblem], None],
    ) -> None:
        """Prepare servers; without `ports` each takes any free one.

        With `data` every write is durable in that folder before it is answered; all servers
        share the one log of their one history. `failed` receives the error of its disk.
        """
        if ports and len(ports) != servers:
            raise ValueError(f"{servers} servers need {servers} ports, not {len(ports)}")
        self._servers = servers
        self.settings = settings or EnsembleSettings()
        self._ports = tuple(ports) or (0,) * servers
        self._host = host
        self._data = data
        self._recorder = recorder
        self._failed = failed
        self._commits: GroupCommit | None = None
        self.notices: tuple[str, ...] = ()
        """What was passed over or cut off to read the folder, a sentence each."""
        self.ensemble: Ensemble
        self.control: Control
        self._listener: Listener | None = None

    @property
    def ports(self) -> tuple[int, ...]:
        """The port of each server, once they listen."""
        assert self._listener is not None, "the service was started"
        return self._listener.ports

    async def start(self) -> None:
        """Serve; raises EnvironmentProblem for a port or a folder that cannot be used."""
        folder = None if self._data is None else self._open(self._data)
        try:
            await self._listen(folder)
        except BaseException:
            self._close_data()
            raise

    def _open(self, data: Path) -> DataFolder:
        from watchkeeper.real.python_zookeeper.group_commit import GroupCommit
        from watchkeeper.real.zookeeper_data.data_folder import DataFolder

        folder = DataFolder.open(data)
        self.notices = folder.notices
        self._commits = GroupCommit(asyncio.get_running_loop(), folder, self._fail)
        return folder

    async def _listen(self, folder: DataFolder | None) -> None:
        commits = self._commits
        self.ensemble = Ensemble(
            LoopClock(asyncio.get_running_loop()),
            servers=self._servers,
            settings=self.settings,
            tree=None if folder is None else folder.tree,
            journal=None if commits is None else commits.add,
            recorder=self._recorder,
        )
        if commits is not None:
            commits.durable_up_to = self.ensemble.durable_up_to
        history = self._recorder if isinstance(self._recorder, History) else None
        if history is not None:
            history.begin(self.ensemble)
        self.control = Control(self.ensemble, history)
        self._listener = Listener(self.ensemble, self._host)
        await self._listener.start(self._ports)

    async def stop(self) -> None:
        """Close every connection, and the data folder once everything is in it."""
        if self._listener is not None:
            self._listener.stop()
        self.ensemble.stop()
        for _ in range(CALLBACK_ROUNDS):
            await asyncio.sleep(0)
        self._close_data()

    def _close_data(self) -> None:
        if self._commits is not None:
            self._commits.close()

    def _fail(self, error: BaseException) -> None:
        """The disk has failed: nothing more can be promised."""
        self._commits = None
        self._failed(
            EnvironmentProblem(
                f"the log in {self._data} cannot be written: {error}; the ZooKeeper stops, and "
                "answers nothing that is not on the disk"
            )
        )
