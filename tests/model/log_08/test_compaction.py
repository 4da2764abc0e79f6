"""Compaction: the latest message of each key stays, whatever interrupts it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

import pytest

from tests.support.log.memory_storage import Killed, MemoryStorage
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.message_08 import KeyedMessage, Record, encode, records, wrap
from watchkeeper.model.log.settings import BrokerLogSettings
from watchkeeper.model.log_08.checks import check_set
from watchkeeper.model.log_08.cleaner import Cleaned, Cleaner
from watchkeeper.model.log_08.cleaner_settings import CleanerSettings
from watchkeeper.model.log_08.compaction import Interrupted
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.log_08.manager import CLEANER_CHECKPOINT, KeyedLogs
from watchkeeper.model.log_08.settings import DEFAULTS, KeyedLogSettings

T = TypeVar("T")
FOLDER = "t-0"
HOUR_MS = 3_600_000
SEGMENT_BYTES = 400
assert isinstance(DEFAULTS.default, KeyedLogSettings)
COMPACTED = replace(DEFAULTS.default, segment_bytes=SEGMENT_BYTES, is_compacted=True)
SETTINGS = CleanerSettings(is_enabled=True, min_dirty_ratio=0.0, delete_retention_ms=HOUR_MS)


async def without_lock(log: KeyedLog, work: Callable[[], Any]) -> Any:
    """Nothing else works with the log."""
    return await work()


class Home:
    """A broker with one compacted log, which can be killed."""

    def __init__(
        self,
        settings: CleanerSettings = SETTINGS,
        *,
        log_settings: KeyedLogSettings = COMPACTED,
    ) -> None:
        self.storage = MemoryStorage()
        self.settings = settings
        self.log_settings = log_settings
        self.appended: list[Record] = []
        self.start()
        self.run(self.logs.get_or_create("t", 0))

    def start(self, *, killed_after: int | None = None) -> None:
        """Start a process."""
        self.logs = KeyedLogs(BrokerLogSettings(default=self.log_settings))
        self.storage.run(self.logs.start(), killed_after=killed_after)
        self.cleaner = Cleaner(self.logs, without_lock, self.settings)

    def copy(self) -> Home:
        """A broker with the same files."""
        again = Home(self.settings, log_settings=self.log_settings)
        for path, file in self.storage.files.items():
            assert isinstance(file.contents, bytes)
            again.storage.put(path, file.contents)
        again.appended = list(self.appended)
        again.start()
        return again

    @property
    def log(self) -> KeyedLog:
        """The log."""
        found = self.logs.get("t", 0)
        assert found is not None
        return found

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Drive a coroutine to its end."""
        return self.storage.run(coroutine)

    def append(
        self, *pairs: tuple[bytes | None, bytes | None], codec: Codec = Codec.NONE
    ) -> None:
        """Append messages as one set."""
        messages = [KeyedMessage(key, value) for key, value in pairs]
        data = encode(messages) if codec is Codec.NONE else wrap(messages, codec)
        checked = check_set(data, largest_entry_bytes=1 << 20)
        first = self.run(self.log.append_set(checked)).offset
        self.appended += [Record(at, key, value) for at, (key, value) in enumerate(pairs, first)]

    def clean(self, *, killed_after: int | None = None) -> Cleaned | None:
        """Compact."""
        return self.storage.run(self.cleaner.clean_dirtiest(), killed_after=killed_after)

    def fetched(self, offset: int = 0) -> list[Record]:
        """What a consumer reads from an offset on, fetch after fetch."""
        found: list[Record] = []
        while offset < self.log.end:
            data = self.run(self.log.read(offset, 1 << 20))
            assert data, f"a consumer at {offset} would read nothing for ever"
            new = [each for each in records(data) if each.offset >= offset]
            found += new
            offset = new[-1].offset + 1
        return found

    def roll(self) -> None:
        """Begin another segment, so that all before it can be compacted."""
        self.run(self.log.exclusively(self.log.roll))


def last_values(found: list[Record]) -> dict[bytes, bytes | None]:
    """Key -> what its last message says; a key that was removed has None, or is not there."""
    return {each.key: each.value for each in found if each.key is not None}


def living(found: list[Record]) -> dict[bytes, bytes | None]:
    """Key -> its value, without the keys that were removed."""
    return {key: value for key, value in last_values(found).items() if value is not None}


