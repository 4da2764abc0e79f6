"""Logs of replicas that are compacted: appended to, cut, compacted, and killed anywhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from random import Random
from typing import Any

from tests.support.log.memory_storage import Killed, MemoryStorage
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.format.message_08 import encode, entries
from watchkeeper.model.log_08.cleaner import Cleaner
from watchkeeper.model.log_08.cleaner_settings import CleanerSettings
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.log_08.settings import DEFAULTS, KeyedLogSettings
from watchkeeper.model.offset_manager.records import CommittedOffset, OffsetKey, message_of
from watchkeeper.model.replication.messages import decoded, encoded, key_and_value
from watchkeeper.model.replication.replica_files import (
    ReplicaFiles,
    SegmentedLog,
    epochs_of,
    hide,
    with_epochs,
)
from watchkeeper.model.replication.replica_log import HIDDEN, NO_NUMBER, Record

OFFSETS = Partition("__consumer_offsets", "0")
assert isinstance(DEFAULTS.default, KeyedLogSettings)
COMPACTED = {
    OFFSETS.topic: replace(DEFAULTS.default, segment_bytes=900, is_compacted=True),
}
CLEANS = CleanerSettings(is_enabled=True, min_dirty_ratio=0.0)


def record(epoch: int, number: int, key: int) -> Record:
    """Return the record of a commit of one of some partitions."""
    committed = CommittedOffset(number, "", 1_000)
    return Record(epoch, number, encode([message_of(OffsetKey("g", "t", key), committed)]))


class Replica:
    """A replica whose process may be killed; `whole` is what was appended and not cut."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.storage = MemoryStorage()
        self.whole: list[Record] = []
        self.epoch = 0
        self.compacted = self.killed = 0
        self.start()

    def start(self) -> None:
        """Start a process: it finds what is on the disk."""
        self.files = ReplicaFiles(COMPACTED)
        self.log: list[Record] = self.run(self.files.read_logs()).get(OFFSETS, [])
        self.cleaner = Cleaner(self, self.locked, CLEANS, key_and_value=key_and_value)
        self.files.on_cut = self.cleaner.note_cut

    def run(self, work: Coroutine[Any, Any, Any], killed_after: int | None = None) -> Any:
        return self.storage.run(work, killed_after=killed_after)

    def all(self) -> tuple[KeyedLog, ...]:
        return tuple(self.files.segmented.values())

    async def locked(self, log: KeyedLog, work: Callable[[], Awaitable[Any]]) -> None:
        assert isinstance(log, SegmentedLog)
        await log.write_epochs(self.log)
        new = await work()
        hide(self.log, new.start, new.next_offset, await log.offsets_in(new))

    # --- what happens ------------------------------------------------------------------

    def append(self) -> None:
        self.epoch += self.chance.random() < 0.2
        found = [
            record(self.epoch, len(self.whole) + at, self.chance.randrange(3))
            for at in range(self.chance.randrange(1, 4))
        ]
        self.run(self.files.append(OFFSETS, len(self.log), found))
        self.log += found
        self.whole += found

    def cut(self) -> None:
        """Cut behind a record; what is cut was not committed, so no key loses its latest."""
        end = len(self.log) - 1
        if end < 1 or self.log[end - 1].is_hidden or self.is_latest_hidden_below(end):
            return
        del self.log[end:], self.whole[end:]
        self.run(self.files.truncate(OFFSETS, self.log))

    def is_latest_hidden_below(self, end: int) -> bool:
        latest = {_key(each): at for at, each in enumerate(self.whole[:end])}
        return any(self.log[at].is_hidden for at in latest.values())

    def compact(self) -> None:
        self.compacted += self.run(self.cleaner.clean_dirtiest()) is not None

    def kill(self) -> None:
        """End the process in the midst of a compaction."""
        try:
            self.run(self.cleaner.clean_dirtiest(), killed_after=self.chance.randrange(40))
        except Killed:
            self.killed += 1
        self.start()

    # --- what has to hold --------------------------------------------------------------

    def check(self) -> None:
        assert len(self.log) == len(self.whole)
        latest: dict[bytes | None, int] = {}
        for at, each in enumerate(self.whole):
            latest[_key(each)] = at
        for at, (kept, appended) in enumerate(zip(self.log, self.whole, strict=True)):
            assert kept.is_hidden or kept == appended, at
            assert kept.epoch == appended.epoch, at
        assert not any(self.log[at].is_hidden for at in latest.values())


def _key(each: Record) -> bytes | None:
    [(_, _, _, _, key, value)] = entries(encoded([each], 0))
    return key_and_value(key, value)[0]


def played(seed: int, length: int) -> Replica:
    """Play some steps, and check after each."""
    replica = Replica(seed)
    steps = (*(replica.append,) * 6, replica.cut, replica.compact, replica.kill)
    for _ in range(length):
        replica.chance.choice(steps)()
        replica.check()
    replica.start()
    replica.check()
    return replica


def test_what_is_compacted_keeps_the_latest_of_each_key() -> None:
    """However often it is cut or killed; and hidden records keep the epoch that they had."""
    replicas = [played(seed, 60) for seed in range(12)]
    assert sum(each.compacted for each in replicas) > 20
    assert sum(each.killed for each in replicas) > 20
    assert any(record.is_hidden for each in replicas for record in each.log)


def rest_of(work: Coroutine[Any, Any, Any], effect: Any, storage: MemoryStorage) -> Any:
    """Drive a coroutine that waits for an effect to its end."""
    try:
        while True:
            effect = work.send(storage.answer(effect))
    except StopIteration as done:
        return done.value


def test_a_cut_while_it_is_compacted_ends_the_compaction() -> None:
    """What was copied is given up, and is dirty again."""
    replica = Replica(1)
    for _ in range(12):
        replica.append()
    work = replica.cleaner.clean_dirtiest()
    effect = work.send(None)
    for _ in range(6):
        effect = work.send(replica.storage.answer(effect))
    end = len(replica.log) - 1
    del replica.log[end:], replica.whole[end:]
    replica.run(replica.files.truncate(OFFSETS, replica.log))
    assert rest_of(work, effect, replica.storage) is None
    replica.check()
    replica.compact()
    replica.check()


def test_without_the_checkpoint_of_epochs_hidden_records_have_that_of_the_next() -> None:
    """Epochs never fall from one record to the next."""
    records = [record(0, 1, 0), record(1, 2, 1), record(2, 3, 0)]
    data = encoded([records[0], HIDDEN, records[2]], 0)
    assert [each.epoch for each in decoded(data, 0)] == [0, 2, 2]
    hidden = [records[0], Record(-1, NO_NUMBER), records[2]]
    assert [each.epoch for each in with_epochs(hidden, epochs_of(records))] == [0, 1, 2]
