"""A simulated consumer of messages: the member's fetching side, its streams, its application."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from simpy.events import Event

from model.asks import Fetch, Partition, Positions
from model.clients.connector import Connector
from model.clients.handling import Application, streams_of
from model.clients.journals import TraceJournal
from model.clients.mirror import Mirror
from model.clients.results import PlaceOf, StoreResult
from model.clients.taking import fetch_with_results
from model.clients.versions import clients_of
from model.member import Consumer
from model.plan import GroupPlan
from model.variants import Variant
from sim.node import Node
from sim.results import MemberResults, Results
from sim.threads import Threads


class StreamFetcher:
    """The fetching side of a member that is handed messages; it answers what a program asks."""

    def __init__(
        self,
        connector: Connector,
        threads: Threads,
        application: Application | Mirror,
        results: MemberResults | None,
    ) -> None:
        self.connector = connector
        self.application = application
        self.node = threads.node
        self.threads = threads
        self.results = results

    def fetch_exactly(self, fetches: Iterable[Fetch]) -> Event | None:
        """Fetch these and no others; an event that happens when nothing else is handed on."""
        done = Event(self.threads.kernel)

        async def work() -> None:
            fetching, group = self.connector.fetching, self.connector.me.group
            if self.results is None:
                await fetching.fetch_exactly(fetches)
            else:
                await fetch_with_results(fetching, self.results, group, fetches)
            done.succeed()

        self.threads.start("fetch exactly", work())
        return done

    def known_positions(self) -> Positions:
        """Where I stand, as far as I know."""
        return self.connector.fetching.known_positions()

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget where I stood."""
        self.connector.fetching.forget(partitions)

    def close(self, then: Callable[[], None]) -> None:
        """The program is over: a mirror sends what waits in its producer, and then?"""
        if isinstance(self.application, Mirror):
            self.threads.start("close", self._close(self.application, then))
        else:
            then()

    async def _close(self, mirror: Mirror, then: Callable[[], None]) -> None:
        await mirror.producer.close()
        then()

    def stop(self) -> None:
        """The process is gone, or its program is over."""
        self.connector.fetching.end()
        self.threads.end()
        if self.results is not None:
            self.results.keep_only(())


def stream_fetcher(
    me: Consumer, variant: Variant, group: GroupPlan, threads: Threads, results: Results
) -> StreamFetcher:
    """A consumer's fetching side with its streams and the threads of its application."""
    journal = TraceJournal(partial(_write, threads.node))
    connector = clients_of(variant).connector(me, journal)
    application: Application | Mirror
    if group.forwards is not None:
        application = Mirror(connector, group.forwards, threads.node.name)
        streams = application.streams(group.forwards.expression)
    else:
        application = Application(connector, me.group, group.handling)
        streams = streams_of(connector, me.subscription)
    for stream in streams:
        threads.start(f"handle {stream.queue}", application.handle_all(stream))
    if group.handling.commits != "with the result":
        return StreamFetcher(connector, threads, application, None)
    mine = MemberResults(results, me.group, is_alone=group.handling.store == "segments")
    threads.answer_too(PlaceOf, mine.place_of)
    threads.answer_too(StoreResult, mine.store)
    return StreamFetcher(connector, threads, application, mine)


def _write(node: Node, kind: str, detail: dict[str, Any], partition: Partition | None) -> None:
    node.kernel.write(
        node.name,
        kind,
        detail,
        session=node.client.session if node.client is not None else 0,
        group=node.group,
        topic=partition.topic if partition is not None else "",
        partition=partition.name if partition is not None else "",
    )
