"""Producers and consumers with the requests of 0.8, against simulated brokers that replicate."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.mutants.clients_08 import (
    KeepsItsLeaders,
    RetriesInReverse,
    TakesSilenceForSuccess,
    TakesTimeoutsForSuccess,
)
from tests.sim.test_replication import cluster, details
from watchkeeper import Result, simulate
from watchkeeper.model.actor.effects import now_ms, sleep
from watchkeeper.model.actor.program import NO_PROGRAM
from watchkeeper.model.actor.rpc import CallError
from watchkeeper.model.clients_08.dispatcher import Dispatcher
from watchkeeper.model.clients_08.errors import RefusedByBroker
from watchkeeper.model.clients_08.producer import Producer08
from watchkeeper.model.clients_08.settings import PRODUCER_SETTINGS_08
from watchkeeper.model.clients_08.simple import SimpleConsumer08, WantedMessages
from watchkeeper.model.log.format.requests import EARLIEST, LATEST
from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.properties.control_plane.replication import KEPT
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import ScenarioError, from_text
from watchkeeper.scenarios.plan.messages import NOT_OF_REPLICATED
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.tasks import Tasks
from watchkeeper.sim.world import World
from watchkeeper.sim.world import simulate as run_plan

LOAD = {"at": "3s", "produce": "clicks", "rate": "100/s", "for": "6s"}
CUT_OFF = {"at": "5s", "partition": "broker/0", "from": "brokers", "for": "20s"}
CRASH = {"at": "7s", "crash": "broker/0"}
SYNC = {"request.required.acks": -1, "request.timeout.ms": 500}
ASYNC = {**SYNC, "producer.type": "async", "queue.buffering.max.ms": 200}
MANY = {"message.send.max.retries": 60}


def scenario(
    *timeline: dict[str, Any],
    config: dict[str, Any],
    producers: dict[str, Any] | None = None,
    group: dict[str, Any] | None = None,
    **replication: Any,
) -> dict[str, Any]:
    """A producer and a group of one, on a partition that broker 0 leads first."""
    given = cluster(*timeline, replicas=3, settle="8s", **{"lag_time": "20s", **replication})
    reading = {"consumers": 1, "streams": {"clicks": 1}, "guarantee": "at least once"}
    begins = {"auto.offset.reset": "smallest"}
    return {
        **given,
        "producers": {"shop": {"config": config, **(producers or {})}},
        "groups": {"billing": {**reading, "config": begins, **(group or {})}},
    }


def simulated(*timeline: dict[str, Any], variant: str = "hardened", **given: Any) -> Result:
    """Simulate such a scenario."""
    return simulate(scenario(*timeline, **given), variant=variant, seed=1)


def violated(result: Result) -> set[str]:
    """The names of the properties that a run violates."""
    return set(result.judgement.violated())


def outcomes(result: Result) -> set[str]:
    """The outcomes that the application of the producer has learnt."""
    return {each["outcome"] for each in details(result, EventKind.SENT)}


# --- producers -------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [0, 1, -1, 2])
def test_messages_reach_the_log(acks: int) -> None:
    """In every way of waiting; without a fault each message is there once."""
    result = simulated(LOAD, config={"request.required.acks": acks})
    assert violated(result) == set()
    assert outcomes(result) == {"accepted"}
    stored = [each for detail in details(result, EventKind.STORED) for each in detail["ranges"]]
    assert {each[0] for each in stored} == {"shop-0"}
    assert sum(each[2] - each[1] for each in stored) > 500
    confirmed = details(result, EventKind.ACKNOWLEDGED)
    assert {each["acks"] for each in confirmed} == ({acks} if acks else set())


def test_two_producers_with_keys_share_the_partitions() -> None:
    """Each key has one partition, and no two messages have the same number."""
    given = scenario(LOAD, config=SYNC, producers={"number": 2, "keys": 9})
    given["clusters"]["main"]["topics"]["clicks"]["partitions"] = 4
    result = simulate(given, variant="hardened", seed=1)
    assert violated(result) == set()
    places: dict[str, set[str]] = {}
    numbers: list[int] = []
    for event in result.trace.of_kind(EventKind.STORED):
        for producer, first, end, *_ in event.detail["ranges"]:
            places.setdefault(producer, set()).add(event.detail["partition"])
            numbers += range(first, end)
    assert places.keys() == {"shop-0", "shop-1"}
    assert set.union(*places.values()) == {"0", "1", "2", "3"}
    assert len(numbers) == len(set(numbers)) > 500


def test_a_closed_connection_is_noticed_without_acknowledgements() -> None:
    """A broker that cannot append closes the connection; the next request finds that out."""
    crash = {"at": "5s", "crash": "broker/0"}
    back = {"at": "5500ms", "restart": "broker/0"}
    result = simulated(LOAD, crash, back, config={"request.required.acks": 0, **MANY})
    late = [each for each in result.trace.of_kind(EventKind.STORED) if each.t_us > 8_000_000]
    assert late, "the producer has found the new leader"
    assert violated(result) <= {"delivery to billing"}


MISTAKES = [
    (SYNC, Dispatcher, CUT_OFF, set()),
    (SYNC, TakesTimeoutsForSuccess, CUT_OFF, {"delivery to billing", KEPT.name}),
    ({**ASYNC, **MANY}, Dispatcher, None, set()),
    ({**ASYNC, **MANY}, KeepsItsLeaders, None, {"delivery to billing"}),
    ({**ASYNC, **MANY}, TakesSilenceForSuccess, None, {"delivery to billing"}),
    ({**ASYNC, **MANY}, RetriesInReverse, None, {"order"}),
]


@pytest.mark.parametrize(("config", "dispatcher", "before", "caught"), MISTAKES)
def test_a_mistake_of_a_producer_is_caught(
    config: dict[str, Any],
    dispatcher: type[Dispatcher],
    before: dict[str, Any] | None,
    caught: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leader crashes, in one case after it was cut off from its followers."""
    monkeypatch.setattr(Producer08, "dispatcher_class", dispatcher)
    timeline = [LOAD, CRASH] if before is None else [LOAD, before, CRASH]
    assert violated(simulated(*timeline, config=config)) == caught


