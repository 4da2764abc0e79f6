"""Results and positions are stored together: in SQLite, and in segments."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import HOME
from tests.support.live.broker_process import BrokerProcess, brokers
from tests.support.live_zookeeper import until
from tests.support.messages.result_children import (
    CLICKS,
    GROUP,
    Open,
    logs_of,
    result_of,
    results_in,
    segments,
    sqlite,
)
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.tasks import TaskFunction
from watchkeeper.model.clients.consumer.chunks import Chunk, Delivery
from watchkeeper.model.clients.consumer.result_store import (
    ReadPosition,
    ResultStore,
    ResultWriter,
    StoreResult,
)
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.errors import OffsetOutOfRange
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode, wrap
from watchkeeper.model.log.format.requests import ProduceRequest, encode_request
from watchkeeper.real.embed.result_reader import keep_results
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.results.segment_file import TORN, UNFINISHED, encoded, segment
from watchkeeper.real.results.segments import BrokenResults, SegmentResults
from watchkeeper.real.results.sqlite import SqliteResults, add_rows

ONE = CLICKS[0]
MESSAGES, SETS = 3_000, 200
LONGEST_S = 900
MEMBERS = 4
STORES = {"sqlite": sqlite, "segments": segments}
both = pytest.mark.parametrize("open_", STORES.values(), ids=STORES)


def step(
    expected: int | None, place: int, *results: bytes, partition: Partition = ONE
) -> StoreResult:
    return StoreResult(GROUP, partition, expected, place, (), results)


def place_in(store: ResultStore, partition: Partition = ONE) -> int | None:
    return store.position_of(ReadPosition(GROUP, partition))


# --- any store -------------------------------------------------------------------------


@both
def test_a_place_is_where_the_last_result_ends(tmp_path: Path, open_: Open) -> None:
    store = open_(tmp_path)
    assert place_in(store) is None
    assert store.store(step(None, 10, b"a", b"b"))
    assert store.store(step(10, 20, b"c"))
    assert place_in(store) == 20
    assert results_in(store, ONE) == [b"a", b"b", b"c"]
    assert store.position_of(ReadPosition("search", ONE)) is None


@both
def test_who_is_out_of_date_stores_nothing(tmp_path: Path, open_: Open) -> None:
    store = open_(tmp_path)
    assert store.store(step(None, 10, b"a"))
    assert not store.store(step(None, 10, b"a"))
    assert not store.store(step(5, 20, b"x"))
    assert (place_in(store), results_in(store, ONE)) == (10, [b"a"])


@both
def test_what_was_closed_is_there_when_it_is_opened(tmp_path: Path, open_: Open) -> None:
    for number in range(5):
        store = open_(tmp_path)
        assert store.store(step(number or None, number + 1, b"%d" % number))
        store.close()
    store = open_(tmp_path)
    assert (place_in(store), results_in(store, ONE)) == (5, [b"0", b"1", b"2", b"3", b"4"])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(CLICKS), st.booleans(), st.lists(st.binary(max_size=4), max_size=3)
    ),
    max_size=12,
)


@both
@settings(max_examples=12, deadline=None)
@given(steps=STEPS)
def test_a_store_says_what_a_dictionary_would(
    open_: Open,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[Partition, bool, list]],
) -> None:
    store = open_(tmp_path_factory.mktemp("store"))
    partitions_of: dict[Partition, int] = {}
    made: dict[Partition, list[bytes]] = {partition: [] for partition in CLICKS}
    for partition, is_true, results in steps:
        at = partitions_of.get(partition)
        expected = at if is_true else (at or 0) + 7
        done = store.store(step(expected, (at or 0) + 1, *results, partition=partition))
        assert done == is_true
        if done:
            partitions_of[partition] = (at or 0) + 1
            made[partition] += results
    for claim in CLICKS:
        assert (place_in(store, claim), results_in(store, claim)) == (
            partitions_of.get(claim),
            made[claim],
        )
    store.close()


# --- in SQLite -------------------------------------------------------------------------


def count_words(connection: sqlite3.Connection, effect: StoreResult) -> None:
    """A table of a user's own: how often each result has come."""
    connection.execute("CREATE TABLE IF NOT EXISTS words (word PRIMARY KEY, times)")
    for word in effect.results:
        added = "INSERT INTO words VALUES (?, 1) ON CONFLICT DO UPDATE SET times = times + 1"
        connection.execute(added, (word,))
        if word == b"fails":
            raise ValueError(word)


