"""Snapshots that are taken while commits go on: the log alone has what is committed meanwhile."""

from __future__ import annotations

from pathlib import Path
from random import Random
from threading import Thread

import pytest

from tests.support.zookeeper_files.histories import RandomHistory, whole
from watchkeeper.real.zookeeper_data.data_folder import SUBFOLDER, DataFolder


@pytest.mark.parametrize("later", [1, 30])
def test_what_was_committed_before_the_snapshot_is_complete_is_recovered(
    tmp_path: Path, later: int
) -> None:
    """A commit under way when the snapshot begins is in the log file that begins before it."""
    folder = DataFolder.open(tmp_path)
    history = RandomHistory(1, folder.tree)
    for step in history.steps(20):
        folder.append(step.transaction)
    folder.commit()
    tree = history.tree
    for step in history.steps(later):
        folder.append(step.transaction)
    folder.commit()

    folder.snapshot(tree)
    folder.close()

    again = DataFolder.open(tmp_path)
    again.close()
    assert (tmp_path / SUBFOLDER / f"snapshot.{tree.zxid:x}").exists()
    assert whole(again.tree) == whole(history.tree)


@pytest.mark.parametrize("seed", range(3))
def test_commits_and_snapshots_in_two_threads(tmp_path: Path, seed: int) -> None:
    """Whatever the order in which the threads run, everything is there after a restart."""
    random = Random(seed)
    folder = DataFolder.open(tmp_path)
    history = RandomHistory(seed, folder.tree)
    for _ in range(8):
        for step in history.steps(random.randint(1, 40)):
            folder.append(step.transaction)
        folder.commit()
        snapshot = Thread(target=folder.snapshot, args=(history.tree,))
        snapshot.start()
        for step in history.steps(random.randint(1, 40)):
            folder.append(step.transaction)
            folder.commit()
        snapshot.join()
    folder.close()

    again = DataFolder.open(tmp_path)
    again.close()

    assert whole(again.tree) == whole(history.tree)
