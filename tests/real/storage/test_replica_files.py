"""The files of a live broker that replicates."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.log.format.message_08 import records
from watchkeeper.model.replication.messages import ENTRY_BYTES
from watchkeeper.model.replication.replica import WRITTEN_BACK_AFTER_MS
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.storage.host_crash import cut_back
from watchkeeper.real.storage.replica_files import CHECKPOINT, LOG, ReplicaFiles

CLICKS, VIEWS = Partition("clicks", "0"), Partition("views-2", "11")


class Broker:
    """A broker's folder, and a clock."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.now_ms = 0

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.home / "logs"

    def open(self) -> ReplicaFiles:
        """Open the files, as a process does that starts."""
        return ReplicaFiles(self.logs, self.home / "on-disk", lambda: self.now_ms)

    def lose_power(self) -> int:
        """Lose what is in the pagecache alone; returns the number of bytes."""
        cuts = cut_back(self.logs, self.home / "on-disk")
        return sum(cut.before_bytes - cut.after_bytes for cut in cuts)


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def test_the_next_process_finds_what_the_last_one_wrote(broker: Broker) -> None:
    """However the process ended; nothing has to be closed."""
    files = broker.open()
    files.append(CLICKS, 0, [Record(1, 10), Record(2, 11)])
    files.append(VIEWS, 0, [Record(3, 0)])
    files.append(CLICKS, 2, [Record(2, 12)])
    files.truncate(CLICKS, 1)
    files.append(CLICKS, 1, [Record(4, 13)])
    files.write_checkpoint({CLICKS: 2, VIEWS: 0})

    again = broker.open()
    assert again.logs() == {CLICKS: (Record(1, 10), Record(4, 13)), VIEWS: (Record(3, 0),)}
    assert again.high_watermarks() == {CLICKS: 2, VIEWS: 0}


def test_the_files_are_those_of_kafka(broker: Broker) -> None:
    """Messages of 0.8 with their offsets, and lines of a checkpoint."""
    files = broker.open()
    files.append(CLICKS, 0, [Record(1, 10), Record(1, 11)])
    files.write_checkpoint({CLICKS: 1})

    stored = list(records((broker.logs / "clicks-0" / LOG).read_bytes()))
    assert [message.offset for message in stored] == [0, 1]
    assert (broker.home / CHECKPOINT).read_text() == "0\n1\nclicks 0 1\n"


def test_a_deleted_log_is_gone(broker: Broker) -> None:
    """A log that never was can be deleted too, and a new one begins at 0."""
    files = broker.open()
    files.append(CLICKS, 0, [Record(1, 10)])
    files.delete(CLICKS)
    files.delete(VIEWS)
    assert broker.open().logs() == {}

    files.append(CLICKS, 0, [Record(7, 99)])
    assert broker.open().logs() == {CLICKS: (Record(7, 99),)}


def test_a_host_loses_what_was_not_written_back(broker: Broker) -> None:
    """What is older than the kernel's interval is on the disk."""
    files = broker.open()
    files.append(CLICKS, 0, [Record(1, 10)])
    broker.now_ms = WRITTEN_BACK_AFTER_MS - 1
    files.write_back()
    files.append(VIEWS, 0, [Record(1, 20)])
    assert broker.lose_power() == 2 * ENTRY_BYTES

    files = broker.open()
    files.append(CLICKS, 0, [Record(1, 10)])
    broker.now_ms += WRITTEN_BACK_AFTER_MS
    files.write_back()
    files.append(CLICKS, 1, [Record(1, 11)])
    assert broker.lose_power() == ENTRY_BYTES
    assert broker.open().logs() == {CLICKS: (Record(1, 10),), VIEWS: ()}


def test_a_record_that_is_cut_is_cut_off(broker: Broker) -> None:
    """A process that is killed while it writes may leave a part of a record."""
    broker.open().append(CLICKS, 0, [Record(1, 10), Record(1, 11)])
    path = broker.logs / "clicks-0" / LOG
    path.write_bytes(path.read_bytes()[:-1])

    files = broker.open()
    assert files.logs() == {CLICKS: (Record(1, 10),)}
    files.append(CLICKS, 1, [Record(2, 12)])
    assert broker.open().logs() == {CLICKS: (Record(1, 10), Record(2, 12))}


@pytest.mark.parametrize(
    "text", ["", "1\n0\n", "0\n2\nclicks 0 1\n", "0\nmany\n", "0\n1\nclicks 0\n", "0\n1\na 0 x\n"]
)
def test_a_checkpoint_that_cannot_be_read_is_said_to_be_one(broker: Broker, text: str) -> None:
    """With what was expected, and what to do."""
    (broker.home / CHECKPOINT).write_text(text)
    with pytest.raises(EnvironmentProblem, match=r"is no checkpoint of a broker .*delete it"):
        broker.open()


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
    """Whatever is appended, cut and deleted."""
    broker = Broker(tmp_path_factory.mktemp("broker"))
    files, log = broker.open(), list[Record]()
    for step in steps:
        if isinstance(step, list):
            files.append(CLICKS, len(log), step)
            log.extend(step)
        elif isinstance(step, int):
            if step < len(log):
                files.truncate(CLICKS, step)
                del log[step:]
        else:
            files.delete(CLICKS)
            log.clear()
    assert list(broker.open().logs().get(CLICKS, ())) == log
