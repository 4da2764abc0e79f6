"""The hosts of a live cluster: folders in which brokers store messages, and outlive processes.

The loss of a host is emulated: after the broker's process was killed, its files are cut back
to their last fsync.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.plan.plan import BrokerPlan, ClusterPlan
from watchkeeper.real.member.job import BrokerRole, ReplicaRole
from watchkeeper.real.storage.host_crash import Cut, cut_back
from watchkeeper.real.storage.metrics import MeteredStorage, last_metrics


class Hosts(ABC):
    """The storage of the brokers of one cluster."""

    def __init__(self, plan: ClusterPlan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder

    @abstractmethod
    def role(self, plan: BrokerPlan) -> BrokerRole | ReplicaRole:
        """The role of a broker's process."""

    def cut_back(self, node: str) -> tuple[Cut, ...]:
        """Remove the unsynced bytes from the files of a killed broker."""
        return cut_back(self.logs_of(node), self.sync_log_of(node))

    def last_metrics(self, node: str) -> dict[str, int] | None:
        """The last metrics of a killed broker; None if it does not count or had not started."""
        return None

    def logs_of(self, node: str) -> Path:
        """The folder of a broker's logs."""
        return self._home_of(node) / "logs"

    def sync_log_of(self, node: str) -> Path:
        """The folder that records which bytes of them are synced."""
        return self._home_of(node) / "on-disk"

    def _home_of(self, node: str) -> Path:
        return self.folder / node.replace("/", "-").replace(":", "-")


class ReplicaHosts(Hosts):
    """The storage of brokers of 0.8 that replicate."""

    def role(self, plan: BrokerPlan) -> ReplicaRole:
        """The role of a broker's process."""
        assert self.plan.replication is not None, "its brokers replicate"
        return ReplicaRole(
            self.plan.replication_of(plan),
            self.plan.replication.offsets,
            str(self.logs_of(plan.node)),
            str(self.sync_log_of(plan.node)),
        )


class MessageHosts(Hosts):
    """The storage of brokers of 0.7."""

    STORAGE: type[MeteredStorage] = MeteredStorage
    LOGS: type[LogManager] = LogManager

    def __init__(
        self,
        plan: ClusterPlan,
        folder: Path,
        disks: dict[int, dict[str, int]],
        deleted: dict[str, dict[str, None]],
    ) -> None:
        assert plan.storage is not None, "there are sites where brokers store messages"
        super().__init__(plan, folder)
        self.storage = plan.storage
        self.disks = disks
        self.deleted = deleted

    def role(self, plan: BrokerPlan) -> BrokerRole:
        """The role of a broker's process."""
        return BrokerRole(
            plan.broker_id,
            str(self.logs_of(plan.node)),
            str(self.sync_log_of(plan.node)),
            self.storage.settings_with(self.disks.get(plan.broker_id, {})),
            self.STORAGE,
            self.LOGS,
            tuple(self.deleted.get(plan.node, ())),
        )

    def last_metrics(self, node: str) -> dict[str, int] | None:
        """The last metrics of a killed broker; None if it had not started to count."""
        return last_metrics(self.logs_of(node), self.sync_log_of(node))


def hosts_of(
    plan: ClusterPlan,
    folder: Path,
    disks: dict[int, dict[str, int]],
    deleted: dict[str, dict[str, None]],
) -> Hosts | None:
    """Where the brokers of a cluster store messages; None where a log is only a rate.

    `disks` has the topics of each broker of 0.7, and `deleted` those that it has to delete.
    """
    if plan.replication is not None:
        return ReplicaHosts(plan, folder)
    if plan.storage is not None:
        return MessageHosts(plan, folder, disks, deleted)
    return None
