"""The cache of a partition: the latest message of each key counts, in any order of arrival."""

from __future__ import annotations

from random import Random

import pytest

from watchkeeper.model.offset_manager.cache import OffsetCache
from watchkeeper.model.offset_manager.manager import OffsetManager, partition_of
from watchkeeper.model.offset_manager.records import CommittedOffset, OffsetKey
from watchkeeper.model.offset_manager.settings import OffsetSettings

KEY = OffsetKey("g", "t", 0)
MINUTE_MS = 60_000


def at(offset: int, time_ms: int = 0) -> CommittedOffset:
    """A commit."""
    return CommittedOffset(offset, "", time_ms)


def test_a_loader_that_is_late_replaces_nothing_newer() -> None:
    cache = OffsetCache()
    cache.note(7, KEY, at(70))

    cache.note(3, KEY, at(30))
    cache.note(4, KEY, None)

    assert cache.get(KEY) == at(70)
    cache.note(8, KEY, None)
    assert cache.get(KEY) is None
    assert len(cache) == 0


def test_commits_that_arrive_during_a_load_in_any_order() -> None:
    """The end is that of the log, however the loader and the commits take turns."""
    chance = Random(4)
    for _ in range(200):
        log = [
            (number, OffsetKey("g", "t", chance.randrange(3)), at(number))
            for number in range(chance.randrange(1, 12))
        ]
        split = chance.randrange(len(log))
        old, new = log[:], log[split:]
        cache = OffsetCache()
        while old or new:
            source = old if old and (not new or chance.random() < 0.5) else new
            cache.note(*source.pop(0))

        expected = {key: committed for _, key, committed in log}
        assert {key: cache.get(key) for key in expected} == expected


def test_a_partition_that_is_lost_and_led_again_has_a_new_cache() -> None:
    manager = OffsetManager(OffsetSettings())
    old = manager.lead([1, 2])[1]

    assert manager.lead([2]) == {}
    new = manager.lead([1, 2])[1]
    old.note(0, KEY, at(5))
    old.is_loaded = True

    assert not new.is_loaded
    assert manager.loaded() == ()
    assert manager.size_of(1) == 0


def test_a_partition_that_is_not_loaded_expires_nothing() -> None:
    """KAFKA-2163: a tombstone would follow a newer commit, which the loader has not read yet."""
    manager = OffsetManager(OffsetSettings(retention_ms=MINUTE_MS))
    cache = manager.lead([0])[0]
    cache.note(0, KEY, at(10, time_ms=0))

    assert manager.expired(0, 10 * MINUTE_MS) == {}
    cache.note(1, KEY, at(99, time_ms=10 * MINUTE_MS))
    cache.is_loaded = True
    assert manager.expired(0, 10 * MINUTE_MS) == {}
    assert manager.expired(0, 11 * MINUTE_MS + 1) == {KEY: None}
    assert manager.expired(1, 11 * MINUTE_MS + 1) == {}


@pytest.mark.parametrize(
    ("group", "partition"),
    [("test-group", 12), ("g1", 42), ("console-consumer-1", 24), ("group1", 40)],
)
def test_the_partition_of_a_group(group: str, partition: int) -> None:
    """As Kafka 0.8.2.2 computes it."""
    assert partition_of(group, 50) == partition


def test_the_smallest_hash_has_a_partition() -> None:
    """Java's abs of it is negative."""
    assert partition_of("polygenelubricants", 50) == 0
