"""The process of a live broker that stores messages: its files, its requests, its registration.

A loop in a thread of its own serves requests; the program that registers the broker runs
beside it, and begins when the logs are open.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

from model.answers import Note, Ordered
from model.asks import Partition
from model.clients.identities import lots_in
from model.log.contents import Contents
from model.log.errors import LogError
from model.log.folders import partition_of
from model.log.log import Appended
from model.log.logs import Logs, Started
from model.log.segments import Segment
from model.log.storage import StorageError
from model.program import Ended
from model.registry import partition_07
from real.broker import Broker, Journal
from real.broker_settings import BrokerSettings
from real.driver import Driver
from real.gauges import Gauges
from real.job import Stores
from real.loops import Loop
from real.untold import diaries_of, told_in, untold
from real.workplace import Workplace, say


def run(place: Workplace) -> Ended:
    """Open the logs, serve, register, and close the logs when the program is over."""
    job = place.job
    driver = Driver(
        job.program, place.diary, place.connect, None, place.channel, skew_ms=job.skew_ms
    )
    place.listen(driver)
    host = _Host(place, driver)
    loop = Loop(f"{job.node} requests")
    loop.begin(host.open()).result()
    say(serves=True)
    loop.begin(host.watch())
    loop.begin(host.tell())
    ended = driver.run()
    loop.begin(host.close()).result()
    return ended


class _Host:
    """The broker in its loop."""

    def __init__(self, place: Workplace, driver: Driver) -> None:
        part = place.job.part
        assert isinstance(part, Stores), "it is told where to store"
        self.place = place
        self.driver = driver
        self.part = part
        self.storage = part.storage(Path(part.root), Path(part.diary))
        self.gauges = Gauges(self.storage, place.diary)
        self.broker: Broker | None = None

    async def open(self) -> None:
        part, root = self.part, Path(self.part.root)
        settings = BrokerSettings(
            root, broker_id=part.broker_id, port=self.place.job.port, logs=part.settings
        )
        self.broker = Broker(
            settings,
            self._remind,
            journal=_Diary(self.place, part),
            storage=self.storage,
            logs=part.logs,
            skew_ms=lambda: self.driver.skew_ms,
        )
        try:
            await self.broker.open()
        except (LogError, StorageError) as error:
            self._fail(str(error))

    async def watch(self) -> None:
        """End the process when the broker cannot go on."""
        assert self.broker is not None, "it is watched when it is open"
        self._fail(await self.broker.over())

    async def tell(self) -> None:
        """Tell from time to time how its files stand."""
        try:
            await self.gauges.tell_from_time_to_time()
        except OSError as error:
            self._fail(f"its files could not be looked at: {error}")

    async def close(self) -> None:
        assert self.broker is not None, "what is closed was open"
        try:
            await self.broker.close()
        except (LogError, StorageError) as error:
            self._fail(str(error))
        self.gauges.tell()

    def _remind(self, note: Note) -> None:
        """A topic has come into being: the program registers it, and the world hears of it."""
        self.driver.queue.put(note)
        if isinstance(note, Ordered):
            say(topic=note.topic, partitions=note.number)

    def _fail(self, why: str) -> NoReturn:
        """What a disk has done wrong is not survived: nobody knows what it holds."""
        self.place.diary.write("broker fails", {"why": why})
        say(fails=why)
        os._exit(1)


class _Diary(Journal):
    """Writes into the trace what the broker does."""

    def __init__(self, place: Workplace, part: Stores) -> None:
        self.diary = place.diary
        self.broker_id = part.broker_id
        self.root = Path(part.root)
        self.told = told_in(diaries_of(Path(place.job.diary)))

    def opened(self, logs: Logs, started: Started) -> None:
        """Say of each log where it ends: the end of the host may have cut it."""
        for log in logs.all():
            key = partition_of(log.folder)
            assert key is not None, "a log has the folder of its partition"
            partition = partition_07(key[0], self.broker_id, key[1])
            told = self.told.get((partition.topic, partition.name), 0)
            if lots := [list(lot) for lot in untold(log, self.root, told)]:
                self._write("stored", {"lots": lots}, partition)
            detail = {"start": log.start, "end": log.end, "clean": started.was_clean}
            self._write("opened", detail, partition)

    def stored(self, topic: str, index: int, contents: Contents, appended: Appended) -> None:
        """Say which messages were appended, and where."""
        lots = [list(lot) for lot in lots_in(contents, appended.offset)]
        self._write("stored", {"lots": lots}, partition_07(topic, self.broker_id, index))

    def refused(self, name: str, error: LogError) -> None:
        """Say which connection is closed, and why."""
        self.diary.write("request refused", {"of": name, "why": str(error)})

    def deleted(self, segment: Segment) -> None:
        """Say which segment was deleted."""
        detail = {"path": segment.path, "size": segment.size_bytes}
        self.diary.write("segment deleted", detail)

    def _write(self, kind: str, detail: dict[str, Any], partition: Partition) -> None:
        self.diary.write(kind, detail, topic=partition.topic, partition=partition.name)
