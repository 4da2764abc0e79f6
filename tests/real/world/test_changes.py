"""Ordinary changes in a live run: topics, leaders, broker addresses, lost machines.

Each layout has one scenario with all of these changes, run once live and once simulated. The
counts of each entry, the served partitions and the final fetches have to be equal.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoNodeError
from kazoo.handlers.threading import AsyncResult, SequentialThreadingHandler

from tests.real.world.test_runs import SHORT_S, scenario
from tests.support.live_zookeeper import lived_to_a_verdict
from tests.support.member_worlds import ran
from watchkeeper import simulate
from watchkeeper.api.result import Result
from watchkeeper.api.simulate import scenario_of
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import BrokerPlan
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.real.faults.faults import HANDLERS
from watchkeeper.real.member.data_plane_file import DataPlaneState
from watchkeeper.real.ports import free_ports
from watchkeeper.real.world.data_plane import DataPlane, Load
from watchkeeper.real.world.leaders import Leaders
from watchkeeper.real.world.world import World

IN_WORLDS = [
    pytest.param("0.7", "virtual"),
    pytest.param("0.8", "virtual"),
    pytest.param("0.7", "live", marks=pytest.mark.slow),
    pytest.param("0.8", "live"),
]
"""Layout and world."""
TOPICS: dict[str, dict[str, Any]] = {
    "0.7": {"partitions_per_broker": 2},
    "0.8": {"partitions": 4, "replicas": 2},
}
MOVED = "spare.example:9093"
LEADER_MOVES = {"at": "7s", "move_leader": "clicks/0", "to": "broker/1"}


def topics_over_time(layout: str) -> dict[str, Any]:
    """A scenario with all changes, one after the other."""
    fields = scenario(
        {"at": "4s", "create_topic": "clicks-new", "partitions": 2},
        {"at": "5s", "add_partitions": "clicks", "partitions": 6},
        {"at": "6s", "delete_topic": "clicks-old"},
        *([LEADER_MOVES] if layout == "0.8" else []),
        {"at": "8s", "move": "broker/0", "to": MOVED},
        {"at": "10s", "crash_host": "group/1"},
        {"at": "10s", "produce": "clicks-new", "rate": "100/s"},
        session_s=SHORT_S,
    )
    # The first broker to register leads; the other one registers later, on a busy machine too.
    fields["clusters"]["main"]["brokers"] = [{"id": 0}, {"id": 1, "starts": "800ms"}]
    topics = dict.fromkeys(("clicks", "clicks-old"), TOPICS[layout])
    fields["clusters"]["main"].update(layout=layout, topics=topics)
    fields["groups"]["group"].update(filter={"white_list": "clicks.*", "streams": 1})
    del fields["groups"]["group"]["streams"]
    return fields


@cache
def for_real(layout: str, world: str) -> Any:
    return ran(topics_over_time(layout), world)


@cache
def simulated(layout: str) -> Result:
    return simulate(topics_over_time(layout))


CHANGES = ("create_topic", "add_partitions", "delete_topic", "move", "crash_host")
CASES = [
    pytest.param(*run.values, verb, marks=run.marks)
    for run in IN_WORLDS
    for verb in (*CHANGES, *(["move_leader"] if run.values[0] == "0.8" else []))
]


def counted(result: Any, verb: str) -> dict[str, int]:
    (effect,) = (effect for effect in result.effects if effect.action.verb.name == verb)
    return effect.counts


@pytest.mark.parametrize(("layout", "world"), IN_WORLDS)
def test_the_group_comes_to_rest_after_all_of_it(layout: str, world: str) -> None:
    assert for_real(layout, world).verdict is Verdict.HOLDS, str(for_real(layout, world))
    assert simulated(layout).verdict is Verdict.HOLDS


@pytest.mark.parametrize(("layout", "world", "verb"), CASES)
def test_each_entry_counts_what_it_counts_simulated(layout: str, world: str, verb: str) -> None:
    live = counted(for_real(layout, world), verb)

    # Only the simulation can read from the ensemble's state what a session has left.
    expected = counted(simulated(layout), verb)
    expected.pop("ephemerals left behind", None)
    assert live == expected
    assert any(live.values())


@pytest.mark.parametrize(("layout", "world"), IN_WORLDS)
def test_brokers_and_consumers_act_as_in_the_simulation(layout: str, world: str) -> None:
    """At the end, and in the order in which each broker began to serve."""
    live, expected = for_real(layout, world).trace, simulated(layout).trace

    assert hosting(live) == hosting(expected)
    assert fetched_at_the_end(live) == fetched_at_the_end(expected)
    assert {topic for topic, _ in fetched_at_the_end(live)} == {"clicks", "clicks-new"}
    moved = {name for event in live.of_kind(EventKind.FETCHED) for name in event.detail["moved"]}
    assert {f"{topic}/{name}" for topic, name in fetched_at_the_end(live)} <= moved


def hosting(trace: Trace) -> dict[str, list[tuple[str, str, str]]]:
    """Broker -> what it began and ceased to serve, in order."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for event in trace.of_kind(EventKind.HOSTING):
        row = (event.detail["does"], event.topic, event.partition)
        found.setdefault(event.node, []).append(row)
    return found


