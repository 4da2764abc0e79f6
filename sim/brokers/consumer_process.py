"""A simulated consumer of messages: the member's fetching side, its streams, its application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from simpy.events import Event

from watchkeeper.model.actor.effects import Fetch, Partition, Positions
from watchkeeper.model.clients.compositions.application import (
    Application,
    connector_of,
    streams_of,
)
from watchkeeper.model.clients.compositions.mirror import Mirror
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.result_store import (
    ReadPosition,
    StoreResult,
    fetch_with_results,
)
from watchkeeper.model.clients.consumer.trace_events import TraceListener
from watchkeeper.model.group.state import Consumer
from watchkeeper.model.group.variants import Variant
from watchkeeper.model.plan.plan import GroupPlan
from watchkeeper.sim.brokers.result_stores import MemberResults, Results
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.tasks import Tasks


class StreamFetcher:
    """The fetching side of a member that is handed messages; it answers what a program asks."""

    def __init__(
        self,
        connector: Connector,
        tasks: Tasks,
        application: Application | Mirror,
        results: MemberResults | None,
    ) -> None:
        self.connector = connector
        self.application = application
        self.node = tasks.node
        self.tasks = tasks
        self.results = results

    def fetch_exactly(self, fetches: Iterable[Fetch]) -> Event | None:
        """Fetch these and no others; an event that happens when nothing else is handed on."""
        done = Event(self.tasks.kernel)

        async def work() -> None:
            fetching, group = self.connector.fetcher, self.connector.me.group
            if self.results is None:
                await fetching.fetch_exactly(fetches)
            else:
                await fetch_with_results(fetching, self.results, group, fetches)
            done.succeed()

        self.tasks.start("fetch exactly", work())
        return done

    def known_positions(self) -> Positions:
        """Where I stand, as far as I know."""
        return self.connector.fetcher.known_positions()

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget where I stood."""
        self.connector.fetcher.forget(partitions)

    def close(self, then: Callable[[], None]) -> None:
        """The program is over: a mirror sends what waits in its producer, and then?"""
        if isinstance(self.application, Mirror):
            self.tasks.start("close", self._close(self.application, then))
        else:
            then()

    async def _close(self, mirror: Mirror, then: Callable[[], None]) -> None:
        await mirror.producer.close()
        then()

    def stop(self) -> None:
        """The process is gone, or its program is over."""
        self.connector.fetcher.stop()
        self.tasks.end()
        if self.results is not None:
            self.results.keep_only(())


def stream_fetcher(
    me: Consumer,
    variant: Variant,
    group: GroupPlan,
    tasks: Tasks,
    results: Results,
    brokers: Sequence[str],
) -> StreamFetcher:
    """A consumer's fetching side with its streams and the tasks of its application.

    `brokers` has the brokers of a cluster that replicates.
    """
    journal = TraceListener(partial(_write, tasks.node))
    connector = connector_of(me, variant, journal, brokers, group.fetches)
    application: Application | Mirror
    if group.forwards is not None:
        application = Mirror(connector, group.forwards, tasks.node.name)
        streams = application.streams(group.forwards.expression)
    else:
        application = Application(connector, me.group, group.handling)
        streams = streams_of(connector, me.subscription)
    for stream in streams:
        tasks.start(f"handle {stream.queue}", application.handle_all(stream))
    if group.handling.commits != "with the result":
        return StreamFetcher(connector, tasks, application, None)
    mine = MemberResults(results, me.group, is_alone=group.handling.store == "segments")
    tasks.answer_too(ReadPosition, mine.position_of)
    tasks.answer_too(StoreResult, mine.store)
    return StreamFetcher(connector, tasks, application, mine)


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
