"""How a member comes by the results of what it is to fetch: the same in both worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from watchkeeper import Result, simulate
from watchkeeper.api.simulate import scenario_of
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.result_store import (
    MemberResults,
    ReadPosition,
    StoreResult,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.results.of_member import DatabaseStore, SegmentStore
from watchkeeper.scenarios import ScenarioError
from watchkeeper.sim.brokers import result_stores as simulated

GROUP = "billing"
ONE, OTHER = Partition("clicks", "0-0"), Partition("clicks", "0-1")
Open = Callable[[], MemberResults]


@pytest.fixture(params=["simulated", "real"])
def is_real(request: pytest.FixtureRequest) -> bool:
    return str(request.param) == "real"


@pytest.fixture
def segments(is_real: bool, tmp_path: Path) -> Open:
    """Makes a member's segments of one group."""
    if is_real:
        return lambda: SegmentStore(tmp_path, GROUP)
    stored = simulated.Results()
    return lambda: simulated.MemberResults(stored, GROUP, is_alone=True)


@pytest.fixture
def database(is_real: bool, tmp_path: Path) -> Iterator[Open]:
    """Makes a member's view of the database."""
    stored = simulated.Results()
    opened: list[DatabaseStore] = []

    def real() -> DatabaseStore:
        opened.append(DatabaseStore(tmp_path, GROUP))
        return opened[-1]

    yield real if is_real else lambda: simulated.MemberResults(stored, GROUP, is_alone=False)
    for path in opened:
        path.results.close()


def step(expected: int | None, place: int, partition: Partition = ONE) -> StoreResult:
    return StoreResult(GROUP, partition, expected, place, (), (b"%d" % place,))


def test_segments_are_one_members_at_a_time(segments: Open) -> None:
    """Another waits until they are let go of, and goes on where they end."""
    first, second = segments(), segments()
    assert first.take(ONE)
    assert first.store(step(None, 10))
    assert not second.take(ONE)
    assert second.take(OTHER)
    assert (first.has(ONE), second.has(ONE), second.has(OTHER)) == (True, False, True)
    assert not second.store(step(10, 20))
    assert second.position_of(ReadPosition(GROUP, ONE)) is None

    first.keep_only([OTHER])

    assert second.take(ONE)
    assert second.position_of(ReadPosition(GROUP, ONE)) == 10
    assert second.store(step(10, 20))
    assert not first.store(step(10, 20))
    second.keep_only([])


def test_a_database_is_everybodys(database: Open) -> None:
    """A member that is out of date is refused because of its position alone."""
    first, second = database(), database()
    assert first.has(ONE)
    assert second.take(ONE)
    assert first.store(step(None, 10))
    assert not second.store(step(None, 20))
    assert second.store(step(10, 20))
    second.keep_only([])
    assert second.position_of(ReadPosition(GROUP, ONE)) == 20


PAUSE_S = 6
ZOMBIE: dict[str, Any] = {
    "name": "zombie",
    "about": "A member stands still beyond its session, and has its results all the while.",
    "clusters": {
        "main": {
            "zookeeper": {"servers": 1},
            "brokers": 1,
            "storage": {"config": {"log.flush.interval": 20}},
            "topics": {"clicks": {"partitions_per_broker": 2}},
        }
    },
    "groups": {
        GROUP: {
            "consumers": 2,
            "streams": {"clicks": 1},
            "guarantee": "exactly once",
            "config": {
                "auto.commit.enable": False,
                "zookeeper.session.timeout.ms": 1000,
                "refresh.leader.backoff.ms": 100,
            },
        }
    },
    "timeline": [
        {"at": "1s", "produce": "clicks", "rate": "200/s", "size": "100B", "for": "10s"},
        {"at": "4s", "pause": f"{GROUP}/0", "for": f"{PAUSE_S}s"},
    ],
    "settle": "10s",
}


def ran(store: str) -> Result:
    """The zombie's run, with results in one store or the other."""
    group = ZOMBIE["groups"][GROUP] | {"handling": {"commits": "with the result", "store": store}}
    return simulate({**ZOMBIE, "groups": {GROUP: group}}, seed=1)


def test_a_store_without_results_is_refused() -> None:
    """Positions that are stored alone need no results."""
    group = ZOMBIE["groups"][GROUP] | {"handling": {"commits": "after", "store": "segments"}}
    with pytest.raises(ScenarioError, match="expected `commits: with the result`"):
        scenario_of({**ZOMBIE, "groups": {GROUP: group}}).plan()


@pytest.mark.parametrize(("store", "waits"), [("database", False), ("segments", True)])
def test_a_client_that_stands_still_keeps_its_segments(store: str, waits: bool) -> None:
    """Nothing is lost or doubled either way; the new owner waits, or does not."""
    result = ran(store)
    delivery = result.judgement.finding(f"delivery to {GROUP}")
    assert delivery.verdict.value == "holds", delivery.evidence
    begun = [
        event.t_us / 1e6
        for event in result.trace.of_kind(EventKind.FETCHING)
        if event.node == f"{GROUP}/1" and event.detail["does"] == "begins" and event.t_us > 4e6
    ]
    assert begun
    assert (min(begun) > 4 + PAUSE_S) is waits
