"""The end of a host, done to files: what was synced stays, and of the rest chance decides."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

import real.storage
from model.log.storage import Append, CreateFile, Delete, Flush, MakeFolder, Read, Truncate
from real.hostcrash import Cut, WatchedStorage, cut_back, end_host

SEEDS = range(40)


class Host:
    """Files, and what is known of them."""

    def __init__(self, folder: Path) -> None:
        self.root, self.diary = folder / "root", folder / "diary"
        self.begin()

    def begin(self) -> None:
        """Another process begins."""
        self.storage = WatchedStorage(self.root, self.diary)

    def asked(self, *asks: Any) -> None:
        """Ask all of these."""
        for ask in asks:
            self.storage.answer(ask)

    def end(self, seed: int) -> int:
        """The host ends."""
        self.storage.close()
        lost_bytes = end_host(self.root, self.diary, Random(seed))
        self.begin()
        return lost_bytes

    def read(self, path: str) -> Any:
        """What is in a file; None if there is none."""
        answer = self.storage.answer(Read(path, 0, 10**6))
        return answer if isinstance(answer, bytes) else None


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A host with an empty file."""
    host = Host(tmp_path)
    host.asked(MakeFolder("a"), CreateFile("a/one"))
    return host


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_synced_stays(host: Host, seed: int) -> None:
    """The rest is cut somewhere; what is left of it is as it was, or zeros."""
    rest = bytes(range(1, 256)) * 20
    host.asked(Append("a/one", b"synced"), Flush("a/one"), Append("a/one", rest))

    lost_bytes = host.end(seed)

    found = host.read("a/one")
    assert found.startswith(b"synced")
    left = found[6:]
    assert all(one in (0, known) for one, known in zip(left, rest, strict=False))
    assert lost_bytes == len(rest) - len(left) + left.count(0)


def test_all_kinds_of_losses_happen(tmp_path: Path) -> None:
    """Something is lost, something is left, and something is zeros."""
    kinds = set()
    for seed in SEEDS:
        host = Host(tmp_path / str(seed))
        host.asked(CreateFile("one"), Append("one", b"x" * 5000))
        host.end(seed)
        left = host.read("one")
        kinds.add((len(left) < 5000, bool(left), b"\0" in left))

    assert {(True, True, True), (True, True, False)} <= kinds


def test_what_was_never_synced_may_be_gone_after_several_processes(host: Host) -> None:
    """The kernel has it, and the processes after the first can read it: the disk has not."""
    host.asked(Append("a/one", b"x" * 1000))
    host.storage.close()
    host.begin()
    assert host.read("a/one") == b"x" * 1000

    assert host.end(1) > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_host_left_is_on_the_disk(host: Host, seed: int) -> None:
    """The next end of it takes nothing more."""
    host.asked(Append("a/one", b"x" * 1000))
    host.end(seed)
    left = host.read("a/one")

    assert host.end(seed + 1) == 0
    assert host.read("a/one") == left


def test_a_file_that_was_cut_is_cut(host: Host) -> None:
    """And what is appended afterwards is not synced by that."""
    host.asked(Append("a/one", b"x" * 1000), Truncate("a/one", 10), Append("a/one", b"y" * 1000))
    assert host.end(3) > 0
    assert host.read("a/one").startswith(b"x" * 10)


def test_a_file_that_was_made_anew_is_not_synced_by_what_the_old_one_was(host: Host) -> None:
    """However much of that had been."""
    host.asked(Append("a/one", b"x" * 1000), Flush("a/one"), CreateFile("a/one"))
    host.asked(Append("a/one", b"y" * 1000))

    assert host.end(1) > 0


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("kind", [CreateFile, Delete])
def test_a_name_that_was_being_changed_is_as_before_or_as_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, is_done: bool
) -> None:
    """Both happen, where the kernel had it done; where not, it is as before."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    found = set()
    for seed in SEEDS:
        host = Host(tmp_path / str(seed))
        host.asked(CreateFile("one"), Append("one", b"old"), Flush("one"))
        with monkeypatch.context() as patch:
            patch.setattr(
                *((real.storage, "_sync_folder") if is_done else (os, "unlink")), killed
            )
            with pytest.raises(KeyboardInterrupt):
                host.storage.answer(kind("one"))
        host.end(seed)
        found.add(host.read("one"))

    after = b"" if kind is CreateFile else None
    assert found == ({b"old", after} if is_done else {b"old"})


def test_what_was_there_before_is_taken_for_synced(tmp_path: Path) -> None:
    """A diary that begins later knows no better."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "one").write_bytes(b"before")
    host = Host(tmp_path)

    assert host.end(0) == 0
    assert host.read("one") == b"before"


def test_what_was_not_synced_can_be_cut_off_without_any_chance(host: Host) -> None:
    """Through the lives of processes; a second cut finds nothing to take."""
    host.asked(CreateFile("a/two"), Append("a/one", b"synced"), Flush("a/one"))
    host.storage.close()
    host.begin()
    host.asked(Append("a/one", b" and not"), Append("a/two", b"never"))
    host.storage.close()

    cuts = cut_back(host.root, host.diary)

    assert cuts == (Cut("a/one", 14, 6), Cut("a/two", 5, 0))
    assert cut_back(host.root, host.diary) == ()
    host.begin()
    assert (host.read("a/one"), host.read("a/two")) == (b"synced", b"")


def test_a_host_that_has_stored_nothing_loses_nothing(tmp_path: Path) -> None:
    """Its broker was killed before it had begun to take anything down."""
    (tmp_path / "root").mkdir()

    assert cut_back(tmp_path / "root", tmp_path / "diary") == ()


def test_names_that_change_at_once_do_not_get_into_one_anothers_way(host: Host) -> None:
    """Several logs are rolled, and old files deleted, by threads that wait for the disk."""
    names = [f"a/{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda name: host.storage.answer(CreateFile(name)), names))
        gone = list(threads.map(lambda name: host.storage.answer(Delete(name)), names))

    assert made == gone == [None] * len(names)