def words_in(store: SqliteResults) -> dict[bytes, int]:
    return dict(store.connection.execute("SELECT word, times FROM words"))


def test_tables_of_ones_own_are_written_in_the_same_transaction(tmp_path: Path) -> None:
    store = SqliteResults(tmp_path / "words.db", write=count_words)
    assert store.store(step(None, 1, b"a", b"b"))
    assert not store.store(step(None, 2, b"a"))
    assert store.store(step(1, 2, b"a"))
    assert words_in(store) == {b"a": 2, b"b": 1}


def test_what_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    store = SqliteResults(tmp_path / "words.db", write=count_words)
    assert store.store(step(None, 1, b"a"))
    with pytest.raises(ValueError, match="fails"):
        store.store(step(1, 2, b"a", b"fails"))
    assert (place_in(store), words_in(store)) == (1, {b"a": 1})
    assert store.store(step(1, 2, b"a"))


def test_two_connections_do_not_both_store(tmp_path: Path) -> None:
    first, second = sqlite(tmp_path), sqlite(tmp_path)
    assert first.store(step(None, 1, b"a"))
    assert not second.store(step(None, 1, b"a"))
    assert second.store(step(1, 2, b"b"))
    assert results_in(first, ONE) == [b"a", b"b"]


def test_a_store_waits_for_a_transaction_of_another_process(tmp_path: Path) -> None:
    """Whichever comes second is out of date, and no error of the database."""
    second = SqliteResults(tmp_path / "results")
    has_begun, has_looked = Event(), Event()

    def hear(statement: str) -> None:
        (has_looked if statement.startswith("SELECT") else has_begun).set()

    def write(connection: sqlite3.Connection, effect: StoreResult) -> None:
        answers.append(pool.submit(second.store, step(None, 20, b"late")))
        assert has_begun.wait(LONGEST_S)
        has_looked.wait(0.2)  # a store that waits for the transaction does not look yet
        add_rows(connection, effect)

    second.connection.set_trace_callback(hear)
    first = SqliteResults(tmp_path / "results", write)
    answers: list[Future[bool]] = []
    with ThreadPoolExecutor(1) as pool:
        assert first.store(step(None, 10, b"early"))
        assert not answers[0].result(LONGEST_S)

    assert results_in(second, ONE) == [b"early"]


# --- in segments -----------------------------------------------------------------------


def filled(home: Path, *, together: int = 1, steps: int = 4) -> list[Path]:
    """Segments with steps from 0 to 1, 1 to 2 and so on; their files."""
    store = SegmentResults(home, together=together)
    for number in range(steps):
        assert store.store(step(number or None, number + 1, b"%d" % number))
    store.close()
    return sorted(home.iterdir())


def seen_in(home: Path, **settings: int) -> tuple[int | None, bytes]:
    store = SegmentResults(home, **settings)
    found = place_in(store), b"".join(results_in(store, ONE))
    store.close()
    return found


def test_steps_are_gathered_and_written_together(tmp_path: Path) -> None:
    store = SegmentResults(tmp_path, together=3)
    for number in range(7):
        assert store.store(step(number or None, number + 1, b"%d" % number))
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "0000000001-0000000001.segment",
        "0000000002-0000000002.segment",
    ]
    assert b"".join(results_in(store, ONE)) == b"0123456"
    store.flush()
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("left", range(0, 35, 5))
def test_a_torn_last_segment_takes_its_place_along(tmp_path: Path, left: int) -> None:
    last = filled(tmp_path)[-1]
    assert left < last.stat().st_size
    last.write_bytes(last.read_bytes()[:left])
    store = SegmentResults(tmp_path)
    assert (place_in(store), results_in(store, ONE)) == (3, [b"0", b"1", b"2"])
    assert store.torn == (last.name + TORN,)
    assert store.store(step(3, 4, b"again"))
    store.close()
    assert seen_in(tmp_path) == (4, b"012again")


@pytest.mark.parametrize("at", [0, 9, 13, -1])
def test_a_changed_byte_is_as_good_as_torn(tmp_path: Path, at: int) -> None:
    last = filled(tmp_path)[-1]
    data = bytearray(last.read_bytes())
    data[at] ^= 1
    last.write_bytes(data)
    assert seen_in(tmp_path) == (3, b"012")


