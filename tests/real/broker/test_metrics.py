"""What a live broker tells of its files: against the files, the log and the kernel itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import real.gauges
from model.log.log import Log
from model.log.message import Message
from model.log.message_set import encode
from model.log.settings import LogSettings
from model.log.storage import Append, CreateFile, Delete, Flush, MakeFolder, Read, Truncate
from real.gauges import AtRisk, GaugedStorage, Gauges, last_seen
from real.hostcrash import Extent, cut_back
from real.pagecache import (
    PAGE_BYTES,
    TO_THE_END,
    Look,
    by_cachestat,
    by_mincore,
    forget,
    missed_bytes,
    way_to_look,
)
from tests.killing import forked

FOLDER = "clicks-0"
PAGES = 40


class Site:
    """The folders of one broker's host."""

    def __init__(self, home: Path) -> None:
        self.root, self.diary = home / "logs", home / "on-disk"

    def open(self) -> GaugedStorage:
        """Another process begins."""
        return GaugedStorage(self.root, self.diary)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


# --- the kernel ------------------------------------------------------------------------


def is_there(look: Look, path: Path) -> bool:
    """Whether the system has this way to look."""
    with path.open("rb") as file:
        try:
            look(file.fileno(), 0, PAGE_BYTES)
        except (OSError, AttributeError):
            return False
    return True


@pytest.mark.parametrize("look", [by_cachestat, by_mincore])
def test_the_kernel_says_what_is_in_memory(tmp_path: Path, look: Look) -> None:
    """All that was written; nothing when it was let go; and what has been read since."""
    path = tmp_path / "pages"
    path.write_bytes(b"x" * PAGE_BYTES * PAGES)
    if not is_there(look, path):
        pytest.skip(f"this system has no {look.__name__}")
    with path.open("r+b") as file:
        descriptor = file.fileno()
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # nothing is read ahead
        written = look(descriptor, 0, TO_THE_END)
        forget(descriptor)
        forgotten = look(descriptor, 0, TO_THE_END)
        if forgotten.cached:
            pytest.skip("these files are nowhere but in memory")
        os.pread(descriptor, 1, 5 * PAGE_BYTES)
        read = [look(descriptor, at * PAGE_BYTES, 1).cached for at in range(PAGES)]

    assert written.cached == PAGES
    assert written.unwritten in (None, PAGES)
    assert forgotten.unwritten in (None, 0)
    assert [at for at, is_cached in enumerate(read) if is_cached] == [5]


