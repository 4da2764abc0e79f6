"""The process of a live broker that replicates: its files, its port, and its program.

The program registers the broker and takes part in the election of the controller. The tasks
beside it serve requests, fetch from leaders and keep the ISRs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from watchkeeper.model.actor.effects import sleep
from watchkeeper.model.actor.program import Ended
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.storage import StorageError
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.service import open_replicas
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.broker.replica_server import ReplicaServer
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.member.context import MemberContext
from watchkeeper.real.member.job import ReplicaRole
from watchkeeper.real.ports import HOST
from watchkeeper.real.storage.replica_files import ReplicaFiles

WRITE_BACK_MS = 1_000
"""How often the files are looked at for what has to be written to the disk."""


def run(context: MemberContext) -> Ended:
    """Open the replicas, serve, register, and write the checkpoint when the program ends."""
    job, role = context.job, context.job.role
    assert isinstance(role, ReplicaRole), "the job of a broker that replicates has its role"
    driver = context.task_driver(job.program, balancer="")
    files = _open(context, role, driver.now_ms)
    replicas = Replicas(role.settings, files, driver.now_ms)
    server = ReplicaServer(replicas, driver.tasks, context.task_failed)
    driver.start_task("open replicas", open_replicas(replicas))
    driver.start_task("write back", _write_back_from_time_to_time(files))
    driver.loop.begin(server.open(HOST, job.port)).result()
    context.report(serves=True, without=())
    context.listen(driver)
    ended = driver.run()
    driver.loop.begin(server.close()).result()
    with driver.tasks.baton:
        replicas.write_checkpoint()
    driver.end_tasks()
    return ended


def _open(context: MemberContext, role: ReplicaRole, now_ms: Callable[[], int]) -> ReplicaFiles:
    """Open the files; a broker that cannot read them says why, and ends."""
    try:
        return ReplicaFiles(Path(role.root), Path(role.sync_log), now_ms)
    except (EnvironmentProblem, LogError, StorageError) as error:
        context.writer.write(EventKind.BROKER_FAILED, {"why": str(error)})
        context.report(fails=str(error))
        os._exit(1)


async def _write_back_from_time_to_time(files: ReplicaFiles) -> None:
    while True:
        await sleep(WRITE_BACK_MS)
        files.write_back()
