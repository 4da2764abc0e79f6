"""The cleaner of a broker that replicates: it compacts the logs of its replicas.

The rules and the files are those of `watchkeeper.model.log_08.cleaner`. Each broker compacts its
own replicas, those that it leads and those that follow. An offset that loses its message keeps
its place in the log.

As shipped, all segments but the active one are compacted, with what is not committed yet: if that
is cut, the older message of its key has gone already. `hardened` compacts what is below the high
watermark.

Kafka 0.8.2.2: LogCleaner, LogManager.truncateTo.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from watchkeeper.model.actor.effects import Partition, emit, sleep
from watchkeeper.model.log.folder_names import partition_of
from watchkeeper.model.log_08.cleaner import Cleaned, Cleaner
from watchkeeper.model.log_08.cleaner_settings import CleanerSettings
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.replication.messages import key_and_value
from watchkeeper.model.replication.replica import Replica
from watchkeeper.model.replication.replica_files import SegmentedLog, hide
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.variants import Compacts
from watchkeeper.model.trace.kinds import EventKind


class ReplicaCleaner:
    """Compacts the replicas of a broker whose topics are compacted."""

    def __init__(self, replicas: Replicas, settings: CleanerSettings) -> None:
        self._replicas = replicas
        self._settings = settings
        limits = replicas.me.variant.compacts is Compacts.COMMITTED
        self._cleaner = Cleaner(
            self,
            self._locked,
            settings,
            end_of=self._committed_end if limits else None,
            key_and_value=key_and_value,
        )
        replicas.files.on_cut = self._cleaner.note_cut

    async def run(self) -> None:
        """Compact logs, the dirtiest first, as long as the process lives."""
        while True:
            done = await self._cleaner.clean_dirtiest()
            if done is None:
                await sleep(self._settings.backoff_ms)
            else:
                await _note_compacted(done)

    def all(self) -> tuple[KeyedLog, ...]:
        """Return the logs that may be compacted."""
        return tuple(self._replicas.files.segmented.values())

    def _replica_of(self, log: KeyedLog) -> Replica | None:
        return self._replicas.by_partition.get(_partition(log.folder))

    def _committed_end(self, log: KeyedLog) -> int:
        replica = self._replica_of(log)
        return 0 if replica is None else replica.high_watermark

    async def _locked(self, log: KeyedLog, work: Callable[[], Awaitable[Any]]) -> None:
        """Replace segments while nothing else changes the replica, and forget what is gone."""
        replica = self._replica_of(log)
        if replica is None:
            await work()
            return
        assert isinstance(log, SegmentedLog), "the logs of replicas that are compacted"
        # Before the entries are gone: they are all that says which epochs there were.
        await log.write_epochs(replica.log)
        await self._replicas.settled(replica)
        await self._replicas.hold(replica)
        try:
            await self._replace(log, replica, work)
        except Exception:
            await self._replicas.let_go(replica)
            raise
        await self._replicas.let_go(replica)

    async def _replace(
        self, log: SegmentedLog, replica: Replica, work: Callable[[], Awaitable[Any]]
    ) -> None:
        await emit(
            EventKind.LOG_COPIED,
            topic=replica.partition.topic,
            partition=replica.partition.name,
            end=replica.end,
        )
        new = await work()
        hide(replica.log, new.start, new.next_offset, await log.offsets_in(new))


async def _note_compacted(done: Cleaned) -> None:
    partition = _partition(done.folder)
    await emit(
        EventKind.LOG_COMPACTED,
        topic=partition.topic,
        partition=partition.name,
        messages=done.removed_messages,
        bytes=done.removed_bytes,
        first_dirty=done.first_dirty,
    )


def _partition(folder: str) -> Partition:
    found = partition_of(folder)
    assert found is not None, "the folder of a log has the name of its partition"
    return Partition(found[0], str(found[1]))
