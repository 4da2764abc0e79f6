"""What the registry says of a partition's leader while brokers die and come back (0.8)."""

from __future__ import annotations

import json
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import from_text
from watchkeeper.sim.world import simulate

SCENARIO = """
name: leaders
about: brokers die and come back
clusters:
  main:
    zookeeper: {{servers: 1}}
    layout: "0.8"
    brokers: 2
    session_timeout: 1s
    topics: {{clicks: {{partitions: 1, replicas: 2}}}}
timeline:
  - {{at: 3s, crash: broker/{dies}}}
  - {{at: 8s, restart: broker/{dies}}}
settle: 5s
"""


def states(dies: int) -> list[dict[str, Any]]:
    """The states that are written of the partition while one broker dies and comes back."""
    plan = from_text("leaders.yaml", SCENARIO.format(dies=dies)).plan("hardened")
    return [
        json.loads(change[3])
        for event in simulate(plan, 0).trace.of_kind(EventKind.APPLIED)
        for change in event.detail["did"]
        if change[1].endswith("/state") and change[3]
    ]


def test_the_state_is_written_when_the_leader_changes() -> None:
    """With the live replicas and the next epoch; not again when the old leader returns."""
    leader = states(dies=0)[-2]["leader"]
    before, after = states(dies=leader)[-2:]

    assert (after["leader"], after["isr"]) == (1 - leader, [1 - leader])
    assert after["leader_epoch"] == before["leader_epoch"] + 1
    assert after["controller_epoch"] == before["controller_epoch"] == 1


def test_the_state_is_not_written_when_another_replica_dies_or_comes_back() -> None:
    """Its `isr` names a replica that is dead meanwhile."""
    leader = states(dies=0)[-2]["leader"]
    last = states(dies=1 - leader)[-1]

    assert last["leader"] == leader
    assert sorted(last["isr"]) == [0, 1]