@given(st.integers(0, 3 * PAGE_BYTES), st.integers(1, 3 * PAGE_BYTES), st.integers(0, 5))
def test_what_was_missed_is_no_more_than_what_was_read(at: int, size: int, cached: int) -> None:
    """All of it if no page was there, nothing if each was."""
    pages = len({place // PAGE_BYTES for place in range(at, at + size)})
    missed = missed_bytes(at, size, min(cached, pages))

    assert 0 <= missed <= size
    assert missed_bytes(at, size, 0) == size
    assert missed_bytes(at, size, pages) == 0


# --- at risk ---------------------------------------------------------------------------

STEPS = st.lists(st.sampled_from(["append", "append", "append", "flush", "kill"]), max_size=12)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_what_is_at_risk_is_what_the_log_has_not_flushed_and_what_a_crash_takes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Three who do not know each other agree: the board, the log, the files."""
    site = Site(tmp_path_factory.mktemp("site"))
    storage, log = begun(site)
    for number, step in enumerate(steps):
        if step == "append":
            messages = [Message.of(b"%d" % at * 30) for at in range(number + 1)]
            storage.run(log.append(encode(messages)))
        elif step == "flush":
            storage.run(log.flush())
        else:
            storage.close()
            storage, log = begun(site)
        assert storage.seen()["unflushed"] == log.end - log.readable_end
    storage.close()
    seen = last_seen(site.root, site.diary)
    assert seen is not None

    cuts = cut_back(site.root, site.diary)

    assert seen["unflushed"] == sum(one.before_bytes - one.after_bytes for one in cuts)
    if is_on_a_disk(site.root):
        left = last_seen(site.root, site.diary)
        assert left is not None
        assert left.get("cached", 0) == 0


def is_on_a_disk(folder: Path) -> bool:
    """Whether files there are on a disk, and not in memory alone."""
    with (folder / "tried").open("w+b") as file:
        file.write(b"x" * PAGE_BYTES)
        file.flush()
        look = way_to_look(file.fileno())
        forget(file.fileno())
        found = look(file.fileno(), 0, PAGE_BYTES).cached if look is not None else 0
    (folder / "tried").unlink()
    return not found


def begun(site: Site) -> tuple[GaugedStorage, Log]:
    """A process that has opened its log, and recovered it; a roll comes after 400 bytes."""
    storage = site.open()
    storage.answer(MakeFolder(FOLDER))
    log_settings = LogSettings(segment_bytes=400, flush_messages=10**6)
    log, _ = storage.run(Log.open(FOLDER, log_settings, was_clean=False))
    return storage, log


@pytest.mark.parametrize(
    ("asks", "left", "most"),
    [
        ((Append("a", b"x" * 10),), 10, 10),
        ((Append("a", b"x" * 10), Flush("a")), 0, 10),
        ((Append("a", b"x" * 10), Flush("a"), Append("a", b"y" * 3)), 3, 10),
        ((Append("a", b"x" * 10), Truncate("a", 4)), 0, 10),
        ((Append("a", b"x" * 10), CreateFile("a")), 0, 10),
        ((Append("a", b"x" * 10), Delete("a")), 0, 10),
        ((Append("a", b"x" * 10), Append("b/c", b"y" * 5), Delete("b")), 10, 15),
    ],
)
def test_each_ask_has_its_part_in_what_is_at_risk(
    site: Site, asks: tuple[Any, ...], left: int, most: int
) -> None:
    """And what it was at most stays said until somebody has told it."""
    storage = site.open()
    for ask in (CreateFile("a"), MakeFolder("b"), CreateFile("b/c"), *asks):
        storage.answer(ask)

    seen = storage.seen()
    assert (seen["unflushed"], seen["most_unflushed"]) == (left, most)
    storage.was_told()
    assert storage.seen()["most_unflushed"] == left


def test_a_flush_takes_nothing_along_that_came_while_it_waited() -> None:
    """What was appended after it had begun may not be on the disk."""
    risk = AtRisk({"a": Extent(100, 40)})
    risk.appended("a", 25)
    risk.synced("a", 100)
    assert risk.total_bytes == 25


def test_what_a_killed_process_had_at_risk_can_be_read(site: Site) -> None:
    """It told nobody; the next one counts on, from what is at risk when it begins."""

    def work() -> int:
        storage = site.open()
        for ask in (CreateFile("a"), Append("a", b"x" * 70), Flush("a"), Append("a", b"y" * 7)):
            storage.answer(ask)
        storage.answer(Read("a", 0, 50))
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert last_seen(site.root, site.diary) is None
    assert forked(work) == -signal.SIGKILL

    seen = last_seen(site.root, site.diary)
    assert seen is not None
    assert (seen["unflushed"], seen["most_unflushed"]) == (7, 70)
    assert site.open().seen() == {**seen, "most_unflushed": 7}


# --- read ------------------------------------------------------------------------------


def test_reads_are_found_in_memory_or_not(site: Site) -> None:
    """When nothing is there, when it is, and at the end of a file; sent or read."""
    storage = site.open()
    size = PAGES * PAGE_BYTES
    for ask in (CreateFile("a"), Append("a", b"x" * size)):
        storage.answer(ask)
    if "hit" not in storage.seen():
        pytest.skip("this kernel does not say what is in memory")
    with storage.sending("a", 10, 1000) as descriptor:
        forget(descriptor)
        if storage.seen()["cached"]:
            pytest.skip("these files are nowhere but in memory")
    assert (storage.seen()["hit"], storage.seen()["missed"]) == (1000, 0)
    assert len(storage.answer(Read("a", 0, size))) == size
    with storage.sending("a", 0, size):
        assert (storage.seen()["hit"], storage.seen()["missed"]) == (1000 + size, size)
    storage.answer(Read("a", size - 5, 100))
    assert (storage.seen()["hit"], storage.seen()["missed"]) == (1005 + size, size)


@pytest.mark.parametrize(
    ("way", "told"),
    [
        (lambda descriptor: by_mincore, {"hit", "missed", "cached"}),
        (lambda descriptor: None, {"read"}),
    ],
)
def test_what_is_not_known_is_not_told(
    site: Site, way: Callable[[int], Any], told: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that says less leaves fields out, and one that says nothing leaves a sum."""
    if way_to_look(os.open(site.root.parent, os.O_RDONLY)) is None and told != {"read"}:
        pytest.skip("this kernel does not say what is in memory")
    monkeypatch.setattr(real.gauges, "way_to_look", way)
    storage = site.open()
    for ask in (CreateFile("a"), Append("a", b"x" * 500), Read("a", 0, 600)):
        storage.answer(ask)

    seen = storage.seen()

    assert set(seen) == {"unflushed", "most_unflushed", *told}
    assert seen.get("read", 500) == seen.get("hit", 500) == 500


def test_only_changes_are_told(site: Site) -> None:
    """Nothing is written where all stands as it did."""
    lines: list[dict[str, int]] = []

    class Notes:
        node = "broker/0"

        def write(self, kind: str, detail: Any = None, **more: Any) -> None:
            assert kind == "gauges"
            lines.append(dict(detail))

    storage = site.open()
    gauges = Gauges(storage, Notes())
    for ask in (
        CreateFile("a"),
        Append("a", b"x" * 8),
        Append("a", b"x"),
        Flush("a"),
        Flush("a"),
    ):
        storage.answer(ask)
        gauges.tell()

    assert [(one["unflushed"], one["most_unflushed"]) for one in lines] == [
        (0, 0), (8, 8), (9, 9), (0, 9), (0, 0),
    ]  # fmt: skip
    assert all(one != other for one, other in pairwise(lines))