@pytest.mark.parametrize("how", [Path.unlink, lambda path: path.write_bytes(b"torn")])
def test_a_segment_that_is_missing_in_the_middle_is_refused(tmp_path: Path, how: Any) -> None:
    how(filled(tmp_path)[1])
    with pytest.raises(
        BrokenResults, match=r"goes on at 2 of clicks/0-0 for billing, and.* at 1;"
    ):
        SegmentResults(tmp_path)


def test_what_was_not_finished_is_deleted(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / f"0000000005-0000000005.segment{UNFINISHED}").write_bytes(b"half")
    assert seen_in(tmp_path) == (4, b"0123")
    assert not list(tmp_path.glob(f"*{UNFINISHED}"))


def test_many_segments_are_merged_into_one(tmp_path: Path) -> None:
    filled(tmp_path)
    assert seen_in(tmp_path, most_segments=3) == (4, b"0123")
    assert [path.name for path in tmp_path.iterdir()] == ["0000000001-0000000004.segment"]
    assert seen_in(tmp_path) == (4, b"0123")


def test_a_store_goes_on_after_its_segments_were_merged(tmp_path: Path) -> None:
    """The next segment comes after all that the merged one is made from."""
    filled(tmp_path)
    store = SegmentResults(tmp_path, together=1, most_segments=3)
    assert store.store(step(4, 5, b"4"))
    store.close()

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        segment(1, 4).name,
        segment(5, 5).name,
    ]
    assert seen_in(tmp_path) == (5, b"01234")


@pytest.mark.parametrize("kept", range(5))
def test_a_client_that_was_killed_while_it_merged_has_doubled_nothing(
    tmp_path: Path, kept: int
) -> None:
    """The merged one is there, and so are some of those that it was made from."""
    parts = filled(tmp_path)
    data = [path.read_bytes() for path in parts]
    seen_in(tmp_path, most_segments=0)
    for path, old in list(zip(parts, data, strict=True))[kept:]:
        path.write_bytes(old)
    assert seen_in(tmp_path) == (4, b"0123")
    assert [path.name for path in tmp_path.iterdir()] == [segment(1, 4).name]


def test_if_the_merged_one_is_torn_its_parts_are_taken(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / segment(1, 4).name).write_bytes(encoded([])[:-1] + b"x")
    assert seen_in(tmp_path) == (4, b"0123")


def test_a_folder_is_for_one_process(tmp_path: Path) -> None:
    store = SegmentResults(tmp_path)
    with pytest.raises(EnvironmentProblem, match="another process keeps its results"):
        SegmentResults(tmp_path)
    store.close()
    SegmentResults(tmp_path).close()


# --- what is compressed together -------------------------------------------------------


def handed_of(data: bytes) -> list[Delivery]:
    chunk, found = Chunk(ONE, data, 0), []
    while (handed := chunk.next(1)) is not None:
        found.append(handed)
    return found


def taken(store: ResultStore, handed: list[Delivery]) -> None:
    """Let an application take messages one by one."""
    keeping = ResultWriter(GROUP, result_of)

    async def take() -> None:
        for delivery in handed:
            await keeping.take(delivery)

    drive(store, take)


def drive(store: ResultStore, thread: TaskFunction) -> None:
    """Run a task whose only effects are those of a store."""
    coroutine: Any = thread()
    answer: Any = None
    while True:
        try:
            effect = coroutine.send(answer)
        except StopIteration:
            return
        answer = (
            store.position_of(effect) if isinstance(effect, ReadPosition) else store.store(effect)
        )


@both
@given(left=st.integers(0, 8), sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4))
@settings(max_examples=12, deadline=None)
def test_a_rebalance_within_an_entry_doubles_nothing(
    open_: Open, tmp_path_factory: pytest.TempPathFactory, left: int, sizes: list[int]
) -> None:
    """What is read stops anywhere, and begins again where the results say."""
    made = [
        [Message.of(b"%d.%d" % (at, number)) for number in range(size)]
        for at, size in enumerate(sizes)
    ]
    data = b"".join(wrap(each, Codec.SNAPPY) for each in made)
    all_of_it = handed_of(data)
    store = open_(tmp_path_factory.mktemp("store"))
    taken(store, all_of_it[:left])
    place = place_in(store) or 0
    assert results_in(store, ONE) == [
        result for message in all_of_it if message.offset < place for result in result_of(message)
    ]
    taken(store, [message for message in all_of_it if message.offset >= place])
    assert results_in(store, ONE) == [
        result for delivery in all_of_it for result in result_of(delivery)
    ]
    store.close()


