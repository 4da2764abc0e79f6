"""A simulated consumer of messages: the member's fetching side, its streams, its application."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simpy.events import Event

from model.asks import Fetch, Partition, Positions
from model.clients.chunks import Handed
from model.clients.connector import Connector
from model.clients.handling import Application
from model.clients.places import Place
from model.clients.results import PlaceOf, StoreResult
from model.clients.versions import clients_of
from model.member import Consumer
from model.plan import Handling
from model.variants import Variant
from sim.node import Node
from sim.threads import Threads


class Journal:
    """Writes into the trace what the fetching side of a consumer does."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def fetching(self, place: Place, does: str) -> None:
        """A partition begins or ceases to be fetched."""
        at = place.consumed if place.consumed is not None else -1
        self._write("fetching", {"does": does, "at": at, "stream": place.stream}, place.partition)

    def fails(self, address: str, times: int) -> None:
        """A broker did not answer."""
        self._write("fetch fails", {"from": address, "times": times})

    def reset(self, place: Place, offset: int, why: str) -> None:
        """A partition is read on at the beginning or the end of its log."""
        self._write("offset reset", {"to": offset, "why": why}, place.partition)

    def handed_on(self, place: Place, handed: Handed) -> None:
        """An application was handed messages."""
        lots = [list(handed.lot)] if handed.lot is not None else []
        self._write("consumed", {"lots": lots, "stream": place.stream}, handed.partition)

    def _write(
        self, kind: str, detail: dict[str, Any], partition: Partition | None = None
    ) -> None:
        node = self.node
        node.kernel.write(
            node.name,
            kind,
            detail,
            session=node.client.session if node.client is not None else 0,
            group=node.group,
            topic=partition.topic if partition is not None else "",
            partition=partition.name if partition is not None else "",
        )


class Results:
    """A database with transactions, which outlives every consumer."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, Partition], int] = {}

    def place_of(self, ask: PlaceOf) -> int | None:
        """Where a group stands in a partition, by its results."""
        return self._places.get((ask.group, ask.partition))

    def store(self, ask: StoreResult) -> bool:
        """Store a result with its place, unless somebody else has come further."""
        key = (ask.group, ask.partition)
        if self._places.get(key) != ask.expected:
            return False
        self._places[key] = ask.place
        return True


class StreamFetcher:
    """The fetching side of a member that is handed messages; it answers what a program asks."""

    def __init__(self, connector: Connector, threads: Threads, results: Results | None) -> None:
        self.connector = connector
        self.node = threads.node
        self.threads = threads
        self.results = results

    def fetch_exactly(self, fetches: Iterable[Fetch]) -> Event | None:
        """Fetch these and no others; an event that happens when nothing else is handed on."""
        done = Event(self.threads.kernel)

        async def work() -> None:
            await self.connector.fetching.fetch_exactly([self._begun(one) for one in fetches])
            done.succeed()

        self.threads.start("fetch exactly", work())
        return done

    def _begun(self, fetch: Fetch) -> Fetch:
        """Where a fetch begins: where the results end, if places are stored with them."""
        if self.results is None:
            return fetch
        group = self.connector.me.group
        place = self.results.place_of(PlaceOf(group, fetch.partition))
        return fetch if place is None else fetch._replace(start=place)

    def known_positions(self) -> Positions:
        """Where I stand, as far as I know."""
        return self.connector.fetching.known_positions()

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget where I stood."""
        self.connector.fetching.forget(partitions)

    def stop(self) -> None:
        """The process is gone, or its program is over."""
        self.connector.fetching.end()
        self.threads.end()


def stream_fetcher(
    me: Consumer,
    variant: Variant,
    handling: Handling,
    threads: Threads,
    results: Results,
) -> StreamFetcher:
    """A consumer's fetching side with its streams and the threads of its application."""
    connector = clients_of(variant).connector(me, Journal(threads.node))
    wanted = me.subscription
    if wanted.is_filter:
        streams = connector.create_message_streams_by_filter(
            wanted.expression, wanted.filter_streams, wanted.pattern
        )
    else:
        by_topic = connector.create_message_streams(dict(wanted.streams))
        streams = [stream for of_topic in by_topic.values() for stream in of_topic]
    application = Application(connector, me.group, handling)
    for stream in streams:
        threads.start(f"handle {stream.queue}", application.handle_all(stream))
    threads.answer_too(PlaceOf, results.place_of)
    threads.answer_too(StoreResult, results.store)
    has_places = handling.commits == "with the result"
    return StreamFetcher(connector, threads, results if has_places else None)
