"""The process of a live consumer of messages: its fetching side, its streams, its application."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from model.asks import Fetch, Partition, Positions
from model.clients.connector import Connector
from model.clients.handling import Application, streams_of
from model.clients.journals import TraceJournal
from model.clients.results import PlaceOf, StoreResult
from model.clients.taking import MemberResults, fetch_with_results
from model.clients.versions import clients_of
from model.program import Ended
from real.job import Consumes
from real.joint import JointDriver
from real.member_results import identity
from real.workplace import Workplace


def run(place: Workplace) -> Ended:
    """Consume until it is over."""
    job, part = place.job, place.job.part
    assert isinstance(part, Consumes), "it is told what to consume"
    journal = TraceJournal(partial(_write, place))
    connector = clients_of(part.variant).connector(part.me, journal)
    streams = streams_of(connector, part.me.subscription)
    program = job.program if part.has_own_program else connector.program
    driver = place.joint_driver(program, part.balancer)
    results: MemberResults | None = None
    if part.handling.commits == "with the result":
        results = part.store(Path(part.results), part.me.group)
        driver.threads.answer_too(PlaceOf, results.place_of)
        driver.threads.answer_too(StoreResult, results.store)
    driver.fetching = StreamFetcher(connector, driver, results)
    application = Application(connector, part.me.group, part.handling, identity)
    for stream in streams:
        driver.start_thread(f"handle {stream.queue}", application.handle_all(stream))
    place.listen(driver)
    return driver.run()


def _write(
    place: Workplace, kind: str, detail: dict[str, Any], partition: Partition | None
) -> None:
    place.diary.write(
        kind,
        detail,
        session=place.session,
        topic=partition.topic if partition is not None else "",
        partition=partition.name if partition is not None else "",
    )


class StreamFetcher:
    """The fetching side of a member that is handed messages; it answers what a program asks.

    It shares memory with the threads of the process, so whatever the program's own thread does
    here it does with the baton.
    """

    def __init__(
        self, connector: Connector, driver: JointDriver, results: MemberResults | None
    ) -> None:
        self.connector = connector
        self.driver = driver
        self.results = results

    def fetch_exactly(self, fetches: Iterable[Fetch], quiet: Callable[[], None]) -> bool:
        """Fetch these and no others; `quiet` is called when nothing else is handed on."""

        async def work() -> None:
            fetching, group = self.connector.fetching, self.connector.me.group
            if self.results is None:
                await fetching.fetch_exactly(fetches)
            else:
                await fetch_with_results(fetching, self.results, group, fetches)
            quiet()

        self.driver.start_thread("fetch exactly", work())
        return False

    def known_positions(self) -> Positions:
        """Where the member stands, as far as is known."""
        with self.driver.threads.baton:
            return self.connector.fetching.known_positions()

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget where it stood."""
        with self.driver.threads.baton:
            self.connector.fetching.forget(partitions)

    def stop(self) -> None:
        """The program is over: nothing is handed on any more."""
        with self.driver.threads.baton:
            self.connector.fetching.end()
        self.driver.end_threads()
