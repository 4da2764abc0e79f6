"""Clusters under random faults, drawn by the strategies that users get.

`hardened` has to stand whatever is drawn. The other variants have to be caught, and what
catches them has to shrink to something a person can read.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.support.seeds import SEEDS
from watchkeeper import Result, Verdict, simulate
from watchkeeper.api import strategies

EXAMPLES = 3 * SEEDS
"""How many scenarios to draw."""


# --- hardened stands -------------------------------------------------------------------


@settings(max_examples=EXAMPLES)
@given(strategies.scenarios())
def test_hardened_stands(scenario: dict[str, Any]) -> None:
    """Nothing is violated, whatever goes wrong."""
    result = simulate(scenario)
    assert not result.violated, result


OF_STEPS = ("lost registration", "late request", "pause amid join", "lost twice")


@settings(max_examples=EXAMPLES)
@given(strategies.scenarios(kinds=OF_STEPS))
def test_hardened_stands_faults_of_steps(scenario: dict[str, Any]) -> None:
    """Lost registrations, late requests, pauses amid a join, partitions lost twice."""
    result = simulate(scenario)
    assert not result.violated, result


@settings(max_examples=EXAMPLES // 2)
@given(strategies.scenarios(most_faults=1), st.integers(0, 3))
def test_what_is_unknown_is_explained(scenario: dict[str, Any], seed: int) -> None:
    """A run is unknown only where a fault found no process, and then the report says so."""
    result = simulate(scenario, seed=seed)
    if result.verdict is Verdict.UNKNOWN:
        assert any(not effect.is_real for effect in result.effects), result


class Cluster(RuleBasedStateMachine):
    """A cluster that things happen to, one after the other; at the end it runs.

    The machine knows who is up, so that what it draws makes sense: it kills what runs and
    starts what does not, and lets time pass or not in between.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 5_000
        self.timeline: list[dict[str, Any]] = []
        self.up: set[str] = set()
        self.down: set[str] = set()
        self.layout = "0.7"
        self.brokers = 1
        self.consumers = 1

    @initialize(
        layout=st.sampled_from(["0.7", "0.8"]),
        brokers=st.integers(1, 3),
        consumers=st.integers(1, 4),
    )
    def begin(self, layout: str, brokers: int, consumers: int) -> None:
        """A cluster of some size."""
        self.layout, self.brokers, self.consumers = layout, brokers, consumers
        self.up = {f"broker/{number}" for number in range(brokers)}
        self.up |= {f"group/{number}" for number in range(consumers)}

    def happens(self, **entry: Any) -> None:
        """Something happens now."""
        self.timeline.append({"at": f"{self.now_ms}ms", **entry})
        self.now_ms += 1

    @rule(ms=st.integers(1, 8_000))
    def time_passes(self, ms: int) -> None:
        """Nothing happens for a while."""
        self.now_ms += ms

    @precondition(lambda self: self.up)
    @rule(data=st.data(), how=st.sampled_from(["crash", "crash_host", "leave"]))
    def goes(self, data: st.DataObject, how: str) -> None:
        """A process dies or leaves."""
        who = data.draw(st.sampled_from(sorted(self.up)))
        self.happens(**{how: who})
        self.up.remove(who)
        self.down.add(who)

    @precondition(lambda self: self.down)
    @rule(data=st.data())
    def comes(self, data: st.DataObject) -> None:
        """A process that is down starts."""
        who = data.draw(st.sampled_from(sorted(self.down)))
        self.happens(start=who)
        self.down.remove(who)
        self.up.add(who)

    @precondition(lambda self: self.up)
    @rule(
        data=st.data(),
        what=st.sampled_from(["pause", "partition", "disconnect"]),
        ms=st.integers(100, 5_000),
    )
    def suffers(self, data: st.DataObject, what: str, ms: int) -> None:
        """A process stands still or is cut off, and nothing else happens meanwhile."""
        who = data.draw(st.sampled_from(sorted(self.up)))
        self.happens(**{what: who, "for": f"{ms}ms"})
        self.now_ms += ms

    @precondition(lambda self: self.up)
    @rule(data=st.data())
    def expires(self, data: st.DataObject) -> None:
        """A session ends."""
        self.happens(expire=data.draw(st.sampled_from(sorted(self.up))))

    @rule(server=st.integers(1, 3), ms=st.integers(100, 5_000))
    def server_suffers(self, server: int, ms: int) -> None:
        """A server of the ensemble stands still."""
        self.happens(pause=f"zookeeper/{server}", **{"for": f"{ms}ms"})
        self.now_ms += ms

    def scenario(self) -> dict[str, Any]:
        """All of it as a scenario."""
        return {
            "name": "machine",
            "about": "what a state machine drew",
            "clusters": {
                "main": {
                    "layout": self.layout,
                    "brokers": self.brokers,
                    "topics": {"clicks": {"partitions_per_broker": 2}},
                }
            },
            "groups": {
                "group": {
                    "consumers": self.consumers,
                    "streams": {"clicks": 1},
                    "config": {
                        "zookeeper.session.timeout.ms": 2000,
                        "auto.commit.interval.ms": 1000,
                    },
                }
            },
            "timeline": [strategies.LOAD, *self.timeline],
            "settle": "20s",
        }

    def teardown(self) -> None:
        """Run what was drawn."""
        result = simulate(self.scenario())
        assert not result.violated, result


Cluster.TestCase.settings = settings(
    max_examples=EXAMPLES // 2,
    stateful_step_count=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)
TestCluster = Cluster.TestCase


# --- the others are caught -------------------------------------------------------------

CAUGHT = {
    ("kafka_07", "single ownership"): {"kinds": ("pause", "expire"), "layouts": ("0.7",)},
    ("kafka_08", "single ownership"): {"kinds": ("pause", "expire"), "layouts": ("0.8",)},
    ("kafka_08", "monotone offsets"): {"kinds": ("pause", "expire"), "layouts": ("0.8",)},
    ("documented", "full cover"): {"layouts": ("0.7",)},
    ("documented_ceil", "balance"): {"layouts": ("0.7",)},
}
"""Variant and property -> from what a run is drawn that violates it."""


@pytest.mark.parametrize(("variant", "name"), CAUGHT)
def test_shipped_variants_are_caught(variant: str, name: str) -> None:
    """Hypothesis finds a run that violates the property, and shrinks it."""
    found = smallest(variant, name, **CAUGHT[variant, name])
    faults = [
        entry for entry in found["timeline"] if not {"produce", "start", "restart"} & entry.keys()
    ]
    assert len(faults) <= 1, found
    assert found["groups"]["group"]["consumers"] <= 3, found
    assert name in simulate(found).violated


def smallest(variant: str, name: str, **drawing: Any) -> dict[str, Any]:
    """The smallest scenario that is found in which a variant violates a property."""
    found: dict[str, Any] = find(
        strategies.scenarios(variant=variant, **drawing),
        lambda scenario: name in run(scenario).violated,
        settings=settings(
            max_examples=300,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    return found


def run(scenario: dict[str, Any]) -> Result:
    """Run what was drawn."""
    return simulate(scenario)


def test_drawn_scenarios_are_valid_and_shrink_to_nothing() -> None:
    """The smallest scenario of all has one consumer, one broker and no faults."""
    least = find(strategies.scenarios(), lambda scenario: True)
    assert least["timeline"] == [strategies.LOAD]
    assert least["groups"]["group"]["consumers"] == 1
    assert least["clusters"]["main"]["brokers"] == 1
    assert simulate(least).holds
