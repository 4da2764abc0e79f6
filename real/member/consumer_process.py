"""The process of a live consumer of messages: fetching side, streams and application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from watchkeeper.model.actor.effects import Fetch, Partition
from watchkeeper.model.actor.program import Ended
from watchkeeper.model.clients.compositions.application import (
    Application,
    connector_of,
    streams_of,
)
from watchkeeper.model.clients.compositions.mirror import Mirror
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.model.clients.consumer.result_store import (
    MemberResults,
    ReadPosition,
    StoreResult,
    fetch_with_results,
)
from watchkeeper.model.clients.consumer.streams import Stream
from watchkeeper.model.clients.consumer.trace_events import TraceListener
from watchkeeper.real.member.context import MemberContext
from watchkeeper.real.member.job import ConsumerRole
from watchkeeper.real.process.stream_fetcher import StreamFetcher
from watchkeeper.real.process.task_driver import TaskDriver
from watchkeeper.real.results.of_member import identity


def run(context: MemberContext) -> Ended:
    """Consume until the program ends; a mirror then sends what waits in its producer."""
    job, role = context.job, context.job.role
    assert isinstance(role, ConsumerRole), "the job of a consumer has its role"
    journal = TraceListener(partial(_write, context))
    connector = connector_of(role.me, role.variant, journal, role.brokers, role.fetches)
    application, streams = _application(job.node, role, connector)
    program = job.program if role.has_own_program else replace(job.program, me=connector.me)
    driver = context.task_driver(program, role.balancer, role.target)
    results: MemberResults | None = None
    if role.handling.commits == "with the result":
        results = role.store(Path(role.results), role.me.group)
        driver.tasks.answer_immediately(ReadPosition, results.position_of)
        driver.tasks.answer_immediately(StoreResult, results.store)
    driver.fetching = MemberFetcher(
        connector, driver, results, ends_tasks=not isinstance(application, Mirror)
    )
    for stream in streams:
        driver.start_task(f"handle {stream.queue}", application.handle_all(stream))
    context.listen(driver)
    ended = driver.run()
    if isinstance(application, Mirror):
        driver.run_task(application.producer.close())
        driver.end_tasks()
    return ended


def _application(
    node: str, role: ConsumerRole, connector: Connector
) -> tuple[Application | Mirror, list[Stream]]:
    """The application of the messages, and the streams that they come from."""
    if role.forwards is None:
        application = Application(connector, role.me.group, role.handling, identity)
        return application, streams_of(connector, role.me.subscription)
    mirror = Mirror(connector, role.forwards, node)
    return mirror, mirror.streams(role.forwards.expression)


def _write(
    context: MemberContext, kind: str, detail: dict[str, Any], partition: Partition | None
) -> None:
    context.writer.write(
        kind,
        detail,
        session=context.session,
        topic=partition.topic if partition is not None else "",
        partition=partition.name if partition is not None else "",
    )


class MemberFetcher(StreamFetcher):
    """The fetching side of a process: may start where results end, and may end all tasks."""

    def __init__(
        self,
        connector: Connector,
        driver: TaskDriver,
        results: MemberResults | None,
        *,
        ends_tasks: bool,
    ) -> None:
        """`ends_tasks`: tasks end with the program; those of a mirror have more to send."""
        super().__init__(connector, driver)
        self.results = results
        self.ends_tasks = ends_tasks

    async def begin(self, fetches: Sequence[Fetch]) -> None:
        """Fetch exactly these, from where the results end."""
        fetching, group = self.connector.fetcher, self.connector.me.group
        if self.results is None:
            await fetching.fetch_exactly(fetches)
        else:
            await fetch_with_results(fetching, self.results, group, fetches)

    def stop(self) -> None:
        """The program has ended: nothing is delivered any more."""
        super().stop()
        if self.ends_tasks:
            self.driver.end_tasks()
