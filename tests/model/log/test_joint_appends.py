"""Sets that are appended together are in a log as if each had come alone."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.log.memory_storage import MemoryStorage
from tests.support.log.messages import message_set, opened, storage_with
from watchkeeper.model.log.format.contents import Contents, Series, whole_series
from watchkeeper.model.log.format.message_set_07 import CheckedSet
from watchkeeper.model.log.log import AppendResult, Log
from watchkeeper.model.log.storage import Append, DiskFailed, Flush
from watchkeeper.model.log.validation import check_for_log

SETS = st.lists(
    st.lists(st.binary(max_size=20), max_size=4).map(lambda some: message_set(*some)), max_size=12
)
SERIES = st.lists(st.integers(0, 4).map(lambda count: whole_series(Series("one", 0, count, 5))))
SETTINGS = st.fixed_dictionaries(
    {"flush_messages": st.sampled_from([1, 3, 7, 1000])}, optional={"segment_bytes": st.just(60)}
)


def begun(**settings: Any) -> tuple[MemoryStorage, Log]:
    """An empty log, before the first request."""
    storage = storage_with()
    log = opened(storage, **settings)
    storage.asked.clear()
    return storage, log


def append_all(storage: MemoryStorage, log: Log, sets: list[CheckedSet]) -> list[AppendResult]:
    """Append some after some, up to the last."""
    appended: list[AppendResult] = []
    while len(appended) < len(sets):
        appended += storage.run(log.append_sets(sets[len(appended) :]))
    return appended


def number(storage: MemoryStorage, kind: type[Any]) -> int:
    """How often the storage had a kind of request."""
    return sum(isinstance(effect, kind) for effect in storage.asked)


@given(st.one_of(SETS, SERIES), SETTINGS)
def test_a_log_is_the_same_as_if_each_came_alone(
    sets: list[Contents], settings: dict[str, int]
) -> None:
    """What is in its files, what of it can be read, what was flushed when; in fewer writes."""
    storage, log = begun(**settings)
    alone_storage, alone = begun(**settings)
    expected = [alone_storage.run(alone.append(message_set)) for message_set in sets]

    checked = [check_for_log(log.settings, message_set) for message_set in sets]
    appended = append_all(storage, log, checked)

    assert appended == expected
    for name in ("start", "end", "high_watermark", "unflushed_messages"):
        assert getattr(log, name) == getattr(alone, name)
    assert [segment.start for segment in log.segments.view] == [
        segment.start for segment in alone.segments.view
    ]
    assert {path: file.flushed_bytes for path, file in storage.files.items()} == {
        path: file.flushed_bytes for path, file in alone_storage.files.items()
    }
    assert number(storage, Flush) == number(alone_storage, Flush)
    assert number(storage, Append) <= number(alone_storage, Append)
    if all(isinstance(message_set, bytes) for message_set in sets):
        assert storage.files.keys() == alone_storage.files.keys()
        for path, file in storage.files.items():
            assert file.contents == alone_storage.files[path].contents


def test_what_is_between_two_flushes_is_one_write() -> None:
    storage, log = begun(flush_messages=4)
    check = check_for_log(log.settings, message_set("a", "b"))

    assert append_all(storage, log, [check] * 5) == [
        AppendResult(22 * at, 2, 22) for at in range(5)
    ]

    writes = [len(effect.contents) for effect in storage.asked if isinstance(effect, Append)]
    assert writes == [44, 44, 22]
    assert (number(storage, Flush), log.high_watermark) == (2, 88)


def test_after_a_write_that_fails_nothing_more_is_written() -> None:
    """Those before it are flushed, and the log has stopped."""
    storage, log = begun(flush_messages=2)
    check = check_for_log(log.settings, message_set("a", "b"))
    storage.shortened.extend([10**9, DiskFailed])

    try:
        append_all(storage, log, [check] * 3)
    except DiskFailed:
        pass
    else:
        raise AssertionError("a disk that fails is not passed over")

    assert (log.high_watermark, number(storage, Append)) == (22, 2)
    assert "DiskFailed" in log.stopped
