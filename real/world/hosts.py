"""The hosts of a live cluster whose brokers store messages: folders that outlive processes.

The loss of a host is emulated: after the broker's process was killed, its files are cut back
to their last fsync.
"""

from __future__ import annotations

from pathlib import Path

from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.plan.plan import BrokerPlan, ClusterPlan
from watchkeeper.real.member.job import BrokerRole
from watchkeeper.real.storage.host_crash import Cut, cut_back
from watchkeeper.real.storage.metrics import MeteredStorage, last_metrics


class Hosts:
    """The storage of the brokers of one cluster."""

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
        self.storage = plan.storage
        self.folder = folder
        self.disks = disks
        self.deleted = deleted

    def role(self, plan: BrokerPlan) -> BrokerRole:
        """The role of a broker's process."""
        return BrokerRole(
            plan.broker_id,
            str(self._logs_of(plan.node)),
            str(self._sync_log_of(plan.node)),
            self.storage.settings_with(self.disks.get(plan.broker_id, {})),
            self.STORAGE,
            self.LOGS,
            tuple(self.deleted.get(plan.node, ())),
        )

    def cut_back(self, node: str) -> tuple[Cut, ...]:
        """Remove the unsynced bytes from the files of a killed broker."""
        return cut_back(self._logs_of(node), self._sync_log_of(node))

    def last_metrics(self, node: str) -> dict[str, int] | None:
        """The last metrics of a killed broker; None if it had not started to count."""
        return last_metrics(self._logs_of(node), self._sync_log_of(node))

    def _logs_of(self, node: str) -> Path:
        return self._home_of(node) / "logs"

    def _sync_log_of(self, node: str) -> Path:
        return self._home_of(node) / "on-disk"

    def _home_of(self, node: str) -> Path:
        return self.folder / node.replace("/", "-").replace(":", "-")
