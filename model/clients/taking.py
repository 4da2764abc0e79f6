"""How a member comes by the results of what it is to fetch, where those are for one at a time.

A database may be written to by every member of a group; whoever is out of date is refused.
An index may not: its folder is one process's own, and the next owner of a partition waits
until that process has let go of it or is gone. A member that stands still keeps others
waiting that long, though its session has ended.

So a member stops what it is not to fetch any more, lets go of that, and only then waits for
what others have. Two that swap partitions do not wait for one another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from model.asks import Fetch, Partition, sleep
from model.clients.fetching import Fetching
from model.clients.results import PlaceOf, StoreResult

AGAIN_MS = 50
"""How often somebody looks whether another process has let go."""


class MemberResults(Protocol):
    """The results of a group, as one member of it has them."""

    def has(self, partition: Partition) -> bool:
        """Whether this member may store results of a partition."""

    def take(self, partition: Partition) -> bool:
        """Have them from now on; False as long as another process has them."""

    def keep_only(self, partitions: Collection[Partition]) -> None:
        """Let go of all others."""

    def place_of(self, ask: PlaceOf) -> int | None:
        """Where the group stands; None where this member has no results."""

    def store(self, ask: StoreResult) -> bool:
        """Store both, or neither; nothing where this member has no results."""


async def fetch_with_results(
    fetching: Fetching, results: MemberResults, group: str, fetches: Iterable[Fetch]
) -> None:
    """Fetch these and no others, each from where its results end."""

    def begun(fetch: Fetch) -> Fetch:
        place = results.place_of(PlaceOf(group, fetch.partition))
        return fetch if place is None else fetch._replace(start=place)

    wanted = tuple(fetches)
    mine = [one for one in wanted if results.has(one.partition)]
    await fetching.fetch_exactly(map(begun, mine))
    results.keep_only([one.partition for one in mine])
    others = [one for one in wanted if one not in mine]
    for one in others:
        while not results.take(one.partition):
            await sleep(AGAIN_MS)
    if others:
        await fetching.fetch_exactly(map(begun, wanted))
