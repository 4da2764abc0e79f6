"""The data folder on real files: recovery, snapshots, damage, and what is refused."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.zookeeper_files.histories import TIMEOUT_MS, RandomHistory, whole
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.zookeeper.tree import Tree, empty_tree
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.zookeeper.session_times import session_times_of
from watchkeeper.real.zookeeper_data import file_layer
from watchkeeper.real.zookeeper_data.data_folder import SUBFOLDER, DataFolder
from watchkeeper.real.zookeeper_data.file_layer import FolderOnDisk


def go_on(path: Path, steps: int, *, snapshots: int = 0, seed: int = 1) -> list[Tree]:
    """Write to the folder, with that many snapshots in even distances; return the trees."""
    folder = DataFolder.open(path)
    history = RandomHistory(seed, folder.tree)
    trees = [history.tree]
    for number in range(1, steps + 1):
        folder.append(history.step().transaction)
        trees.append(history.tree)
        folder.commit()
        if snapshots and number % (steps // snapshots) == 0:
            folder.snapshot(history.tree)
    folder.close()
    return trees


def recovered(path: Path) -> Tree:
    folder = DataFolder.open(path)
    folder.close()
    return folder.tree


def files_of(path: Path, kind: str) -> list[Path]:
    """The files of a kind, oldest first."""
    found = (path / SUBFOLDER).glob(f"{kind}.*")
    return sorted(found, key=lambda file: int(file.suffix[1:], 16))


def test_a_new_folder_has_the_tree_of_a_new_server(tmp_path: Path) -> None:
    """It is made with all its parents."""
    path = tmp_path / "some" / "data"

    assert whole(recovered(path)) == whole(empty_tree())
    assert [file.name for file in files_of(path, "*")] == ["snapshot.0"]


@pytest.mark.parametrize("snapshots", [0, 1, 4])
def test_what_was_committed_is_recovered(tmp_path: Path, snapshots: int) -> None:
    """With the log alone, and with snapshots."""
    trees = go_on(tmp_path, 100, snapshots=snapshots)

    assert whole(recovered(tmp_path)) == whole(trees[-1])


def test_what_was_not_committed_is_not_there(tmp_path: Path) -> None:
    """It was never answered."""
    folder = DataFolder.open(tmp_path)
    folder.append(RandomHistory(1).step().transaction)
    folder.close()

    assert whole(recovered(tmp_path)) == whole(empty_tree())


def test_a_snapshot_is_due_after_enough_transactions(tmp_path: Path) -> None:
    """Those that were recovered from the log count, too."""
    history = RandomHistory(1)
    disk = FolderOnDisk(tmp_path)
    for due in (False, True):
        folder = DataFolder(disk, "data", transactions_per_snapshot=10)
        assert not folder.should_snapshot
        for step in history.steps(5):
            folder.append(step.transaction)
        folder.commit()
        assert folder.should_snapshot is due
    folder.snapshot(history.tree)
    assert not folder.should_snapshot


def test_three_snapshots_are_kept_and_the_log_since_the_oldest(tmp_path: Path) -> None:
    """What is older is removed."""
    go_on(tmp_path, 100, snapshots=10)

    assert [file.name for file in files_of(tmp_path, "snapshot")] == [
        "snapshot.50",
        "snapshot.5a",
        "snapshot.64",
    ]
    assert [file.name for file in files_of(tmp_path, "log")] == ["log.51", "log.5b"]


@pytest.mark.parametrize("damaged", [1, 2])
def test_a_damaged_snapshot_is_passed_over(tmp_path: Path, damaged: int) -> None:
    """The one before it and the log since then hold the same."""
    trees = go_on(tmp_path, 105, snapshots=10)
    for file in files_of(tmp_path, "snapshot")[-damaged:]:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)

    assert whole(recovered(tmp_path)) == whole(trees[-1])


def test_missing_transactions_are_an_error(tmp_path: Path) -> None:
    """A server without them would contradict what it had answered."""
    go_on(tmp_path, 100, snapshots=4)
    for file in files_of(tmp_path, "snapshot")[-3:]:
        file.write_bytes(file.read_bytes()[:-100])

    with pytest.raises(EnvironmentProblem, match="there are transactions missing"):
        DataFolder.open(tmp_path)


def test_damage_inside_the_log_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    """The transactions after it prove that some are missing."""
    go_on(tmp_path, 30)
    go_on(tmp_path, 30, seed=2)
    first = files_of(tmp_path, "log")[0]
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)

    with pytest.raises(EnvironmentProblem, match="transaction 0x1f follows 0x"):
        DataFolder.open(tmp_path)
    assert first.read_bytes() == data


TAILS = (bytes(7), b"half a record", bytes(11) + b"\50" + b"x" * 60)


@pytest.mark.parametrize("tail", TAILS)
def test_a_torn_end_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    """And the next transactions follow what is whole."""
    trees = go_on(tmp_path, 20)
    log = files_of(tmp_path, "log")[0]
    data = log.read_bytes()
    log.write_bytes(data + tail)

    assert whole(recovered(tmp_path)) == whole(trees[-1])
    assert log.read_bytes().rstrip(b"\0") == data.rstrip(b"\0")
    assert whole(recovered(tmp_path)) == whole(trees[-1])
    assert whole(go_on(tmp_path, 20)[-1]) == whole(recovered(tmp_path))


def test_what_was_cut_off_or_passed_over_is_said(tmp_path: Path) -> None:
    """Once: the next recovery has nothing to say, but that a snapshot is damaged."""
    go_on(tmp_path, 20, snapshots=2)
    go_on(tmp_path, 10, seed=2)
    log, snapshot = files_of(tmp_path, "log")[-1], files_of(tmp_path, "snapshot")[-1]
    log.write_bytes(log.read_bytes() + b"torn")
    (tmp_path / SUBFOLDER / "log.1f").write_bytes(b"ZK")
    snapshot.write_bytes(snapshot.read_bytes()[:-9])

    first, second = notices_of(tmp_path), notices_of(tmp_path)

    assert len(first) == 3
    assert first[0].startswith(f"the last 4 bytes of {log} were cut off: ")
    assert (
        first[1] == f"{log.with_name('log.1f')} was removed: a stop has left it without a header"
    )
    assert first[2].startswith(
        f"an earlier snapshot in {log.parent} was read, since a later one "
    )
    assert f"({snapshot.name}: it is damaged: " in first[2]
    assert second == first[2:]


def notices_of(path: Path) -> tuple[str, ...]:
    folder = DataFolder.open(path)
    folder.close()
    return folder.notices


def test_a_log_file_that_was_only_made_is_removed(tmp_path: Path) -> None:
    """Apache's servers do not start with an empty one before others."""
    trees = go_on(tmp_path, 20)
    empty = tmp_path / SUBFOLDER / "log.15"
    empty.write_bytes(b"ZK")

    assert whole(recovered(tmp_path)) == whole(trees[-1])
    assert not empty.exists()


