"""All logs of a broker of 0.8."""

from __future__ import annotations

from watchkeeper.model.log.folder_names import folder_of
from watchkeeper.model.log.log_manager import Logs
from watchkeeper.model.log_08.log import KeyedLog


class KeyedLogs(Logs[KeyedLog]):
    """The logs of a broker of 0.8."""

    log_class = KeyedLog

    def _folder_of(self, topic: str, partition: int) -> str:
        """Any number may be that of a partition: the cluster says which there are."""
        return folder_of(topic, partition)
