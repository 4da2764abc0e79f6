"""Kafka's own tests of who owns what, replayed in simulation.

The steps and tables are those of ZKLoadBalanceTest (0.7.2) and of
ZookeeperConsumerConnectorTest (0.7.2, 0.8.2, 1.1).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.owners import owners
from watchkeeper import Result, simulate
from watchkeeper.model.trace.kinds import EventKind

SHIPPED = ("kafka_07", "hardened")


def group(*consumers: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """`group1` with these members, ids as in Kafka's tests."""
    config = {"zookeeper.session.timeout.ms": 2000, "auto.commit.interval.ms": 1000}
    return {"group1": {"consumers": list(consumers), "config": config, **settings}}


def consumer(number: int, starts: str, **streams: int) -> dict[str, Any]:
    """`consumer1`, `consumer2` and so on."""
    return {"id": f"consumer{number}", "starts": starts, "streams": streams}


def fetches(result: Result, node: str, *, from_s: float = 0) -> dict[str, int]:
    """Partition -> how many messages a member has fetched since a moment."""
    found: dict[str, int] = {}
    for event in result.trace:
        if event.kind == EventKind.FETCHED and event.node == node and event.t_us >= from_s * 1e6:
            for partition, (start, end) in event.detail["moved"].items():
                found[partition] = found.get(partition, 0) + end - start
    return found


# --- ZKLoadBalanceTest -----------------------------------------------------------------


def load_balance() -> dict[str, Any]:
    """Broker 400 has one partition; brokers 200 and 300 come later, with two each."""
    two = {"partitions": {"topic1": 2}}
    return {
        "name": "load-balance",
        "about": "ZKLoadBalanceTest",
        "clusters": {
            "main": {
                "layout": "0.7",
                "brokers": [
                    {"id": 400},
                    {"id": 200, "starts": "8s", **two},
                    {"id": 300, "starts": "9s", **two},
                ],
                "topics": {"topic1": {"partitions_per_broker": 1}},
            }
        },
        "groups": group(consumer(1, "1s", topic1=1), consumer(2, "4s", topic1=1)),
        "timeline": [
            {"at": "0s", "produce": "topic1", "rate": "10/s"},
            {"at": "14s", "crash": "broker/400"},
        ],
        "settle": "8s",
    }


ONE, TWO = "group1_consumer1-0", "group1_consumer2-0"

LOAD_BALANCE = {
    "one partition, one consumer": (3.5, {"400-0": ONE}),
    "a second consumer gets nothing": (7.5, {"400-0": ONE}),
    "two more brokers": (
        13.5,
        {"200-0": ONE, "200-1": ONE, "300-0": ONE, "300-1": TWO, "400-0": TWO},
    ),
    "one broker less": (21, {"200-0": ONE, "200-1": ONE, "300-0": TWO, "300-1": TWO}),
}


@pytest.mark.parametrize("variant", SHIPPED)
@pytest.mark.parametrize("seed", range(3))
def test_load_balance(variant: str, seed: int) -> None:
    """Brokers with odd ids come and go; the table is Kafka's."""
    result = simulate(load_balance(), seed=seed, variant=variant)
    assert result.holds, result
    for step, (at_s, expected) in LOAD_BALANCE.items():
        assert owners(result, "group1", at_s=at_s) == expected, step


# --- ZookeeperConsumerConnectorTest ----------------------------------------------------


def connector(layout: str, streams: int) -> dict[str, Any]:
    """Two brokers; a second consumer, then a third that wants nothing."""
    topic = {"partitions_per_broker": 2} if layout == "0.7" else {"partitions": 2}
    return {
        "name": "connector",
        "about": "ZookeeperConsumerConnectorTest.testBasic",
        "clusters": {"main": {"layout": layout, "brokers": 2, "topics": {"topic1": topic}}},
        "groups": group(
            consumer(1, "1s", topic1=streams),
            consumer(2, "5s", topic1=streams),
            consumer(3, "9s"),
        ),
        "timeline": [{"at": "0s", "produce": "topic1", "rate": "8/s"}],
        "settle": "14s",
    }