def fetched_at_the_end(trace: Trace) -> set[tuple[str, str]]:
    """The partitions that are still fetched at the end."""
    found: dict[tuple[str, str], int] = {}
    for event in trace.of_kind(EventKind.FETCHING):
        change = 1 if event.detail["does"] == "begins" else -1
        key = (event.topic, event.partition)
        found[key] = found.get(key, 0) + change
    assert set(found.values()) <= {0, 1}
    return {key for key, number in found.items() if number}


@pytest.mark.parametrize("world", ["virtual", "live"])
def test_a_leader_moves_in_the_registry_and_readers_follow(world: str) -> None:
    """Broker 0 is the leader before, broker 1 after the change."""
    trace = for_real("0.8", world).trace
    path = "/brokers/topics/clicks/partitions/0/state"

    changes = [
        (event.t_us, did[3])
        for event in trace.of_kind(EventKind.APPLIED)
        for did in event.detail["did"]
        if did[:2] in (["created", path], ["changed", path])
    ]

    (moved,) = (event for event in trace if event.detail.get("verb") == "move_leader")
    leaders = [(at_us, json.loads(data)["leader"]) for at_us, data in changes]
    assert [leader for at_us, leader in leaders if at_us < moved.t_us][-1] == 0
    assert next(leader for at_us, leader in leaders if at_us >= moved.t_us) == 1


@pytest.mark.parametrize(("layout", "world"), IN_WORLDS)
def test_a_broker_that_moved_is_found_at_its_new_address(layout: str, world: str) -> None:
    """It registers the address, and what is on its disk is fetched from there."""
    trace = for_real(layout, world).trace

    starts = [event for event in trace.of_kind(EventKind.STARTED) if event.node == "broker/0"]

    assert [event.detail["address"] for event in starts] == ["main-b0.example:9092", MOVED]
    registered = [
        did[3]
        for event in trace.of_kind(EventKind.APPLIED)
        for did in event.detail["did"]
        if did[:2] == ["created", "/brokers/ids/0"]
    ]
    assert "spare.example" in registered[-1]
    assert "9093" in registered[-1]
    mine = {f"{place.topic}/{place.partition}" for place in served_by("broker/0", trace)}
    later = [
        event for event in trace.of_kind(EventKind.FETCHED) if event.t_us > starts[-1].t_us + 1e6
    ]
    assert any(mine & event.detail["moved"].keys() for event in later)


def served_by(node: str, trace: Trace) -> list[Event]:
    return [event for event in trace.of_kind(EventKind.HOSTING) if event.node == node]


@pytest.mark.parametrize(("layout", "world"), IN_WORLDS)
def test_the_session_of_a_lost_machine_expires(layout: str, world: str) -> None:
    """No one closes it; its connection stays open until then."""
    trace = for_real(layout, world).trace
    (lost,) = (event for event in trace if event.detail.get("verb") == "crash_host")

    ends = [
        event
        for event in trace
        if event.kind in (EventKind.SESSION_CLOSED, EventKind.SESSION_EXPIRED)
        and event.detail["by"] == "group/1"
        and event.t_us > lost.t_us
    ]

    assert [event.kind for event in ends] == [EventKind.SESSION_EXPIRED]
    assert ends[0].t_us - lost.t_us > 300_000
    assert counted(for_real(layout, world), "crash_host")["connections left open"] == 1