# --- settings --------------------------------------------------------------------------

PAUSE = {"at": "5s", "pause": "broker/0", "for": "3500ms"}
QUEUED = {"queue.buffering.max.messages": 50, "queue.enqueue.timeout.ms": 0}
EFFECTS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "request.required.acks": (1, SYNC, CRASH),
    "request.timeout.ms": (300, SYNC, CUT_OFF),
    "producer.type": ("async", SYNC, CRASH),
    "partitioner.class": ("murmur2", SYNC, CRASH),
    "message.send.max.retries": (0, SYNC, CRASH),
    "retry.backoff.ms": (50, SYNC, CRASH),
    "topic.metadata.refresh.interval.ms": (100, SYNC, CRASH),
    "send.buffer.bytes": (1_000, {"request.required.acks": 0}, PAUSE),
    "queue.buffering.max.ms": (70, ASYNC, CRASH),
    "queue.buffering.max.messages": (70, {**ASYNC, **MANY, **QUEUED}, CRASH),
    "queue.enqueue.timeout.ms": (40, {**ASYNC, **MANY, **QUEUED}, CRASH),
    "batch.num.messages": (7, ASYNC, CRASH),
}
"""Setting -> another value than its default, and a run in which that matters."""


def test_each_setting_has_a_run_or_is_refused() -> None:
    """A setting that is added gets a run in which it has an effect."""
    keys = {row.key for row in PRODUCER_SETTINGS_08}
    assert EFFECTS.keys() | NOT_OF_REPLICATED.keys() == keys
    assert not EFFECTS.keys() & NOT_OF_REPLICATED.keys()


@pytest.mark.parametrize("key", EFFECTS)
def test_a_setting_has_an_effect(key: str) -> None:
    """Another value makes another run."""
    value, config, fault = EFFECTS[key]

    def fingerprint(**more: Any) -> str:
        load = {**LOAD, "rate": "800/s"} if fault is PAUSE else LOAD
        given = scenario(load, fault, config={**config, **more}, producers={"keys": 5})
        given["clusters"]["main"]["topics"]["clicks"]["partitions"] = 2
        plan = from_text("x.yaml", json.dumps(given)).plan("hardened")
        return run_plan(plan, 1).trace.fingerprint

    assert fingerprint(**{key: value}) != fingerprint()


# --- what is refused -------------------------------------------------------------------

REFUSED = [
    ({"producers": {"shop": {"balanced": True}}}, "sends to the leaders"),
    ({"producers": {"shop": {"config": {"compression.codec": "gzip"}}}}, "single messages"),
    ({"producers": {"shop": {"config": {"client.id": "me"}}}}, "keep no log of requests"),
    ({"producers": {"shop": {"config": {"metadata.broker.list": "a:1"}}}}, "leave it out"),
    ({"producers": {"shop": {"config": {"queue.time": 5}}}}, "queue.time"),
    ({"producers": {"shop": {"config": {"request.required.acks": 99_999}}}}, "at most 32767"),
    ({"producers": {"s" * 80: {}}}, "longer than"),
    ({"timeline": [{**LOAD, "acks": "all"}]}, "request.required.acks"),
    ({"timeline": [{**LOAD, "size": "1kB"}]}, "one size"),
    ({"producers": {}, "timeline": [{**LOAD, "size": "1kB"}]}, "one size"),
    ({"producers": {"broker": {}}}, "reserved word"),
    ({"groups": {"billing": {"config": {"fetch.min.bytes": 5}}}}, "as in 0.8"),
]


