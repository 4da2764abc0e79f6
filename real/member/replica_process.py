"""The process of a live broker that replicates: its files, its port, and its program.

The program registers the broker and takes part in the election of the controller. The tasks
beside it serve requests, fetch from leaders and keep the ISRs.
"""

from __future__ import annotations

from pathlib import Path

from watchkeeper.model.actor.program import Ended
from watchkeeper.model.admin.auto_creation import create_missing_topics
from watchkeeper.model.broker_08.replicated_clients import serve_clients
from watchkeeper.model.broker_08.replicated_coordinator import coordinate_groups
from watchkeeper.model.replication.replica_files import ReplicaFiles
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.service import ENDS_BROKER, open_replicas
from watchkeeper.real.broker.disk_worker import DiskWorker
from watchkeeper.real.broker.replica_server import ReplicaServer
from watchkeeper.real.member.context import MemberContext
from watchkeeper.real.member.job import ReplicaRole
from watchkeeper.real.ports import HOST
from watchkeeper.real.process.task_driver import TaskDriver
from watchkeeper.real.process.tasks import Tasks
from watchkeeper.real.storage.write_back import WrittenBack


def run(context: MemberContext) -> Ended:
    """Open the replicas, serve, register, and write the checkpoint when the program ends."""
    job, role = context.job, context.job.role
    assert isinstance(role, ReplicaRole), "the job of a broker that replicates has its role"
    context.ends_process = ENDS_BROKER
    driver = context.task_driver(job.program, balancer="")
    replicas = Replicas(role.settings, ReplicaFiles(role.offsets.compacted_logs), driver.now_ms)
    create_missing_topics(replicas)
    coordinate_groups(replicas, role.offsets)
    serve_clients(replicas)
    storage = WrittenBack(Path(role.root), Path(role.sync_log), driver.now_ms)
    driver.loop.begin(_serve_storage(storage, driver.tasks)).result()
    _open(context, driver, replicas)
    driver.start_task("write back", storage.write_back_from_time_to_time())
    server = ReplicaServer(replicas, driver.tasks, context.task_failed)
    driver.loop.begin(server.open(HOST, job.port)).result()
    context.report(serves=True, without=())
    context.listen(driver)
    ended = driver.run()
    driver.loop.begin(server.close()).result()
    driver.run_task(replicas.write_checkpoint())
    driver.end_tasks()
    return ended


async def _serve_storage(storage: WrittenBack, tasks: Tasks) -> None:
    DiskWorker(storage.answer).serve(tasks)


def _open(context: MemberContext, driver: TaskDriver, replicas: Replicas) -> None:
    """Open the replicas; a broker that cannot read its files says why, and ends."""
    try:
        driver.run_task(open_replicas(replicas))
    except ENDS_BROKER as error:
        context.fail_broker(error)
