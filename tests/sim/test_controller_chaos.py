"""Brokers and their controller under random faults: `hardened` has to hold, `kafka_08` does not.

A run takes a few hundredths of a second; `WATCHKEEPER_SEEDS=1000` makes a soak of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.drawn_runs import found, holds
from tests.support.seeds import SEEDS
from watchkeeper.model.controller.state_machines.variants import (
    CONTROLLERS,
    HARDENED,
    EpochRaised,
    LastInSync,
    VanishedTopics,
)
from watchkeeper.model.properties.control_plane.controllers import ACTING, DEPOSED, IN_SYNC, LED

RUNS = 10 * SEEDS
BROKERS = ("broker/0", "broker/1", "broker/2")
PURPOSES = ("elect", "raise epoch", "create state", "write state", "read cluster", "register")

Entry = dict[str, Any]


def _crash(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    back_ms = at_ms + draw.randint(50, 4000)
    return [{"at": f"{at_ms}ms", "crash": broker}, {"at": f"{back_ms}ms", "restart": broker}]


def _expire(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    return [{"at": f"{at_ms}ms", "expire": broker}]


def _disconnect(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    return [{"at": f"{at_ms}ms", "disconnect": broker, "for": f"{draw.randint(10, 900)}ms"}]


def _pause(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    return [{"at": f"{at_ms}ms", "pause": broker, "for": f"{draw.randint(100, 4000)}ms"}]


def _cut_off(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    lasts = f"{draw.randint(100, 3000)}ms"
    return [{"at": f"{at_ms}ms", "partition": broker, "from": "zookeeper", "for": lasts}]


def _lose(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    """Lose a request or a reply of a broker, whatever its step is, and perhaps pause it."""
    step = {
        "node": draw.choice(BROKERS),
        "purpose": draw.choice(PURPOSES),
        "nth": draw.randint(1, 5),
    }
    before = {**step, "when": "before"}
    entries: list[Entry] = [{"on": step, "lose": "reply"}]
    if draw.random() < 0.5:
        late = f"{draw.randint(1, 3000)}ms"
        entries = [{"on": before, "lose": "request", "lands_after": late}]
    if draw.random() < 0.3:
        lasts = f"{draw.randint(100, 4000)}ms"
        entries.append({"on": before, "pause": step["node"], "for": lasts})
    return entries


def _create_topic(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    partitions = draw.randint(1, 3)
    return [{"at": f"{at_ms}ms", "create_topic": f"t{at_ms}", "partitions": partitions}]


def _add_partitions(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    return [{"at": f"{at_ms}ms", "add_partitions": "clicks", "partitions": draw.randint(3, 6)}]


def _recreate(draw: random.Random, at_ms: int, broker: str) -> list[Entry]:
    again_ms = at_ms + draw.randint(0, 1500)
    return [
        {"at": f"{at_ms}ms", "delete_topic": "clicks"},
        {"at": f"{again_ms}ms", "create_topic": "clicks", "partitions": 2},
    ]


FAULTS: tuple[Callable[[random.Random, int, str], list[Entry]], ...] = (
    _crash,
    _expire,
    _disconnect,
    _pause,
    _cut_off,
    _lose,
    _create_topic,
    _add_partitions,
    _recreate,
)


def drawn(seed: int) -> dict[str, Any]:
    """Return a scenario with some faults, each soon after the one before."""
    draw = random.Random(seed)
    cluster = {
        "zookeeper": {"servers": draw.choice([1, 3])},
        "brokers": 3,
        "layout": "0.8",
        "leaders": "controller",
        "session_timeout": "1s",
        "unclean_leader_election": draw.random() < 0.5,
        "topics": {"clicks": {"partitions": 3, "replicas": 2}},
    }
    timeline: list[Entry] = []
    at_ms = 4000
    for _ in range(draw.randint(2, 7)):
        at_ms += draw.randint(100, 4000)
        timeline += draw.choice(FAULTS)(draw, at_ms, draw.choice([*BROKERS, "controller"]))
    return {
        "name": "chaos",
        "about": "random faults",
        "clusters": {"main": cluster},
        "groups": {},
        "timeline": timeline,
        "settle": "12s",
    }


def test_hardened_holds() -> None:
    holds(drawn, "hardened", range(RUNS), most_refused=0.2)


def test_kafka_08_is_caught() -> None:
    assert {LED.name, IN_SYNC.name} <= found(drawn, "kafka_08", range(100))


@pytest.mark.parametrize(
    ("answer", "seeds", "caught"),
    [
        ({"epoch_raised": EpochRaised.AFTER_ELECTION}, range(40), ACTING),
        ({"last_in_sync": LastInSync.KEPT_IF_CLEAN}, range(10), IN_SYNC),
        ({"vanished_topics": VanishedTopics.ASSIGNMENT}, range(5), LED),
        ({"fenced": False}, range(3825, 3826), DEPOSED),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_answer_of_kafka_08_in_hardened_is_caught(
    answer: dict[str, Any], seeds: range, caught: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So each of these differences has a reason that a run shows."""
    monkeypatch.setitem(CONTROLLERS, "hardened", replace(HARDENED, **answer))
    assert caught.name in found(drawn, "hardened", seeds)
