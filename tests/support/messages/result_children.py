"""Children that keep results of a live broker's messages, and are killed while they do.

    python -m tests.support.messages.result_children PORT HOME STORE

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

from tests.support.live.broker_process import send_request
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.chunks import Chunk, Delivery
from watchkeeper.model.clients.consumer.result_store import ReadPosition, ResultStore, StoreResult
from watchkeeper.model.log.format.requests import FetchRequest
from watchkeeper.real.embed.result_reader import keep_results
from watchkeeper.real.results.segments import SegmentResults
from watchkeeper.real.results.sqlite import PLACE, SqliteResults

GROUP = "billing"
CLICKS = (Partition("clicks", "0-0"), Partition("clicks", "0-1"))
FETCH_BYTES = 600
KILLS = 30
LONGEST_MS = 40
Count = Callable[[], None]
Open = Callable[..., ResultStore]


def count_nothing() -> None:
    """Do nothing: for a store that is only read."""


def sqlite(home: Path, count: Count = count_nothing) -> SqliteResults:
    """A store in one database."""
    return counted(SqliteResults(home / "results.db"), count)


def counted(store: SqliteResults, count: Count) -> SqliteResults:
    """Count every statement before it runs."""
    store.connection.set_trace_callback(lambda statement: count())
    return store


class Beside(SqliteResults):
    """Mutant: the results are stored in one transaction, the position in the next one."""

    def store(self, effect: StoreResult) -> bool:
        (row,) = self.connection.execute(PLACE, (effect.group, *effect.partition)).fetchall() or [
            None
        ]
        if (None if row is None else row[0]) != effect.expected:
            return False
        with self._lock, self._transaction():
            self.write(self.connection, effect)
        move = "INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?)"
        with self._lock, self._transaction():
            self.connection.execute(move, (effect.group, *effect.partition, effect.position))
        return True


def beside(home: Path, count: Count = count_nothing) -> Beside:
    """A store that commits the position separately."""
    store = Beside(home / "results.db")
    counted(store, count)
    return store


def segments(home: Path, count: Count = count_nothing) -> SegmentResults:
    """A store in segments; a child merges them when there are three."""
    seen = {"open", "os.rename", "os.remove"}

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event in seen and str(home) in str(arguments):
            count()

    def fsync(descriptor: int, to_disk: Callable[[int], None] = os.fsync) -> None:
        count()
        to_disk(descriptor)

    is_child = count is not count_nothing
    if is_child:
        sys.addaudithook(hear)
        os.fsync = fsync  # type: ignore[assignment]
    return SegmentResults(home / "segments", together=30, most_segments=2 if is_child else 1_000)


def result_of(handed: Delivery) -> tuple[bytes, ...]:
    """Return the result of a message: a function of it and its offset."""
    assert isinstance(handed.payload, bytes)
    return (b"%d:%s" % (handed.next_offset, handed.payload.upper()),)


def forked(work: Callable[[], None]) -> int:
    """Run work in a child; return its process."""
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
    """Store results, and die at the n-th statement or file operation; 0: never."""
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
"""The offset and the result of each message."""


def logs_of(port: int) -> dict[Partition, Log]:
    """Return the messages of the broker."""
    found: dict[Partition, Log] = {}
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for partition in CLICKS:
            number = int(partition.name[-1])
            response: Any = send_request(FetchRequest("clicks", number, 0, 1 << 20), connection)
            chunk = Chunk(partition, response.messages, 0)
            found[partition] = []
            while (handed := chunk.next(1)) is not None:
                found[partition].append((handed.offset, *result_of(handed)))
    return found


def is_consistent(store: ResultStore, logs: dict[Partition, Log]) -> bool:
    """Whether the results are those of the messages before the positions, once each."""
    for partition, log in logs.items():
        place = store.position_of(ReadPosition(GROUP, partition)) or 0
        if results_in(store, partition) != [result for at, result in log if at < place]:
            return False
    return True


def main(port: int, home: Path, open_: Open, most_steps: int) -> dict[str, Any]:
    """Kill up to thirty children one after the other; return the outcome.

    A child that has read everything before its kill comes is the last one.
    """
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
        if code == 0:
            break
        assert code == -signal.SIGKILL, f"child {number} has ended with {code}"
        store = open_(home)
        wrong += not is_consistent(store, logs)
        places.append(
            [store.position_of(ReadPosition(GROUP, partition)) or 0 for partition in CLICKS]
        )
        store.close()
    last = forked(lambda: keep(port, home, open_))
    assert os.waitstatus_to_exitcode(os.waitpid(last, 0)[1]) == 0
    store = open_(home)
    is_whole = all(
        results_in(store, claim) == [result for _, result in log] for claim, log in logs.items()
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
