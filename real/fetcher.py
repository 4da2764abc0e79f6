"""The fetching side of a live member that reads messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from model.asks import Fetch, Partition, Positions
from model.clients.connector import Connector
from real.joint import JointDriver


class Fetcher:
    """It answers what the program of a member asks of its fetching side.

    It shares memory with the threads of the process, so whatever the program's own thread does
    here it does with the baton.
    """

    def __init__(self, connector: Connector, driver: JointDriver) -> None:
        self.connector = connector
        self.driver = driver

    def fetch_exactly(self, fetches: Iterable[Fetch], quiet: Callable[[], None]) -> bool:
        """Fetch these and no others; `quiet` is called when nothing else is handed on."""

        async def work() -> None:
            await self.begin(tuple(fetches))
            quiet()

        self.driver.start_thread("fetch exactly", work())
        return False

    async def begin(self, fetches: Sequence[Fetch]) -> None:
        """Fetch these and no others, in a thread."""
        await self.connector.fetching.fetch_exactly(fetches)

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