def test_the_log_goes_on_in_another_epoch(tmp_path: Path) -> None:
    """A new leader counts from 1 again."""
    trees = go_on(tmp_path, 20)
    folder = DataFolder.open(tmp_path)
    history = RandomHistory(2, replace(trees[-1], zxid=3 << 32))
    for step in history.steps(10):
        folder.append(step.transaction)
    folder.commit()
    folder.close()

    assert whole(recovered(tmp_path)) == whole(history.tree)


def test_the_log_says_when_sessions_began_and_ended(tmp_path: Path) -> None:
    """The reader of Apache's logs reads ours."""
    trees = go_on(tmp_path, 400)

    times = list(session_times_of(tmp_path / SUBFOLDER))

    assert {time.kind for time in times} >= {EventKind.SESSION_OPENED, EventKind.SESSION_CLOSED}
    opened = {time.session for time in times if time.kind == EventKind.SESSION_OPENED}
    ended = {time.session for time in times} - set(trees[-1].sessions)
    assert opened - ended == set(trees[-1].sessions)
    assert all(time.timeout_ms == TIMEOUT_MS for time in times if time.timeout_ms)


# --- what is refused -------------------------------------------------------------------


def test_a_second_server_is_refused(tmp_path: Path) -> None:
    """Also one in another process; and it may go on once the first has ended."""
    folder = DataFolder.open(tmp_path)
    with pytest.raises(EnvironmentProblem, match="another process uses the data in"):
        DataFolder.open(tmp_path)
    code = (
        "import sys; from pathlib import Path; "
        "from watchkeeper.real.zookeeper_data.data_folder import DataFolder; "
        "DataFolder.open(Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert "another process uses the data in" in done.stderr
    folder.close()

    DataFolder.open(tmp_path).close()


def test_a_file_is_no_data_folder(tmp_path: Path) -> None:
    """Nor is a folder below one."""
    file = tmp_path / "file"
    file.write_text("")

    for path in (file, file / "data"):
        with pytest.raises(EnvironmentProblem, match="cannot be used: Not a directory; name a"):
            DataFolder.open(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    """In one sentence."""
    tmp_path.chmod(0o500)

    with pytest.raises(EnvironmentProblem, match="cannot be used: Permission denied; name a"):
        DataFolder.open(tmp_path)


def test_files_of_another_format_are_refused(tmp_path: Path) -> None:
    """They are not taken for torn ones, and stay as they are."""
    folder = tmp_path / SUBFOLDER
    folder.mkdir()
    log = folder / "log.1"
    log.write_text("not a transaction log at all")

    with pytest.raises(EnvironmentProblem, match=r"log\.1 is not a transaction log"):
        DataFolder.open(tmp_path)
    assert log.read_text() == "not a transaction log at all"


def test_a_folder_of_unreadable_snapshots_is_refused(tmp_path: Path) -> None:
    """It is not taken for a new one."""
    folder = tmp_path / SUBFOLDER
    folder.mkdir()
    (folder / "snapshot.7").write_text("not a snapshot at all")

    with pytest.raises(EnvironmentProblem, match=r"no snapshot in .* can be read"):
        DataFolder.open(tmp_path)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """It stays as it is; an empty one may be used, and one with the number of a server."""
    (tmp_path / "myid").write_text("1")
    recovered(tmp_path / "empty")
    with pytest.raises(EnvironmentProblem, match="is not of a ZooKeeper: it has no version-2"):
        DataFolder.open(tmp_path)
    assert not (tmp_path / SUBFOLDER).exists()


def test_the_folder_of_a_member_of_an_ensemble_is_refused(tmp_path: Path) -> None:
    """The other members know nothing of what would be written to it."""
    go_on(tmp_path, 10)
    (tmp_path / SUBFOLDER / "currentEpoch").write_text("1")

    with pytest.raises(EnvironmentProblem, match="belongs to a member of an ensemble"):
        DataFolder.open(tmp_path)


def test_compressed_snapshots_are_refused(tmp_path: Path) -> None:
    """To pass them over would be to lose what they hold."""
    folder = tmp_path / SUBFOLDER
    folder.mkdir()
    (folder / "snapshot.7.gz").write_bytes(b"")

    with pytest.raises(EnvironmentProblem, match="is compressed"):
        DataFolder.open(tmp_path)


def test_after_an_error_of_the_disk_nothing_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed sync it is not known what the disk has."""

    def full(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    folder = DataFolder.open(tmp_path)
    history = RandomHistory(1)
    folder.append(history.step().transaction)
    with monkeypatch.context() as patched:
        patched.setattr(file_layer, "_sync_data", full)
        with pytest.raises(OSError, match="Input/output error"):
            folder.commit()
    folder.append(history.step().transaction)
    with pytest.raises(OSError, match="Input/output error"):
        folder.commit()
    folder.close()
