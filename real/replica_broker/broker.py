"""A broker that replicates: its replicas, its port, and its member of the cluster.

The program registers the broker and takes part in the election of the controller. The tasks
beside it serve requests, fetch from leaders and keep the ISRs.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

from watchkeeper.model.actor.program import Program
from watchkeeper.model.admin.auto_creation import create_missing_topics
from watchkeeper.model.broker import registration
from watchkeeper.model.broker_08.replicated_clients import serve_clients
from watchkeeper.model.broker_08.replicated_coordinator import coordinate_groups
from watchkeeper.model.controller.broker import controlling_broker
from watchkeeper.model.controller.state_machines.reign import ControllerSettings
from watchkeeper.model.controller.state_machines.variants import CONTROLLERS
from watchkeeper.model.log.folder_names import partition_of
from watchkeeper.model.replication.replica_files import LOG, ReplicaFiles
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.service import open_replicas
from watchkeeper.real.broker.disk_worker import DiskWorker
from watchkeeper.real.broker.log_server import HOST
from watchkeeper.real.broker.replica_server import ReplicaServer
from watchkeeper.real.embed.broker import BrokerWithTasks
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.process.tasks import Tasks
from watchkeeper.real.replica_broker.settings import ReplicaBrokerSettings
from watchkeeper.real.storage.file_storage import FileStorage
from watchkeeper.real.storage.folder_lock import lock_folder


class ReplicaBroker(BrokerWithTasks):
    """A broker that replicates, while its session lives."""

    def __init__(
        self, settings: ReplicaBrokerSettings, hosts: str, listener: socket.socket
    ) -> None:
        """`listener` is the socket on which it serves; connections to it wait until then."""
        self.settings = settings
        self._listener = listener
        self._server: ReplicaServer | None = None
        self._lock: int | None = None
        """The descriptor that locks the folder until the process ends."""
        replication = settings.replication
        super().__init__(
            hosts,
            id=replication.broker_id,
            host=HOST,
            port=listener.getsockname()[1],
            variant=replication.variant.name,
            layout="0.8",
            session_timeout_ms=settings.session_timeout_ms,
        )
        self.replicas = Replicas(replication, ReplicaFiles(), self.driver.now_ms)
        create_missing_topics(self.replicas)
        coordinate_groups(self.replicas, settings.offsets)
        serve_clients(self.replicas)

    def program_of(self, me: registration.Broker) -> Program:
        """Return the program of a broker that can be the controller."""
        settings = self.settings
        controller = ControllerSettings(
            me.broker_id,
            CONTROLLERS[settings.replication.variant.name],
            settings.replication.allows_unclean,
            settings.session_timeout_ms,
            sends=True,
            rebalance_ms=settings.rebalance_ms,
            shutdown_backoff_ms=settings.shutdown_backoff_ms,
            deletes_topics=settings.deletes_topics,
        )
        return controlling_broker(me, controller)

    def open(self) -> int:
        """Open the replicas, and serve; return how many there are.

        Raises EnvironmentProblem for a folder of another broker, and a LogError or a StorageError
        if it cannot be read.
        """
        root = self.settings.log_dir
        root.mkdir(parents=True, exist_ok=True)
        self._lock = lock_folder(str(root), "another broker works in")
        foreign = next(_segmented(root), None)
        if foreign is not None:
            raise EnvironmentProblem(
                f"{foreign} has segments of a broker that does not replicate; a broker with "
                f"--replicate keeps a log in one file, {LOG}; choose another folder"
            )
        driver = self.driver
        driver.loop.begin(_serve_storage(FileStorage(root), driver.tasks)).result()
        driver.run_task(open_replicas(self.replicas))
        self._server = ReplicaServer(self.replicas, driver.tasks, self._thread_failed)
        driver.loop.begin(self._server.open_on(self._listener)).result()
        return len(self.replicas.by_partition)

    @property
    def failure(self) -> str:
        """Why it has failed; empty if it has not."""
        if self._error is not None:
            return f"{type(self._error).__name__}: {self._error}"
        return self.ended.reason if self.ended is not None and self.ended.failed else ""

    def _clean_up(self) -> None:
        """The program is over: serve no more, and write the checkpoint."""
        if self._server is not None and self._error is None:
            self.driver.loop.begin(self._server.close()).result()
            self.driver.run_task(self.replicas.write_checkpoint())
        super()._clean_up()


async def _serve_storage(storage: FileStorage, tasks: Tasks) -> None:
    DiskWorker(storage.answer).serve(tasks)


def _segmented(root: Path) -> Iterator[Path]:
    """Yield the folders of logs that have another file than the first segment."""
    for folder in sorted(root.iterdir()):
        is_log = folder.is_dir() and partition_of(folder.name) is not None
        if is_log and any(file.name != LOG for file in folder.glob("*.log")):
            yield folder
