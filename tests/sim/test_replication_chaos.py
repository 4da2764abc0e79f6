"""Brokers that replicate, under random faults and requests: `hardened` has to hold.

A run takes some tenths of a second; `WATCHKEEPER_SEEDS=1000` makes a soak of it. Hosts keep
their power, and no election is unclean: otherwise confirmed messages may be lost by design.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.drawn_runs import found, holds
from tests.support.seeds import SEEDS
from watchkeeper import simulate
from watchkeeper.model.controller.state_machines.variants import (
    CONTROLLERS,
    DeadTargets,
    VanishedTopics,
)
from watchkeeper.model.controller.state_machines.variants import HARDENED as CONTROLLER
from watchkeeper.model.properties.control_plane.controllers import LED
from watchkeeper.model.properties.control_plane.replication import (
    CAUGHT_UP,
    IN_ISR,
    KEPT,
    UNCHANGED,
)
from watchkeeper.model.properties.verdicts import Property
from watchkeeper.model.replication import leader
from watchkeeper.model.replication.replica import Replica
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.truncation import HIGH_WATERMARK
from watchkeeper.model.replication.variants import HARDENED, REPLICATIONS

RUNS = 2 * SEEDS
BROKERS = ("broker/0", "broker/1", "broker/2", "broker/3")
PURPOSES = ("write state", "write isr", "reassign", "elect preferred", "delete topic", "register")

Entry = dict[str, Any]


def _crash(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    back_ms = at_ms + draw.randint(50, 5000)
    return [{"at": f"{at_ms}ms", "crash": broker}, {"at": f"{back_ms}ms", "restart": broker}]


def _leave(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    back_ms = at_ms + draw.randint(1000, 5000)
    return [{"at": f"{at_ms}ms", "leave": broker}, {"at": f"{back_ms}ms", "restart": broker}]


def _expire(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    return [{"at": f"{at_ms}ms", "expire": broker}]


def _pause(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    return [{"at": f"{at_ms}ms", "pause": broker, "for": f"{draw.randint(100, 5000)}ms"}]


def _cut_off(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    """Cut a broker off from ZooKeeper, or from another broker."""
    lasts = f"{draw.randint(100, 5000)}ms"
    other = draw.choice(["zookeeper", *(name for name in BROKERS if name != broker)])
    way = draw.choice(["both", "to", "from"])
    cut: Entry = {"at": f"{at_ms}ms", "partition": broker, "from": other, "for": lasts}
    return [{**cut, "direction": way}]


def _lose(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    """Lose a request or a reply, whichever broker is the controller or a leader then."""
    step = {
        "node": draw.choice([*BROKERS, "controller", "leader of clicks/0"]),
        "purpose": draw.choice(PURPOSES),
        "nth": draw.randint(1, 3),
    }
    before = {**step, "when": "before"}
    if draw.random() < 0.5:
        return [{"on": step, "lose": "reply"}]
    return [{"on": before, "lose": "request", "lands_after": f"{draw.randint(1, 3000)}ms"}]


def _crash_at_step(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    step = {
        "node": "controller",
        "purpose": draw.choice(PURPOSES),
        "nth": draw.randint(1, 4),
        "when": draw.choice(["before", "after_reply"]),
    }
    back = {"at": f"{at_ms + draw.randint(1000, 6000)}ms", "restart": "controller"}
    return [{"on": step, "crash": "controller"}, back]


def _move(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    targets = draw.sample(range(4), draw.randint(2, 3))
    row = {"topic": "clicks", "partition": draw.randint(0, 1), "replicas": targets}
    data = json.dumps({"version": 1, "partitions": [row]})
    return [{"at": f"{at_ms}ms", "write_znode": "/admin/reassign_partitions", "data": data}]


def _prefer(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    rows = [{"topic": "clicks", "partition": index} for index in (0, 1)]
    data = json.dumps({"version": 1, "partitions": rows})
    path = "/admin/preferred_replica_election"
    return [{"at": f"{at_ms}ms", "write_znode": path, "data": data}]


def _delete(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    return [{"at": f"{at_ms}ms", "write_znode": "/admin/delete_topics/views", "data": ""}]


FAULTS: tuple[Callable[[random.Random, int, str], list[Entry]], ...] = (
    _crash,
    _leave,
    _expire,
    _pause,
    _cut_off,
    _lose,
    _crash_at_step,
    _move,
    _prefer,
    _delete,
)


def drawn(seed: int) -> dict[str, Any]:
    """Return a scenario with some faults and requests, each soon after the one before."""
    draw = random.Random(seed)
    cluster = {
        "zookeeper": {"servers": draw.choice([1, 3])},
        "brokers": 4,
        "layout": "0.8",
        "leaders": "controller",
        "session_timeout": "1s",
        "unclean_leader_election": False,
        "replication": {
            "lag_time": "1s",
            "controlled_shutdown": draw.random() < 0.5,
            "isr_in_metadata": True,
        },
        "topics": {
            "clicks": {"partitions": 2, "replicas": 3},
            "views": {"partitions": 1, "replicas": 2},
        },
    }
    timeline: list[Entry] = [
        {"at": "2s", "produce": topic, "rate": "30/s", "acks": "all", "for": "20s"}
        for topic in ("clicks", "views")
    ]
    at_ms = 4000
    for _ in range(draw.randint(2, 6)):
        at_ms += draw.randint(100, 3000)
        timeline += draw.choice(FAULTS)(draw, at_ms, draw.choice([*BROKERS, "controller"]))
    return {
        "name": "chaos",
        "about": "random faults",
        "clusters": {"main": cluster},
        "groups": {
            "billing": {
                "consumers": 2,
                "streams": {"clicks": 1},
                "config": {"auto.offset.reset": "smallest"},
                "guarantee": "measured",
            }
        },
        "timeline": timeline,
        "settle": "15s",
    }


def test_hardened_holds() -> None:
    holds(drawn, "hardened", range(RUNS), most_refused=0.3)


@pytest.mark.parametrize(
    ("table", "answer", "scenario", "claims"),
    [
        (
            REPLICATIONS,
            replace(HARDENED, truncation=HIGH_WATERMARK),
            "leader-and-successor-crash",
            {IN_ISR, KEPT, UNCHANGED},
        ),
        (
            CONTROLLERS,
            replace(CONTROLLER, dead_targets=DeadTargets.DROPPED),
            "partition-moves-controller-crashes",
            {CAUGHT_UP},
        ),
        (
            CONTROLLERS,
            replace(CONTROLLER, vanished_topics=VanishedTopics.ASSIGNMENT),
            "topic-deleted-by-hand",
            {LED},
        ),
    ],
    ids=["truncation", "dead targets", "vanished topics"],
)
def test_an_answer_of_kafka_08_in_hardened_is_caught(
    table: dict[str, Any],
    answer: Any,
    scenario: str,
    claims: set[Property],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So each of these differences has a reason that a shipped scenario shows."""
    monkeypatch.setitem(table, "hardened", answer)
    violated_names = simulate(scenario, variant="hardened", seed=1).judgement.violated()
    assert {claim.name for claim in claims} <= set(violated_names)


def _joins_at_once(all_of: Replicas, replica: Replica, end: int) -> bool:
    """A follower joins the ISR with whatever it has."""
    return True


async def _raise_alone(all_of: Replicas, replica: Replica) -> None:
    """Raise the high watermark to the end of the leader's own log."""
    isr, replica.isr = replica.isr, (all_of.me.broker_id,)
    await RAISE(all_of, replica)
    replica.isr = isr


RAISE = Replicas.raise_high_watermark


@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [(leader, "_may_join", _joins_at_once), (Replicas, "raise_high_watermark", _raise_alone)],
    ids=["joins at once", "commits alone"],
)
def test_a_mistake_in_replication_is_caught(
    module: Any, name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, wrong)
    assert IN_ISR.name in found(drawn, "hardened", range(6))
