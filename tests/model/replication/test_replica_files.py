"""The files of a broker that replicates: on a disk, and on the simulated pagecache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.experiment.apparatus.host import new_host, run
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.format.message_08 import records
from watchkeeper.model.log.storage import Append, CreateFile, Read, Truncate
from watchkeeper.model.replication.messages import ENTRY_BYTES
from watchkeeper.model.replication.replica_files import (
    CHECKPOINT,
    LOG,
    InvalidCheckpoint,
    ReplicaFiles,
)
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.real.storage.host_crash import cut_back
from watchkeeper.real.storage.write_back import WRITTEN_BACK_AFTER_MS, WrittenBack
from watchkeeper.sim.disk.host_costs import MACHINES
from watchkeeper.sim.storage.host_effects import Idle

T = TypeVar("T")
CLICKS, VIEWS = Partition("clicks", "0"), Partition("views-2", "11")
PATH = f"clicks-0/{LOG}"
US_A_MS = 1_000


class Disk(ABC):
    """The disk of a broker's host, and what a process does on it."""

    @abstractmethod
    def does(self, body: Coroutine[Any, Any, T]) -> T:
        """Run what a process does to its end."""

    @abstractmethod
    def wait_ms(self, duration_ms: int) -> None:
        """Let time pass, in which the kernel writes back."""

    @abstractmethod
    def lose_power(self) -> int:
        """Lose what is in the pagecache alone; returns the number of bytes."""

    def logs(self) -> dict[Partition, list[Record]]:
        """What the next process finds."""
        return self.does(ReplicaFiles().read_logs())

    def read(self, path: str) -> bytes:
        """What a file has."""
        found = self.does(_read(path))
        assert isinstance(found, bytes)
        return found


async def _read(path: str) -> Any:
    return await Read(path, 0, 1 << 20)