@pytest.mark.parametrize(("change", "why"), REFUSED)
def test_what_has_no_effect_is_refused(change: dict[str, Any], why: str) -> None:
    """With the field, and what to do."""
    given = scenario(LOAD, config={})
    for group in change.get("groups", {}).values():
        group |= {"consumers": 1, "streams": {"clicks": 1}}
    with pytest.raises(ScenarioError, match=why):
        simulate({**given, **change}, variant="hardened", seed=1)


def test_an_offsets_topic_that_no_group_uses_is_refused() -> None:
    """Its settings would have no effect."""
    with pytest.raises(ScenarioError, match="offsets_topic: has no effect: no group"):
        simulated(LOAD, config={}, offsets_topic={"partitions": 1})


@pytest.mark.parametrize("field", ["lag_time", "fetch_wait", "leader_rebalance"])
def test_times_of_replication_are_refused_in_units(field: str) -> None:
    """As in the file, and not in the microseconds of the plan."""
    with pytest.raises(ScenarioError, match=f"{field}: '0s' is too short; expected at least 1ms"):
        simulated(LOAD, config={}, **{field: "0s"})


# --- consumers -------------------------------------------------------------------------


def test_fetches_as_in_08_wait_for_enough_bytes() -> None:
    """A fetch is answered when there is enough, or when the time is over."""

    def rounds(**config: Any) -> int:
        group = {
            "fetches": "as in 0.8",
            "config": {"auto.offset.reset": "smallest", **config},
        }
        result = simulated(LOAD, config=SYNC, group=group)
        assert violated(result) == set()
        return len(list(result.trace.of_kind(EventKind.CONSUMED)))

    every = rounds()
    enough = {"fetch.min.bytes": 20_000, "fetch.wait.max.ms": 5_000}
    assert 0 < rounds(**enough) < rounds(**{**enough, "fetch.wait.max.ms": 300}) < every


def read(world: World, body: Coroutine[Any, Any, None]) -> None:
    """Run a simple consumer beside the processes of a world."""
    node = Node(world.kernel, "reader", NO_PROGRAM)
    node.begin()
    Tasks(node, world.calls).start("read", body)
    world.run()


def test_a_simple_consumer_follows_the_errors_of_brokers() -> None:
    """Offsets, metadata, a wait for bytes, another leader's partition, and a dead broker."""
    seen: dict[str, Any] = {}
    brokers = [f"main-b{number}.example:9092" for number in range(3)]

    async def body() -> None:
        await sleep(6_000)
        old = (await SimpleConsumer08(brokers[2]).leaders("clicks"))[0]
        leader = SimpleConsumer08(old)
        [end] = await leader.offsets_before("clicks", 0, LATEST, 1)
        seen["begin"] = await leader.offsets_before("clicks", 0, EARLIEST, 1)
        [messages] = await leader.fetch([WantedMessages("clicks", 0, end - 10, 100_000)])
        seen["offsets"] = [each.offset - end for each in messages][:10]
        await sleep(7_000)
        for broker in brokers:
            try:
                await SimpleConsumer08(broker).fetch([WantedMessages("clicks", 0, 0, 1_000)])
            except RefusedByBroker as error:
                seen.setdefault("codes", []).append(error.code)
            except CallError:
                seen["dead"] = broker
        new = (await SimpleConsumer08(brokers[2]).leaders("clicks"))[0]
        leader = SimpleConsumer08(new)
        [end] = await leader.offsets_before("clicks", 0, LATEST, 1)
        begun = await now_ms()
        wanted = [WantedMessages("clicks", 0, end - 1, 100_000)]
        [last] = await leader.fetch(wanted, max_wait_ms=700, min_bytes=5_000)
        seen["waited"], seen["last"] = await now_ms() - begun, len(last)
        seen["leaders"] = (old, new)

    given = scenario(LOAD, {"at": "8s", "crash": "broker/0"}, config=SYNC)
    read(World(from_text("x.yaml", json.dumps(given)).plan("hardened"), 1), body())
    old, new = seen["leaders"]
    assert old == seen["dead"] == brokers[0] != new
    assert seen["begin"] == (0,)
    assert seen["offsets"] == list(range(-10, 0))
    assert seen["codes"] == [PartitionError.NOT_LEADER_FOR_PARTITION]
    assert seen["last"] == 1
    assert 700 <= seen["waited"] < 800