@pytest.mark.parametrize("variant", SHIPPED)
def test_basic_with_two_brokers_of_two_partitions(variant: str) -> None:
    """Two consumers of two streams each: one partition a stream, and all is fetched."""
    result = simulate(connector("0.7", 2), variant=variant)
    assert result.holds, result
    alone = {"0-0": ONE, "0-1": ONE, "1-0": ONE[:-1] + "1", "1-1": ONE[:-1] + "1"}
    shared = {"0-0": ONE, "0-1": ONE[:-1] + "1", "1-0": TWO, "1-1": TWO[:-1] + "1"}
    assert owners(result, "group1", at_s=4.5) == alone
    assert owners(result, "group1", at_s=8.5) == shared
    assert owners(result, "group1", at_s=13.5) == shared, "the third wants nothing"
    assert set(fetches(result, "group1/0", from_s=6)) == {"topic1/0-0", "topic1/0-1"}
    assert set(fetches(result, "group1/1", from_s=6)) == {"topic1/1-0", "topic1/1-1"}
    assert not fetches(result, "group1/2")


@pytest.mark.parametrize("variant", ["kafka_08", "hardened"])
def test_basic_with_a_topic_of_two_partitions(variant: str) -> None:
    """The layout of 0.8: partitions are the topic's, not the brokers'."""
    result = simulate(connector("0.8", 1), variant=variant)
    assert result.holds, result
    assert owners(result, "group1", at_s=4.5) == {"0": ONE, "1": ONE}
    assert owners(result, "group1", at_s=8.5) == {"0": ONE, "1": TWO}
    assert owners(result, "group1", at_s=13.5) == {"0": ONE, "1": TWO}


@pytest.mark.parametrize("variant", ["kafka_08", "hardened"])
def test_all_members_know_the_same(variant: str) -> None:
    """What the 1.1 test asks of its listeners: equal global maps after each change."""
    result = simulate(connector("0.8", 1), variant=variant)
    last: dict[str, Any] = {}
    for event in result.trace:
        if event.kind == EventKind.ASSIGNED and "topic1" in event.detail["plans"]:
            last[event.node] = event.detail["plans"]["topic1"]
    assert set(last) == {"group1/0", "group1/1"}
    assert last["group1/0"] == last["group1/1"]


def test_leader_selection_for_a_single_partition() -> None:
    """A topic of one partition has one owner."""
    scenario = connector("0.8", 1)
    scenario["clusters"]["main"]["topics"] = {"topic1": {"partitions": 1}}
    scenario["groups"] = group(consumer(1, "1s", topic1=1))
    result = simulate(scenario, variant="kafka_08")
    assert result.holds, result
    assert owners(result, "group1", at_s=10) == {"0": ONE}


# --- AutoOffsetResetTest ---------------------------------------------------------------


@pytest.mark.parametrize("variant", ["kafka_07", "kafka_08", "hardened"])
@pytest.mark.parametrize(("reset", "received"), [("smallest", 200), ("largest", 0)])
def test_where_a_new_group_begins(variant: str, reset: str, received: int) -> None:
    """Without an offset a member begins at the first message, or with what comes next."""
    scenario = connector("0.8" if variant == "kafka_08" else "0.7", 1)
    scenario["timeline"] = [{"at": "0s", "produce": "topic1", "rate": "100/s", "for": "2s"}]
    scenario["groups"] = group(consumer(1, "4s", topic1=1))
    scenario["groups"]["group1"]["config"] |= {"auto.offset.reset": reset}
    if variant == "kafka_07":
        config = scenario["groups"]["group1"]["config"]
        config["autooffset.reset"] = config.pop("auto.offset.reset")
    result = simulate(scenario, variant=variant)
    fetched = fetches(result, "group1/0")
    assert sum(fetched.values()) == received, fetched