def test_a_moved_broker_leaves_its_old_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new address gets a new port of this machine."""
    plan = scenario_of(scenario({"at": "3s", "move": "broker/0", "to": MOVED})).plan()
    world, action = World(plan, tmp_path), plan.timeline[-1]
    monkeypatch.setattr(world, "start", lambda name: True)
    world.brokers["broker/0"] = ("main", plan.clusters[0].brokers[0])
    (before,) = free_ports(1)
    world.ports["broker/0"] = before
    effect = FaultEffect(action)

    HANDLERS["move"](world, action, effect)

    assert world.ports["broker/0"] != before
    assert world.brokers["broker/0"][1].host == "spare.example"
    assert effect.counts == {"brokers moved": 1}


def test_a_broker_that_restarts_at_once_keeps_serving() -> None:
    """The end of its first process is reported after its second has begun."""
    again = ({"at": "3s", "crash_host": "broker/0"}, {"at": "3s", "restart": "broker/0"})
    result = lived_to_a_verdict(scenario(*again, session_s=SHORT_S))

    assert result.verdict is Verdict.HOLDS, str(result)
    does = [event.detail["does"] for event in served_by("broker/0", result.trace)]
    assert does == ["begins"] * 2 + ["ceases"] * 2 + ["begins"] * 2


# --- the data plane alone ----------------------------------------------------------------


def data_plane(folder: Path) -> DataPlane:
    (plan,) = scenario_of(scenario()).plan().clusters
    return DataPlane(plan, folder / "cluster.json", lambda: 0, lambda *event: None)


def state(data: DataPlane) -> DataPlaneState:
    return data.file.read()


def test_a_process_that_gives_up_an_id_takes_nothing_from_its_holder(tmp_path: Path) -> None:
    """Two processes with one id; the partitions are served until the last one has ended."""
    data = data_plane(tmp_path)
    data.open(BrokerPlan("broker/0", 0, "first", 9092), "127.0.0.1:1")
    data.open(BrokerPlan("broker/intruder", 0, "second", 9092), "127.0.0.1:2")

    data.close("broker/intruder")

    assert state(data).hosts == {"broker/0": ["clicks/0-0", "clicks/0-1"]}
    assert state(data).addresses == {0: "first:9092"}


def test_an_address_stands_for_its_holder(tmp_path: Path) -> None:
    """The first process holds it while it is up; without any there is no answer."""
    data = data_plane(tmp_path)
    data.open(BrokerPlan("broker/0", 0, "one", 9092), "127.0.0.1:1")
    data.open(BrokerPlan("broker/1", 1, "one", 9092), "127.0.0.1:2")
    assert state(data).listening == {"one:9092": "127.0.0.1:1"}

    data.close("broker/0")
    data.open(BrokerPlan("broker/0", 0, "other", 9092), "127.0.0.1:3")

    assert state(data).listening == {"one:9092": "127.0.0.1:1", "other:9092": "127.0.0.1:3"}
    assert state(data).addresses[0] == "other:9092"


def test_loads_go_to_the_served_partitions(tmp_path: Path) -> None:
    """A load has an effect once its topic is served; a deleted topic gets no more messages."""
    data = data_plane(tmp_path)
    effect = FaultEffect(scenario_of(scenario()).plan().timeline[0])
    data.produce("clicks", Load(400_000, 100, effect))
    assert not effect.counts

    data.open(BrokerPlan("broker/0", 0, "one", 9092), "127.0.0.1:1")
    assert effect.counts == {"messages a second": 400}
    data.add("broker/0", [Partition("clicks", "0-2"), Partition("clicks", "0-3")])
    assert {log.rate_per_1000_s for log in state(data).logs.values()} == {100_000}

    data.remove("broker/0", "clicks")
    assert {log.rate_per_1000_s for log in state(data).logs.values()} == {0}
    assert effect.counts == {"messages a second": 400}


# --- who leads ---------------------------------------------------------------------------


class Operator:
    """A ZooKeeper client whose answers arrive when the test says so."""

    def __init__(self) -> None:
        self.connected = True
        self.asked: list[AsyncResult] = []

    def get_async(self, path: str) -> AsyncResult:
        self.asked.append(SequentialThreadingHandler().async_result())
        return self.asked[-1]


def test_the_world_does_not_wait_for_leaders(tmp_path: Path) -> None:
    """Without an answer the leaders stay as they were, and no second request is sent."""
    data, operator = data_plane(tmp_path), Operator()
    leaders = Leaders(operator, "/root", data)
    data.lead({"clicks/0": 1})

    leaders.poll()
    leaders.poll()
    assert len(operator.asked) == len(data.homes["clicks"].replicas) == 4
    assert data.leaders == {"clicks/0": 1}

    first, second, third, last = operator.asked
    first.set_exception(ConnectionLoss())
    second.set((PartitionState(0, (0,), leader_epoch=1).encode(), None))
    third.set_exception(NoNodeError())
    last.set((b"not a state", None))
    leaders.poll()
    assert state(data).leaders == {"clicks/0": 1, "clicks/1": 0}

    operator.connected = False
    leaders.poll()
    assert len(operator.asked) == 4
    assert data.leaders == {"clicks/0": 1, "clicks/1": 0}
