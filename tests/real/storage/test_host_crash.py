"""The emulated loss of a host: synced bytes stay, a random part of the rest is lost."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    Flush,
    MakeFolder,
    Read,
    Rename,
    Truncate,
)
from watchkeeper.real.storage import file_storage
from watchkeeper.real.storage.host_crash import Cut, WatchedStorage, cut_back, end_host

SEEDS = range(40)


class Host:
    """Files, and what is known of them."""

    def __init__(self, folder: Path) -> None:
        self.root, self.sync_log = folder / "root", folder / "sync_log"
        self.begin()

    def begin(self) -> None:
        """Start another process."""
        self.storage = WatchedStorage(self.root, self.sync_log)

    def perform(self, *effects: Any) -> None:
        """Perform all of these."""
        for effect in effects:
            self.storage.answer(effect)

    def end(self, seed: int) -> int:
        """The host ends."""
        self.storage.close()
        lost_bytes = end_host(self.root, self.sync_log, Random(seed))
        self.begin()
        return lost_bytes

    def read(self, path: str) -> Any:
        """The contents of a file; None if it does not exist."""
        answer = self.storage.answer(Read(path, 0, 10**6))
        return answer if isinstance(answer, bytes) else None


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A host with an empty file."""
    host = Host(tmp_path)
    host.perform(MakeFolder("a"), CreateFile("a/one"))
    return host


@pytest.mark.parametrize("seed", SEEDS)
def test_a_renamed_file_keeps_what_was_synced(host: Host, seed: int) -> None:
    """What is appended under the new name is lost as anything else is."""
    host.perform(Append("a/one", b"old"), Flush("a/one"), CreateFile("a/two"))
    host.perform(Append("a/two", b"new"), Flush("a/two"), Rename("a/two", "a/one"))
    host.perform(Append("a/one", b"-and-more"))

    host.end(seed)

    found = host.read("a/one")
    assert found.startswith(b"new")
    assert len(found) <= len(b"new-and-more")
    assert host.read("a/two") is None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rename_that_was_under_way_is_done_or_not(host: Host, seed: int) -> None:
    """A process that is killed in between leaves the one file or the other."""
    host.perform(Append("a/one", b"old"), Flush("a/one"))
    host.perform(CreateFile("a/two"), Append("a/two", b"new"), Flush("a/two"))
    lines = (host.sync_log / "lines").stat().st_size
    host.perform(Rename("a/two", "a/one"))
    written = (host.sync_log / "lines").read_bytes()
    begun = written[lines:].splitlines(keepends=True)[0]
    (host.sync_log / "lines").write_bytes(written[:lines] + begun)

    host.end(seed)

    assert host.read("a/one") in (b"old", b"new")


@pytest.mark.parametrize("seed", SEEDS)
def test_synced_bytes_stay(host: Host, seed: int) -> None:
    """The rest is cut anywhere; what remains is unchanged or zeros."""
    rest = bytes(range(1, 256)) * 20
    host.perform(Append("a/one", b"synced"), Flush("a/one"), Append("a/one", rest))

    lost_bytes = host.end(seed)

    found = host.read("a/one")
    assert found.startswith(b"synced")
    left = found[6:]
    assert all(byte in (0, known) for byte, known in zip(left, rest, strict=False))
    assert lost_bytes == len(rest) - len(left) + left.count(0)


def test_all_kinds_of_losses_happen(tmp_path: Path) -> None:
    """Something is lost, something remains, and something is zeros."""
    kinds = set()
    for seed in SEEDS:
        host = Host(tmp_path / str(seed))
        host.perform(CreateFile("one"), Append("one", b"x" * 5000))
        host.end(seed)
        left = host.read("one")
        kinds.add((len(left) < 5000, bool(left), b"\0" in left))

    assert {(True, True, True), (True, True, False)} <= kinds


def test_unsynced_bytes_may_be_lost_after_several_processes(host: Host) -> None:
    """The kernel has it and later processes can read it, but the disk does not have it."""
    host.perform(Append("a/one", b"x" * 1000))
    host.storage.close()
    host.begin()
    assert host.read("a/one") == b"x" * 1000

    assert host.end(1) > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_what_remains_is_on_the_disk(host: Host, seed: int) -> None:
    """Its next end loses nothing more."""
    host.perform(Append("a/one", b"x" * 1000))
    host.end(seed)
    left = host.read("a/one")

    assert host.end(seed + 1) == 0
    assert host.read("a/one") == left


def test_a_truncated_file_stays_truncated(host: Host) -> None:
    """What is appended afterwards is not synced by that."""
    host.perform(
        Append("a/one", b"x" * 1000), Truncate("a/one", 10), Append("a/one", b"y" * 1000)
    )
    assert host.end(3) > 0
    assert host.read("a/one").startswith(b"x" * 10)


def test_a_replaced_file_does_not_inherit_synced_bytes(host: Host) -> None:
    """However much of the old file had been synced."""
    host.perform(Append("a/one", b"x" * 1000), Flush("a/one"), CreateFile("a/one"))
    host.perform(Append("a/one", b"y" * 1000))

    assert host.end(1) > 0


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("kind", [CreateFile, Delete])
def test_a_name_that_was_being_changed_is_as_before_or_as_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, is_done: bool
) -> None:
    """Both happen if the kernel had done it; otherwise the name is as before."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    found = set()
    for seed in SEEDS:
        host = Host(tmp_path / str(seed))
        host.perform(CreateFile("one"), Append("one", b"old"), Flush("one"))
        with monkeypatch.context() as patch:
            patch.setattr(
                *((file_storage, "_sync_folder") if is_done else (os, "unlink")), killed
            )
            with pytest.raises(KeyboardInterrupt):
                host.storage.answer(kind("one"))
        host.end(seed)
        found.add(host.read("one"))

    after = b"" if kind is CreateFile else None
    assert found == ({b"old", after} if is_done else {b"old"})


def test_existing_files_count_as_synced(tmp_path: Path) -> None:
    """A sync log that begins later assumes so."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "one").write_bytes(b"before")
    host = Host(tmp_path)

    assert host.end(0) == 0
    assert host.read("one") == b"before"


def test_a_cut_to_the_synced_part_is_deterministic(host: Host) -> None:
    """Across processes; a second cut finds nothing to remove."""
    host.perform(CreateFile("a/two"), Append("a/one", b"synced"), Flush("a/one"))
    host.storage.close()
    host.begin()
    host.perform(Append("a/one", b" and not"), Append("a/two", b"never"))
    host.storage.close()

    cuts = cut_back(host.root, host.sync_log)

    assert cuts == (Cut("a/one", 14, 6), Cut("a/two", 5, 0))
    assert cut_back(host.root, host.sync_log) == ()
    host.begin()
    assert (host.read("a/one"), host.read("a/two")) == (b"synced", b"")


def test_a_host_that_has_stored_nothing_loses_nothing(tmp_path: Path) -> None:
    """Its broker was killed before it had recorded anything."""
    (tmp_path / "root").mkdir()

    assert cut_back(tmp_path / "root", tmp_path / "sync_log") == ()


def test_concurrent_changes_of_names_do_not_interfere(host: Host) -> None:
    """Threads roll several logs and delete old files while they wait for the disk."""
    names = [f"a/{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda name: host.storage.answer(CreateFile(name)), names))
        gone = list(threads.map(lambda name: host.storage.answer(Delete(name)), names))

    assert made == gone == [None] * len(names)
