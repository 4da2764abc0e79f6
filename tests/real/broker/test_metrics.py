"""The metrics of a live broker's files, compared with the files, the log and the kernel."""

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

from tests.support.pipeline.killed_loads import forked
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    Flush,
    MakeFolder,
    Read,
    Truncate,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.storage import metrics
from watchkeeper.real.storage.host_crash import Extent, cut_back
from watchkeeper.real.storage.metrics import (
    HostMetrics,
    MeteredStorage,
    UnflushedBytes,
    last_metrics,
)
from watchkeeper.real.storage.pagecache import (
    PAGE_BYTES,
    TO_THE_END,
    PageCounter,
    by_cachestat,
    by_mincore,
    forget,
    missed_bytes,
    page_counter,
)

FOLDER = "clicks-0"
PAGES = 40


class Site:
    """The folders of one broker's host."""

    def __init__(self, home: Path) -> None:
        self.root, self.sync_log = home / "logs", home / "on-disk"

    def open(self) -> MeteredStorage:
        """Start another process."""
        return MeteredStorage(self.root, self.sync_log)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


# --- the kernel ------------------------------------------------------------------------


def is_there(look: PageCounter, path: Path) -> bool:
    """Whether the system has this method."""
    with path.open("rb") as file:
        try:
            look(file.fileno(), 0, PAGE_BYTES)
        except (OSError, AttributeError):
            return False
    return True


@pytest.mark.parametrize("look", [by_cachestat, by_mincore])
def test_the_kernel_reports_cached_pages(tmp_path: Path, look: PageCounter) -> None:
    """All that was written; nothing after it was dropped; then what has been read since."""
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
def test_missed_bytes_are_at_most_the_bytes_read(at: int, size: int, cached: int) -> None:
    """All of it if no page was cached, nothing if every page was."""
    pages = len({place // PAGE_BYTES for place in range(at, at + size)})
    missed = missed_bytes(at, size, min(cached, pages))

    assert 0 <= missed <= size
    assert missed_bytes(at, size, 0) == size
    assert missed_bytes(at, size, pages) == 0


# --- at risk ---------------------------------------------------------------------------

STEPS = st.lists(st.sampled_from(["append", "append", "append", "flush", "kill"]), max_size=12)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_unflushed_bytes_are_those_that_a_crash_loses(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Three independent sources agree: the board, the log and the files."""
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
        assert storage.seen()["unflushed"] == log.end - log.high_watermark
    storage.close()
    seen = last_metrics(site.root, site.sync_log)
    assert seen is not None

    cuts = cut_back(site.root, site.sync_log)

    assert seen["unflushed"] == sum(cut.before_bytes - cut.after_bytes for cut in cuts)
    if is_on_a_disk(site.root):
        left = last_metrics(site.root, site.sync_log)
        assert left is not None
        assert left.get("cached", 0) == 0


def is_on_a_disk(folder: Path) -> bool:
    """Whether files in this folder are on a disk, and not only in memory."""
    with (folder / "tried").open("w+b") as file:
        file.write(b"x" * PAGE_BYTES)
        file.flush()
        look = page_counter(file.fileno())
        forget(file.fileno())
        found = look(file.fileno(), 0, PAGE_BYTES).cached if look is not None else 0
    (folder / "tried").unlink()
    return not found


def begun(site: Site) -> tuple[MeteredStorage, Log]:
    """A process that has opened and recovered its log, which rolls after 400 bytes."""
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
def test_each_effect_changes_the_unflushed_bytes(
    site: Site, asks: tuple[Any, ...], left: int, most: int
) -> None:
    """The maximum is kept until it has been reported."""
    storage = site.open()
    for effect in (CreateFile("a"), MakeFolder("b"), CreateFile("b/c"), *asks):
        storage.answer(effect)

    seen = storage.seen()
    assert (seen["unflushed"], seen["most_unflushed"]) == (left, most)
    storage.mark_reported()
    assert storage.seen()["most_unflushed"] == left


def test_a_flush_does_not_count_later_appends() -> None:
    """Bytes that were appended after its begin may not be on the disk."""
    risk = UnflushedBytes({"a": Extent(100, 40)})
    risk.appended("a", 25)
    risk.synced("a", 100)
    assert risk.total_bytes == 25


def test_the_metrics_of_a_killed_process_can_be_read(site: Site) -> None:
    """It reported nothing; the next process continues with what is unflushed at its begin."""

    def work() -> int:
        storage = site.open()
        for effect in (
            CreateFile("a"),
            Append("a", b"x" * 70),
            Flush("a"),
            Append("a", b"y" * 7),
        ):
            storage.answer(effect)
        storage.answer(Read("a", 0, 50))
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert last_metrics(site.root, site.sync_log) is None
    assert forked(work) == -signal.SIGKILL

    seen = last_metrics(site.root, site.sync_log)
    assert seen is not None
    assert (seen["unflushed"], seen["most_unflushed"]) == (7, 70)
    assert site.open().seen() == {**seen, "most_unflushed": 7}


# --- read ------------------------------------------------------------------------------


def test_reads_are_counted_as_hits_or_misses(site: Site) -> None:
    """Uncached, cached, and at the end of a file; sent or read."""
    storage = site.open()
    size = PAGES * PAGE_BYTES
    for effect in (CreateFile("a"), Append("a", b"x" * size)):
        storage.answer(effect)
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
    ("way", "reported"),
    [
        (lambda descriptor: by_mincore, {"hit", "missed", "cached"}),
        (lambda descriptor: None, {"read"}),
    ],
)
def test_unknown_metrics_are_not_reported(
    site: Site, way: Callable[[int], Any], reported: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel with less information omits fields; one with none leaves a sum."""
    if page_counter(os.open(site.root.parent, os.O_RDONLY)) is None and reported != {"read"}:
        pytest.skip("this kernel does not say what is in memory")
    monkeypatch.setattr(metrics, "page_counter", way)
    storage = site.open()
    for effect in (CreateFile("a"), Append("a", b"x" * 500), Read("a", 0, 600)):
        storage.answer(effect)

    seen = storage.seen()

    assert set(seen) == {"unflushed", "most_unflushed", *reported}
    assert seen.get("read", 500) == seen.get("hit", 500) == 500


def test_only_changes_are_reported(site: Site) -> None:
    """Unchanged metrics are not written."""
    lines: list[dict[str, int]] = []

    class Notes:
        node = "broker/0"

        def write(self, kind: str, detail: Any = None, **more: Any) -> None:
            assert kind == EventKind.HOST_METRICS
            lines.append(dict(detail))

    storage = site.open()
    gauges = HostMetrics(storage, Notes())
    for effect in (
        CreateFile("a"),
        Append("a", b"x" * 8),
        Append("a", b"x"),
        Flush("a"),
        Flush("a"),
    ):
        storage.answer(effect)
        gauges.report()

    assert [(line["unflushed"], line["most_unflushed"]) for line in lines] == [
        (0, 0), (8, 8), (9, 9), (0, 9), (0, 0),
    ]  # fmt: skip
    assert all(line != following for line, following in pairwise(lines))
