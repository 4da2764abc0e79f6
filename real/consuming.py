"""The process of a live consumer of messages: its fetching side, its streams, its application."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from model.asks import Fetch, Partition
from model.clients.connector import Connector
from model.clients.handling import Application, streams_of
from model.clients.journals import TraceJournal
from model.clients.mirror import Mirror
from model.clients.results import PlaceOf, StoreResult
from model.clients.streams import Stream
from model.clients.taking import MemberResults, fetch_with_results
from model.clients.versions import clients_of
from model.program import Ended
from real.fetcher import Fetcher
from real.job import Consumes
from real.joint import JointDriver
from real.member_results import identity
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
    results: MemberResults | None = None
    if part.handling.commits == "with the result":
        results = part.store(Path(part.results), part.me.group)
        driver.threads.answer_too(PlaceOf, results.place_of)
        driver.threads.answer_too(StoreResult, results.store)
    driver.fetching = StreamFetcher(
        connector, driver, results, ends_threads=not isinstance(application, Mirror)
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
        application = Application(connector, part.me.group, part.handling, identity)
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


class StreamFetcher(Fetcher):
    """The fetching side of a process: it may begin where results end, and end all threads."""

    def __init__(
        self,
        connector: Connector,
        driver: JointDriver,
        results: MemberResults | None,
        *,
        ends_threads: bool,
    ) -> None:
        """`ends_threads` says that they end with the program; a mirror's have more to send."""
        super().__init__(connector, driver)
        self.results = results
        self.ends_threads = ends_threads

    async def begin(self, fetches: Sequence[Fetch]) -> None:
        """Fetch these and no others, from where the results end."""
        fetching, group = self.connector.fetching, self.connector.me.group
        if self.results is None:
            await fetching.fetch_exactly(fetches)
        else:
            await fetch_with_results(fetching, self.results, group, fetches)

    def stop(self) -> None:
        """The program is over: nothing is handed on any more."""
        super().stop()
        if self.ends_threads:
            self.driver.end_threads()
