"""Migrations of offsets: which orders of settings hold, in every interleaving."""

from __future__ import annotations

import pytest

from watchkeeper.checker.migration.group import Bounds
from watchkeeper.checker.migration.search import search
from watchkeeper.checker.search.search import Limits
from watchkeeper.model.offset_manager.migration import (
    BACK,
    DUAL,
    FORWARD,
    IN_KAFKA,
    IN_ZOOKEEPER,
    ORDERS,
    OffsetStorage,
    Store,
)
from watchkeeper.model.properties.verdicts import Verdict

IN_ORDER = Bounds(kills=0, turns=2)
WITH_KILLS = Bounds(kills=1, turns=1)
HOLD_IN_ORDER = {FORWARD.name, BACK.name, "to Kafka, after one commit"}
AFTER_WAITS = {*HOLD_IN_ORDER, "back, after one commit"}
ZOOKEEPER, KAFKA = Store.ZOOKEEPER, Store.KAFKA


@pytest.mark.parametrize(
    ("settings", "commits_to", "begins_at"),
    [
        (IN_ZOOKEEPER, (ZOOKEEPER,), 5),
        (OffsetStorage(ZOOKEEPER, dual_commit=True), (ZOOKEEPER,), 5),
        (DUAL, (KAFKA, ZOOKEEPER), 9),
        (IN_KAFKA, (KAFKA,), 9),
    ],
)
def test_what_the_settings_mean(
    settings: OffsetStorage, commits_to: tuple[Store, ...], begins_at: int
) -> None:
    """Dual commit is without effect on offsets in ZooKeeper, as in 0.8.2.2."""
    assert settings.commits_to == commits_to
    assert settings.begins_at({ZOOKEEPER: 5, KAFKA: 9}) == begins_at
    assert settings.begins_at({ZOOKEEPER: None, KAFKA: None}) is None
    assert DUAL.begins_at({ZOOKEEPER: 5, KAFKA: None}) == 5


@pytest.mark.parametrize("name", ORDERS)
def test_orders_whose_members_leave_in_order(name: str) -> None:
    expected = Verdict.HOLDS if name in HOLD_IN_ORDER else Verdict.VIOLATED

    assert search(ORDERS[name], IN_ORDER).verdict is expected


@pytest.mark.parametrize("name", ORDERS)
def test_orders_whose_members_may_be_killed(name: str) -> None:
    """One who was killed between the writes begins at Kafka's, and never writes ZooKeeper's."""
    expected = Verdict.HOLDS if name == BACK.name else Verdict.VIOLATED

    assert search(ORDERS[name], WITH_KILLS).verdict is expected


@pytest.mark.parametrize("name", ORDERS)
def test_members_that_write_all_hold_after_any_wait(name: str) -> None:
    """Without the saving of KAFKA-987 each order with dual commit and a wait holds."""
    bounds = WITH_KILLS._replace(writes_all=True)
    expected = Verdict.HOLDS if name in AFTER_WAITS else Verdict.VIOLATED

    assert search(ORDERS[name], bounds).verdict is expected


def test_the_way_back_as_it_is_documented() -> None:
    """The first member that goes back begins where the group was before it had moved."""
    result = search(ORDERS["back, by the same steps with offsets.storage=zookeeper"])

    assert result.steps == (
        "the operator goes on to zookeeper",
        "a leaves, and starts again with zookeeper",
        "a (zookeeper) takes the partition, and begins at 1",
    )


def test_one_commit_is_not_enough_on_the_way_back() -> None:
    """A partition without messages: its offset seems to be in ZooKeeper, and is not written."""
    result = search(ORDERS["back, after one commit"], IN_ORDER)

    assert result.steps[-4:] == (
        "a commits 2",
        "the operator goes on to zookeeper",
        "a leaves, and starts again with zookeeper",
        "a (zookeeper) takes the partition, and begins at 1",
    )
    assert "a message arrives" not in result.steps


def test_a_search_that_stops_early_shows_nothing() -> None:
    assert search(FORWARD, limits=Limits(states=10)).verdict is Verdict.UNKNOWN
