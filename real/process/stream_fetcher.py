"""The fetching side of a live member whose tasks consume messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from watchkeeper.model.actor.effects import Fetch, Partition, Positions
from watchkeeper.model.clients.consumer.connector import Connector
from watchkeeper.real.process.task_driver import TaskDriver


class StreamFetcher:
    """Performs the fetching effects of a member's program with its connector.

    The connector is shared with the tasks of the process, so the program's thread holds the
    baton while it uses it.
    """

    def __init__(self, connector: Connector, driver: TaskDriver) -> None:
        self.connector = connector
        self.driver = driver

    def fetch_exactly(self, fetches: Iterable[Fetch], stopped: Callable[[], None]) -> bool:
        """Fetch exactly these; `stopped` is called when no other partition is delivered."""

        async def work() -> None:
            await self.begin(tuple(fetches))
            stopped()

        self.driver.start_task("fetch exactly", work())
        return False

    async def begin(self, fetches: Sequence[Fetch]) -> None:
        """Fetch exactly these, in a task."""
        await self.connector.fetcher.fetch_exactly(fetches)

    def known_positions(self) -> Positions:
        """The positions of the member, as far as they are known."""
        with self.driver.tasks.baton:
            return self.connector.fetcher.known_positions()

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget the positions of these partitions, or of all."""
        with self.driver.tasks.baton:
            self.connector.fetcher.forget(partitions)

    def stop(self) -> None:
        """The program has ended: nothing is delivered any more."""
        with self.driver.tasks.baton:
            self.connector.fetcher.stop()