def check(home: Home) -> None:
    """The guarantees of a compacted log."""
    found = home.fetched()
    assert living(found) == living(home.appended)
    offsets = [each.offset for each in found]
    assert offsets == sorted(set(offsets))
    by_offset = {each.offset: each for each in home.appended}
    assert all(by_offset[each.offset] == each for each in found)
    assert home.log.end == len(home.appended)


def test_the_latest_message_of_each_key_stays_at_its_offset() -> None:
    home = Home()
    for number in range(30):
        home.append((b"k%d" % (number % 3), b"%d" % number), (None, b"keyless"))
    active = home.log.segments.last
    before = home.fetched(active.start)
    assert len(home.log.segments.view) > 3

    done = home.clean()

    assert done is not None
    assert done.removed_messages > 10
    assert done.first_dirty == active.start
    check(home)
    found = home.fetched()
    compacted = [each for each in found if each.offset < active.start]
    keys = [each.key for each in compacted if each.key is not None]
    assert sorted(keys) == [b"k0", b"k1", b"k2"]
    assert home.fetched(active.start) == before
    assert sum(each.key is None for each in found) == 30
    assert len(home.log.segments.view) < 20
    assert home.clean() is None, "nothing is dirty"
    for offset in range(len(home.appended)):
        assert home.fetched(offset) == [each for each in found if each.offset >= offset]


def test_a_consumer_passes_a_segment_of_which_nothing_is_left() -> None:
    home = Home()
    for number in range(60):
        home.append((b"k", b"%d" % number))

    home.clean()

    check(home)
    [*_, last] = home.fetched(0)
    assert last.offset == 59


def test_messages_of_a_wrapper_are_compressed_again() -> None:
    home = Home()
    home.append((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), codec=Codec.GZIP)
    home.append((b"c", b"4"), (b"d", b"5"), codec=Codec.SNAPPY)
    home.append((b"b", b"6"), codec=Codec.GZIP)
    home.roll()

    home.clean()

    check(home)
    found = [(each.offset, each.key) for each in home.fetched()]
    assert found == [(2, b"a"), (3, b"c"), (4, b"d"), (5, b"b")]