class Files(Disk):
    """Real files."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.now_ms = 0
        self.storage = self._open()

    def _open(self) -> WrittenBack:
        return WrittenBack(self.home / "logs", self.home / "on-disk", lambda: self.now_ms)

    def does(self, body: Coroutine[Any, Any, T]) -> T:
        return self.storage.run(body)

    def wait_ms(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.does(self.storage.write_back())

    def lose_power(self) -> int:
        self.storage.close()
        cuts = cut_back(self.home / "logs", self.home / "on-disk")
        self.storage = self._open()
        return sum(cut.before_bytes - cut.after_bytes for cut in cuts)


class Simulated(Disk):
    """The simulated pagecache and disk."""

    def __init__(self) -> None:
        self.host = new_host(MACHINES["page"], 0)

    def does(self, body: Coroutine[Any, Any, T]) -> T:
        found: T = run(self.host, [self.host.start(self.host.process(), body)])[0]
        return found

    def wait_ms(self, duration_ms: int) -> None:
        async def wait() -> None:
            await Idle(duration_ms * US_A_MS)

        self.does(wait())

    def lose_power(self) -> int:
        return sum(loss.lost_bytes for loss in self.host.storage.lose_power())


@pytest.fixture(params=["files", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return Files(tmp_path) if request.param == "files" else Simulated()


def test_the_next_process_finds_what_the_last_one_wrote(disk: Disk) -> None:
    """However the process ended; nothing has to be closed."""

    async def write() -> None:
        files = ReplicaFiles()
        await files.append(CLICKS, 0, [Record(1, 10), Record(2, 11)])
        await files.append(VIEWS, 0, [Record(3, 0)])
        await files.append(CLICKS, 2, [Record(2, 12)])
        await files.truncate(CLICKS, [Record(1, 10)])
        await files.append(CLICKS, 1, [Record(4, 13)])
        await files.write_checkpoint({CLICKS: 1, VIEWS: 0})
        await files.write_checkpoint({CLICKS: 2, VIEWS: 0})

    disk.does(write())
    assert disk.logs() == {CLICKS: [Record(1, 10), Record(4, 13)], VIEWS: [Record(3, 0)]}
    assert disk.does(ReplicaFiles().read_checkpoint()) == {CLICKS: 2, VIEWS: 0}


def test_the_files_are_those_of_kafka(disk: Disk) -> None:
    """Messages of 0.8 with their offsets, and lines of a checkpoint."""

    async def write() -> None:
        files = ReplicaFiles()
        await files.append(CLICKS, 0, [Record(1, 10), Record(1, 11)])
        await files.write_checkpoint({CLICKS: 1})

    disk.does(write())
    assert [message.offset for message in records(disk.read(PATH))] == [0, 1]
    assert disk.read(CHECKPOINT) == b"0\n1\nclicks 0 1\n"


def test_a_checkpoint_with_the_same_marks_is_not_written_again(disk: Disk) -> None:
    """It waits for the disk each time."""

    async def write() -> None:
        files = ReplicaFiles()
        await files.write_checkpoint({CLICKS: 1})
        await Truncate(CHECKPOINT, 0)
        await files.write_checkpoint({CLICKS: 1})

    disk.does(write())
    assert disk.read(CHECKPOINT) == b""


def test_a_deleted_log_is_gone(disk: Disk) -> None:
    """A log that never was can be deleted too, and a new one begins at 0."""
    files = ReplicaFiles()

    async def delete() -> None:
        await files.append(CLICKS, 0, [Record(1, 10)])
        await files.delete(CLICKS)
        await files.delete(VIEWS)

    disk.does(delete())
    assert disk.logs() == {}

    disk.does(files.append(CLICKS, 0, [Record(7, 99)]))
    assert disk.logs() == {CLICKS: [Record(7, 99)]}


def test_a_host_loses_what_was_not_written_back(disk: Disk) -> None:
    """What is older than the kernel's interval is on the disk, and so is the checkpoint."""
    files = ReplicaFiles()
    disk.does(files.write_checkpoint({CLICKS: 1}))
    disk.does(files.append(CLICKS, 0, [Record(1, 10)]))
    disk.wait_ms(WRITTEN_BACK_AFTER_MS // 2)
    assert disk.lose_power() == ENTRY_BYTES
    assert disk.logs() == {CLICKS: []}
    assert disk.does(ReplicaFiles().read_checkpoint()) == {CLICKS: 1}

    disk.does(files.append(CLICKS, 0, [Record(1, 10)]))
    disk.wait_ms(2 * WRITTEN_BACK_AFTER_MS)
    disk.does(files.append(CLICKS, 1, [Record(1, 11)]))
    assert disk.lose_power() == ENTRY_BYTES
    assert disk.logs() == {CLICKS: [Record(1, 10)]}


def test_a_record_that_is_cut_is_cut_off(disk: Disk) -> None:
    """A process that is killed while it writes may leave a part of a record."""
    files = ReplicaFiles()

    async def write() -> None:
        await files.append(CLICKS, 0, [Record(1, 10), Record(1, 11)])
        await Truncate(PATH, 2 * ENTRY_BYTES - 1)

    disk.does(write())
    assert disk.logs() == {CLICKS: [Record(1, 10)]}
    disk.does(files.append(CLICKS, 1, [Record(2, 12)]))
    assert disk.logs() == {CLICKS: [Record(1, 10), Record(2, 12)]}


@pytest.mark.parametrize(
    "text", ["", "1\n0\n", "0\n2\nclicks 0 1\n", "0\nmany\n", "0\n1\nclicks 0\n", "0\n1\na 0 x\n"]
)
def test_a_checkpoint_that_cannot_be_read_is_said_to_be_one(disk: Disk, text: str) -> None:
    """With what was expected, and what to do."""

    async def write() -> None:
        await CreateFile(CHECKPOINT)
        await Append(CHECKPOINT, text.encode())

    disk.does(write())
    with pytest.raises(InvalidCheckpoint, match=r"expected the lines 0, a count.*delete the"):
        disk.does(ReplicaFiles().read_checkpoint())


STEPS = st.lists(
    st.one_of(
        st.lists(
            st.builds(Record, st.integers(0, 9), st.integers(0, 99)), min_size=1, max_size=3
        ),
        st.integers(0, 6),
        st.just("delete"),
    ),
    max_size=12,
)


@settings(max_examples=40)
@given(steps=STEPS)
def test_files_are_as_a_list(
    steps: list[list[Record] | int | str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is appended, cut and deleted, on either disk."""
    for disk in (Files(tmp_path_factory.mktemp("broker")), Simulated()):
        log = list[Record]()

        async def work(log: list[Record]) -> None:
            files = ReplicaFiles()
            for step in steps:
                if isinstance(step, list):
                    await files.append(CLICKS, len(log), step)
                    log.extend(step)
                elif isinstance(step, int):
                    if step < len(log):
                        del log[step:]
                        await files.truncate(CLICKS, log)
                else:
                    await files.delete(CLICKS)
                    log.clear()

        disk.does(work(log))
        assert disk.logs().get(CLICKS, []) == log
