"""A run in which fetchers rest is, event for event, the run in which every round is simulated."""

from __future__ import annotations

from typing import Any

import pytest

from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.trace.trace import Row
from watchkeeper.scenarios import from_text
from watchkeeper.sim.world import World
from watchkeeper.sim.zookeeper.network import Resting

QUIET = """
name: quiet
about: Messages come for a while, then none, then again; in between every kind of disturbance.
clusters:
  main: {zookeeper: {servers: 3}, brokers: 3, topics: {clicks: {partitions: 6}}}
groups:
  billing: {consumers: 3, streams: {clicks: 1}, fetch_every: 300ms}
timeline:
  - {at: 8s, produce: clicks, rate: 100/s, size: 100B, for: 3s}
  - {at: 14s, pause: billing/0, for: 1s}
  - {at: 17s, crash: broker/1}
  - {at: 21s, restart: broker/1}
  - {at: 26s, pause: broker/2, for: 2s}
  - {at: 31s, partition: billing/1, from: broker/1, for: 2s}
  - {at: 36s, crash: billing/2}
  - {at: 46s, produce: clicks, rate: 100/s, size: 100B, for: 1s}
settle: 15s
"""


class Restless(dict[Resting, None]):
    """Fetchers that come to rest, each woken at once."""

    def __init__(self) -> None:
        super().__init__()
        self.came = 0

    def __setitem__(self, fetcher: Resting, value: None) -> None:
        super().__setitem__(fetcher, value)
        self.came += 1
        fetcher.wake()


def plan_of(variant: str) -> Plan:
    return from_text("quiet.yaml", QUIET).plan(variant)


def rows_of(plan: Plan, seed: int, fetchers: dict[Any, None]) -> list[Row]:
    world = World(plan, seed)
    world.network.resting_fetchers = fetchers
    world.run()
    return world.kernel.rows


@pytest.mark.parametrize("variant", ["hardened", "kafka_07"])
@pytest.mark.parametrize("seed", range(3))
def test_rounds_that_find_nothing_need_not_be_simulated(variant: str, seed: int) -> None:
    plan = plan_of(variant)
    restless = Restless()
    expected = rows_of(plan, seed, restless)
    assert rows_of(plan, seed, {}) == expected
    assert restless.came > 50, "so many rounds found nothing"
    kinds = {row[2] for row in expected}
    assert {"fetched", "fetch failed"} <= kinds
