"""The hosts of a live cluster whose brokers store messages: folders that outlive processes.

The loss of a host is emulated: when the broker's process has been killed, its files are cut
back to their last fsync. The machine that the run takes place on is not lost.
"""

from __future__ import annotations

from pathlib import Path

from model.log.logs import Logs
from model.plan import BrokerPlan, ClusterPlan
from real.gauges import GaugedStorage, last_seen
from real.hostcrash import Cut, cut_back
from real.job import Stores


class Sites:
    """Where the brokers of one cluster keep their logs."""

    STORAGE: type[GaugedStorage] = GaugedStorage
    LOGS: type[Logs] = Logs

    def __init__(self, plan: ClusterPlan, folder: Path, disks: dict[int, dict[str, int]]) -> None:
        assert plan.storage is not None, "there are sites where brokers store messages"
        self.storage = plan.storage
        self.folder = folder
        self.disks = disks

    def part(self, plan: BrokerPlan) -> Stores:
        """What the process of a broker is told of its logs."""
        return Stores(
            plan.broker_id,
            str(self._logs_of(plan.node)),
            str(self._diary_of(plan.node)),
            self.storage.settings_with(self.disks.get(plan.broker_id, {})),
            self.STORAGE,
            self.LOGS,
        )

    def cut_back(self, node: str) -> tuple[Cut, ...]:
        """Take of the files of a broker that was killed what is not on the disk."""
        return cut_back(self._logs_of(node), self._diary_of(node))

    def last_seen(self, node: str) -> dict[str, int] | None:
        """How the files of a broker stood that was killed; None if it had none yet."""
        return last_seen(self._logs_of(node), self._diary_of(node))

    def _logs_of(self, node: str) -> Path:
        return self._home_of(node) / "logs"

    def _diary_of(self, node: str) -> Path:
        return self._home_of(node) / "on-disk"

    def _home_of(self, node: str) -> Path:
        return self.folder / node.replace("/", "-").replace(":", "-")
