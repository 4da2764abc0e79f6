"""All logs of a broker of 0.8."""

from __future__ import annotations

from watchkeeper.model.log.base_log import BaseLog
from watchkeeper.model.log.folder_names import folder_of
from watchkeeper.model.log.log_manager import Logs
from watchkeeper.model.log.retention import delete_old
from watchkeeper.model.log.segments import Segment
from watchkeeper.model.log_08.log import KeyedLog

CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
"""The file that says how far each log is compacted."""


async def delete_old_segments(log: BaseLog) -> tuple[Segment, ...]:
    """Delete the segments that exceed the retention; a compacted log has none."""
    is_compacted = isinstance(log, KeyedLog) and log.is_compacted
    return () if is_compacted else await delete_old(log)


class KeyedLogs(Logs[KeyedLog]):
    """The logs of a broker of 0.8."""

    log_class = KeyedLog
    other_files = (CLEANER_CHECKPOINT, f"{CLEANER_CHECKPOINT}.tmp")
    delete_old_segments = staticmethod(delete_old_segments)

    def _folder_of(self, topic: str, partition: int) -> str:
        """Any number may be that of a partition: the cluster says which there are."""
        return folder_of(topic, partition)