def test_tombstones_stay_for_their_time() -> None:
    home = Home()
    filler = b"x" * (SEGMENT_BYTES // 2)

    def cleaned(key: bytes, value: bytes | None, *, after_hours: int) -> list[int]:
        """The offsets of tombstones after another segment, which is not copied into another."""
        home.storage.now_ms += after_hours * HOUR_MS
        home.append((key, value), (b"of %d" % home.log.end, filler))
        home.roll()
        home.clean()
        check(home)
        return [each.offset for each in home.fetched() if each.value is None]

    assert cleaned(b"a", b"1", after_hours=0) == []
    assert cleaned(b"a", None, after_hours=0) == [2]
    # As in Kafka, ages are counted against the last segment that was clean before.
    assert cleaned(b"b", b"2", after_hours=2) == [2]
    assert cleaned(b"c", b"3", after_hours=0) == []


def test_only_compacted_logs_that_are_dirty_enough_are_compacted() -> None:
    half = replace(SETTINGS, min_dirty_ratio=0.5)
    for settings, is_compacted in ((SETTINGS, False), (half, True)):
        home = Home(settings, log_settings=replace(COMPACTED, is_compacted=is_compacted))
        for _ in range(3):
            home.append((b"a", b"1"))
            home.roll()
        if is_compacted:
            assert home.clean() is not None
            home.append((b"b", b"2"))
            home.roll()
        assert home.clean() is None


def test_a_compaction_that_is_given_up_changes_nothing() -> None:
    home = Home()
    for number in range(60):
        home.append((b"k", b"%d" % number))
    before = home.fetched()
    turns = iter([False, False, True])
    cleaner = Cleaner(home.logs, without_lock, SETTINGS, lambda: next(turns))

    with pytest.raises(Interrupted):
        home.run(cleaner.clean_dirtiest())
    home.start()

    assert home.fetched() == before
    assert not any("cleaned" in path for path in home.storage.files)


def test_the_checkpoint_is_kafkas_and_is_read_by_the_next_process() -> None:
    home = Home()
    home.append((b"a", b"1"), (b"a", b"2"))
    home.roll()
    home.clean()
    assert home.storage.files[CLEANER_CHECKPOINT].contents == b"0\n1\nt 0 2\n"

    home.start()
    assert home.clean() is None
    for contents in (b"", b"9\n1\nt 0 2\n", b"0\n1\nt 0 700\n", b"0\n1\nt x\n"):
        home.storage.put(CLEANER_CHECKPOINT, contents)
        home.start()
        done = home.clean()
        assert done is not None
        assert done.first_dirty == 2


# --- crashes ---------------------------------------------------------------------------


def drawn(chance: Random) -> Home:
    """A log with a history: appends, tombstones, wrappers, earlier compactions."""
    home = Home()
    for _ in range(chance.randrange(2, 5)):
        for _ in range(chance.randrange(4, 25)):
            key = b"k%d" % chance.randrange(8)
            value = None if chance.random() < 0.3 else b"%d" % chance.randrange(1000)
            pairs = [(key, value)] * chance.choice((1, 1, 1, 3))
            home.append(*pairs, codec=chance.choice((Codec.NONE, Codec.NONE, Codec.GZIP)))
        home.storage.now_ms += chance.randrange(2 * HOUR_MS)
        if chance.random() < 0.6:
            home.clean()
    if home.log.segments.last.size_bytes:
        home.roll()
    home.append((b"last", b"1"))
    return home


def crash_at(seed: int, point: int) -> bool:
    """Kill a compaction before its effect number `point`; False if it has fewer."""
    chance = Random(seed)
    home = drawn(chance)
    check(home)
    home.run(home.log.flush())
    try:
        home.clean(killed_after=point)
        is_over = True
    except Killed:
        is_over = False
    if chance.random() < 0.5:
        home.storage.end_host(lambda path, rest, at: rest[: chance.randrange(len(rest) + 1)])
    for _ in range(chance.randrange(3)):
        try:
            home.start(killed_after=chance.randrange(12))
        except Killed:
            continue
    home.start()
    check(home)
    left = [path for path in home.storage.files if path.endswith((".cleaned", ".swap"))]
    assert left == []
    home.clean()
    check(home)
    home.start()
    check(home)
    return not is_over


def test_a_compaction_can_be_killed_anywhere() -> None:
    """Every point of one history."""
    point = 0
    while crash_at(3, point):
        point += 1
    assert point > 30


@pytest.mark.slow
def test_compactions_can_be_killed_anywhere() -> None:
    killed = 0
    for seed in range(40):
        for point in range(0, 400, 1 + seed % 5):
            if not crash_at(seed, point):
                break
            killed += 1
    assert killed > 500


def test_an_interrupted_swap_leaves_no_index_of_the_old_file() -> None:
    """Its positions would lead readers into the middle of messages."""
    settings = replace(COMPACTED, segment_bytes=60_000)
    home = Home(log_settings=settings)
    for number in range(100):
        home.append((b"k%d" % (number % 40), b"x" * (100 * (1 + number % 7))))
    home.roll()
    home.append((b"last", b"1"))
    point = 0
    while True:
        again = home.copy()
        try:
            again.clean(killed_after=point)
        except Killed:
            again.start()
            check(again)
            found = again.fetched()
            for offset in range(0, again.log.end, 9):
                assert again.fetched(offset) == [each for each in found if each.offset >= offset]
            point += 1
            continue
        break
    assert point > 20


def test_a_tombstone_stays_until_all_older_messages_of_its_key_have_gone() -> None:
    """Not all keys fit into the map, and the clock was set back."""
    home = Home()
    filler = b"x" * (SEGMENT_BYTES // 2)
    home.append((b"a", b"1"), (b"b", filler))
    home.roll()
    home.clean()
    home.append((b"c", b"1"), (b"d", b"2"), (b"e", filler))
    home.append((b"a", None))
    home.storage.now_ms -= 3 * HOUR_MS
    home.storage.files[home.log.segments.last.path].modified_ms = home.storage.now_ms
    home.roll()
    home.append((b"last", b"1"))
    home.cleaner = Cleaner(home.logs, without_lock, SETTINGS, most_keys=2)

    for _ in range(4):
        home.clean()
        check(home)