@both
def test_an_entry_that_is_read_anew_in_one_life_doubles_nothing(
    tmp_path: Path, open_: Open
) -> None:
    """A member may lose a partition within an entry, and get it back."""
    handed = handed_of(wrap([Message.of(b"%d" % at) for at in range(3)], Codec.SNAPPY))
    store = open_(tmp_path)
    taken(store, [*handed[:2], *handed])
    assert len(results_in(store, ONE)) == 3


# --- killed ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A broker with messages in two partitions, every third set of them compressed."""
    with brokers(tmp_path_factory.mktemp("broker") / "logs") as start:
        broker = start("log.flush.interval=3000", "topic.partition.count.map=clicks:2")
        fill(broker)
        yield broker.port


def fill(broker: BrokerProcess) -> None:
    """Let it have all messages, and wait until they can be read."""
    each = MESSAGES // SETS
    for partition in CLICKS:
        with broker.connect() as connection:
            for number in range(SETS):
                texts = [b"click %d" % (number * each + at) for at in range(each)]
                made = list(map(Message.of, texts))
                data = encode(made) if number % 3 else wrap(made, Codec.SNAPPY)
                request = ProduceRequest("clicks", int(partition.name[-1]), data)
                connection.sendall(encode_request(request))
    until(lambda: {len(log) for log in logs_of(broker.port).values()} == {MESSAGES})


def killed(port: int, home: Path, store: str) -> dict[str, Any]:
    """Keep results in children that are killed; what is found afterwards."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.support.messages.result_children",
            str(port),
            str(home),
            store,
        ],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("store", ["sqlite", "segments"])
def test_kills_lose_nothing_and_double_nothing(port: int, tmp_path: Path, store: str) -> None:
    found = killed(port, tmp_path, store)
    assert (found["wrong"], found["went back"]) == (0, 0)
    assert found["is whole"]
    steps = {tuple(partitions_of) for partitions_of in found["places"]}
    assert len(steps) > 10, "the kills came at different places"
    assert any(first != second for first, second in steps)


def test_a_place_that_is_committed_beside_its_results_is_caught(
    port: int, tmp_path: Path
) -> None:
    found = killed(port, tmp_path, "beside")
    assert found["wrong"] > 0
    assert not found["is whole"]


# --- reading ---------------------------------------------------------------------------


@both
def test_all_is_kept_once_however_often_one_reads(port: int, tmp_path: Path, open_: Open) -> None:
    store = open_(tmp_path)
    numbers = [
        keep_results(f"127.0.0.1:{port}", CLICKS, group=GROUP, store=store, make=result_of)
        for _ in range(2)
    ]
    assert numbers == [2 * MESSAGES, 0]
    for partition, log in logs_of(port).items():
        assert results_in(store, partition) == [result for _, result in log]
    store.close()


def test_a_place_that_the_log_does_not_have_is_said(port: int, tmp_path: Path) -> None:
    store = sqlite(tmp_path)
    assert store.store(step(None, 1 << 40))
    with pytest.raises(OffsetOutOfRange, match="clicks/0-0 at 1099511627776"):
        keep_results(f"127.0.0.1:{port}", CLICKS, group=GROUP, store=store, make=result_of)


def test_a_database_can_be_opened_by_many_at_once(tmp_path: Path) -> None:
    """SQLite refuses at once where several connections switch a new file to its log."""

    def opened(path: Path) -> str:
        together.wait(LONGEST_S)
        store = SqliteResults(path)
        [mode] = store.connection.execute("PRAGMA journal_mode").fetchone()
        store.close()
        return str(mode)

    for attempt in range(30):
        together, path = Barrier(MEMBERS), tmp_path / f"{attempt}.db"
        with ThreadPoolExecutor(MEMBERS) as pool:
            assert list(pool.map(opened, [path] * MEMBERS)) == ["wal"] * MEMBERS
