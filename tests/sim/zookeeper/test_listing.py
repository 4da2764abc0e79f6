"""The order in which servers list children: the service promises none."""

from __future__ import annotations

from tests.support.checker.clusters import small
from watchkeeper import Program, simulate
from watchkeeper.checker.cluster.cluster import SESSIONS_EACH, ClusterSystem
from watchkeeper.model.actor.effects import new_session, next_event
from watchkeeper.model.actor.errors import NodeExists
from watchkeeper.model.actor.operations import Create, GetChildren, ZooKeeper
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.zookeeper.java_hash_order import in_table_order

NAMES = tuple(f"znode-{at}" for at in range(6))
JAVA = in_table_order(((name, at) for at, name in enumerate(NAMES)), 8)
SEEDS = range(12)


def listed(seed: int) -> tuple[str, ...]:
    """Return the children that one simulated server lists."""
    found: list[tuple[str, ...]] = []

    async def turn(zk: ZooKeeper, me: object, state: object) -> object:
        await new_session()
        try:
            await Create("/parent")
            for name in NAMES:
                await Create(f"/parent/{name}")
        except NodeExists:
            pass
        found.append(await GetChildren("/parent", False))
        while True:
            await next_event()

    simulate(
        {
            "name": "listing",
            "about": "a consumer lists children",
            "clusters": {
                "main": {
                    "zookeeper": {"servers": 1},
                    "brokers": 1,
                    "topics": {"clicks": {"partitions_per_broker": 1}},
                }
            },
            "groups": {"group": {"consumers": 1, "streams": {"clicks": 1}}},
            "settle": "1s",
        },
        seed=seed,
        consumer=Program(turn, None, None),
    )
    return found[0]


def test_seeds_list_children_in_several_orders() -> None:
    orders = {seed: listed(seed) for seed in SEEDS}

    assert {tuple(sorted(order)) for order in orders.values()} == {NAMES}
    assert JAVA in orders.values(), "some servers list them as ZooKeeper's own do"
    assert len(set(orders.values())) > 2
    assert listed(3) == orders[3], "a seed lists them in one order"


def test_members_of_a_search_list_children_in_opposite_orders() -> None:
    service = ClusterSystem(small(), Bounds()).service
    tree = service.apply(service.first, 1, Create("/parent")).tree
    for name in NAMES:
        tree = service.apply(tree, 1, Create(f"/parent/{name}")).tree

    first, second = (
        service.apply(tree, session, GetChildren("/parent", False)).answer
        for session in (1, 1 + SESSIONS_EACH)
    )

    assert first == second[::-1]
    assert tuple(sorted(first)) == NAMES != first
