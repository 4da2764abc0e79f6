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
from model.clients.mirror import Mirror
from model.clients.results import PlaceOf, StoreResult
from model.clients.streams import Stream
from model.clients.versions import clients_of
from model.program import Ended
from real.job import Consumes
from real.joint import JointDriver
from real.results import Results
from real.workplace import Workplace


def run(place: Workplace) -> Ended:
    """Consume until it is over; a mirror sends what waits in its producer then."""
    job, part = place.job, place.job.part
    assert isinstance(part, Consumes), "it is told what to consume"
    journal = TraceJournal(partial(_write, place))
    connector = clients_of(part.variant).connector(part.me, journal)
    application, streams = _application(job.node, part, connector)
    program = job.program if part.has_own_program else connector.program
    driver = place.joint_driver(program, part.balancer, part.target)
    results = Results(Path(part.results))
    driver.threads.answer_too(PlaceOf, results.place_of)
    driver.threads.answer_too(StoreResult, results.store)
    has_places = part.handling.commits == "with the result"
    driver.fetching = StreamFetcher(
        connector,
        driver,
        results if has_places else None,
        ends_threads=not isinstance(application, Mirror),
    )
    for stream in streams:
        driver.start_thread(f"handle {stream.queue}", application.handle_all(stream))
    place.listen(driver)
    ended = driver.run()
    if isinstance(application, Mirror):
        driver.run_thread(application.producer.close())
        driver.end_threads()
    return ended


def _application(
    node: str, part: Consumes, connector: Connector
) -> tuple[Application | Mirror, list[Stream]]:
    """What is done with the messages, and the streams that they come by."""
    if part.forwards is None:
        application = Application(connector, part.me.group, part.handling)
        return application, streams_of(connector, part.me.subscription)
    mirror = Mirror(connector, part.forwards, node)
    return mirror, mirror.streams(part.forwards.expression)


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
        self,
        connector: Connector,
        driver: JointDriver,
        results: Results | None,
        *,
        ends_threads: bool = True,
    ) -> None:
        """`ends_threads` says that they end with the program; a mirror's have more to send."""
        self.connector = connector
        self.driver = driver
        self.results = results
        self.ends_threads = ends_threads

    def fetch_exactly(self, fetches: Iterable[Fetch], quiet: Callable[[], None]) -> bool:
        """Fetch these and no others; `quiet` is called when nothing else is handed on."""

        async def work() -> None:
            await self.connector.fetching.fetch_exactly([self._begun(one) for one in fetches])
            quiet()

        self.driver.start_thread("fetch exactly", work())
        return False

    def _begun(self, fetch: Fetch) -> Fetch:
        """Where a fetch begins: where the results end, if places are stored with them."""
        if self.results is None:
            return fetch
        place = self.results.place_of(PlaceOf(self.connector.me.group, fetch.partition))
        return fetch if place is None else fetch._replace(start=place)

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
        if self.ends_threads:
            self.driver.end_threads()
