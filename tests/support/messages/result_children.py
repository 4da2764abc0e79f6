"""Children that keep results of a live broker's messages, and are killed while they do.

    python -m tests.keeping PORT HOME STORE

A child counts what it does: each statement of SQLite, each thing that is done with a file.
At the n-th it kills itself, as `kill -9` does, and the next child goes on in the same place;
every third is killed from outside, after a while. After each of them the results have to be
a function of the messages up to the places. What is found is printed as JSON.

The children are forked from one process without threads, so that thirty take seconds.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from model.asks import Partition
from model.clients.chunks import Chunk, Handed
from model.clients.results import PlaceOf, ResultStore, StoreResult
from model.log.requests import FetchRequest
from real.keeping import keep_results
from real.segment_results import SegmentResults
from real.sqlite_results import PLACE, SqliteResults
from tests.brokers import ask

GROUP = "billing"
CLICKS = (Partition("clicks", "0-0"), Partition("clicks", "0-1"))
FETCH_BYTES = 600
KILLS = 30
LONGEST_MS = 40
Count = Callable[[], None]
Open = Callable[..., ResultStore]


def nobody_counts() -> None:
    """For a store that is only looked into."""


def sqlite(home: Path, count: Count = nobody_counts) -> SqliteResults:
    """A store in one database."""
    return counted(SqliteResults(home / "results.db"), count)


def counted(store: SqliteResults, count: Count) -> SqliteResults:
    """Count every statement, before it is run."""
    store.connection.set_trace_callback(lambda statement: count())
    return store


class Beside(SqliteResults):
    """Planted: the results are in one transaction, and the place in the next."""

    def store(self, ask: StoreResult) -> bool:
        (row,) = self.connection.execute(PLACE, (ask.group, *ask.partition)).fetchall() or [None]
        if (None if row is None else row[0]) != ask.expected:
            return False
        with self._lock, self._transaction():
            self.write(self.connection, ask)
        move = "INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?)"
        with self._lock, self._transaction():
            self.connection.execute(move, (ask.group, *ask.partition, ask.place))
        return True


def beside(home: Path, count: Count = nobody_counts) -> Beside:
    """A store that commits the place separately."""
    store = Beside(home / "results.db")
    counted(store, count)
    return store


def segments(home: Path, count: Count = nobody_counts) -> SegmentResults:
    """A store in segments; a child merges them when there are three."""
    seen = {"open", "os.rename", "os.remove"}

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event in seen and str(home) in str(arguments):
            count()

    def fsync(descriptor: int, to_disk: Callable[[int], None] = os.fsync) -> None:
        count()
        to_disk(descriptor)

    is_child = count is not nobody_counts
    if is_child:
        sys.addaudithook(hear)
        os.fsync = fsync  # type: ignore[assignment]
    return SegmentResults(home / "segments", together=30, most_segments=2 if is_child else 1_000)


def result_of(handed: Handed) -> tuple[bytes, ...]:
    """What is made of a message: a function of it and its place in the log."""
    assert isinstance(handed.payload, bytes)
    return (b"%d:%s" % (handed.next_offset, handed.payload.upper()),)


def forked(work: Callable[[], None]) -> int:
    """Do something in a child; its process."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def keep(port: int, home: Path, open_: Open, kill_at: int = 0) -> None:
    """Keep results, and be killed at the n-th thing that is done; 0: never."""
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if done == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    store = open_(home, count)
    keep_results(
        f"127.0.0.1:{port}",
        CLICKS,
        group=GROUP,
        store=store,
        make=result_of,
        fetch_bytes=FETCH_BYTES,
    )
    store.close()


def results_in(store: ResultStore, partition: Partition) -> list[bytes]:
    """The results of one partition."""
    return [kept.body for kept in store.results_of(GROUP) if kept.partition == partition]


# --- what ought to be there ------------------------------------------------------------

Log = list[tuple[int, bytes]]
"""For each message where it lies, and its result."""


def logs_of(port: int) -> dict[Partition, Log]:
    """What the broker has."""
    found: dict[Partition, Log] = {}
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for partition in CLICKS:
            number = int(partition.name[-1])
            response: Any = ask(FetchRequest("clicks", number, 0, 1 << 20), connection)
            chunk = Chunk(partition, response.messages, 0)
            found[partition] = []
            while (handed := chunk.next(1)) is not None:
                found[partition].append((handed.offset, *result_of(handed)))
    return found


def is_consistent(store: ResultStore, logs: dict[Partition, Log]) -> bool:
    """Whether the results are those of the messages before the places, once each."""
    for partition, log in logs.items():
        place = store.place_of(PlaceOf(GROUP, partition)) or 0
        if results_in(store, partition) != [result for at, result in log if at < place]:
            return False
    return True


def main(port: int, home: Path, open_: Open, most_steps: int) -> dict[str, Any]:
    """Kill thirty children one after the other; what came of it."""
    chance, logs = Random(7), logs_of(port)
    wrong, places = 0, [[0] * len(CLICKS)]
    for number in range(KILLS):
        from_outside = number % 3 == 2
        kill_at = 0 if from_outside else chance.randrange(1, most_steps)
        child = forked(lambda kill_at=kill_at: keep(port, home, open_, kill_at))  # type: ignore[misc]
        if from_outside:
            time.sleep(chance.randrange(LONGEST_MS) / 1000)
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code == -signal.SIGKILL, f"child {number} has ended with {code}"
        store = open_(home)
        wrong += not is_consistent(store, logs)
        places.append([store.place_of(PlaceOf(GROUP, one)) or 0 for one in CLICKS])
        store.close()
    last = forked(lambda: keep(port, home, open_))
    assert os.waitstatus_to_exitcode(os.waitpid(last, 0)[1]) == 0
    store = open_(home)
    is_whole = all(
        results_in(store, one) == [result for _, result in log] for one, log in logs.items()
    )
    store.close()
    went_back = sum(
        now < before for pair in pairwise(places) for before, now in zip(*pair, strict=True)
    )
    return {"wrong": wrong, "places": places, "went back": went_back, "is whole": is_whole}


STORES: dict[str, tuple[Open, int]] = {
    "sqlite": (sqlite, 300),
    "segments": (segments, 130),
    "beside": (beside, 300),
}
"""By name, with how many things a child does at most before it is killed."""


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), Path(sys.argv[2]), *STORES[sys.argv[3]])))
