"""Under all faults of sound clients, no message is lost, and nothing starves for good."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.messages.cluster import Cluster, slowly
from tests.support.seeds import SEEDS
from watchkeeper.model.plan.delivery_guarantee import DeliveryGuarantee
from watchkeeper.model.properties.verdicts import Verdict

NAMES = ("c0", "c1", "c2")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from(NAMES)),
        st.tuples(st.just("leave"), st.sampled_from(NAMES)),
        st.tuples(st.just("crash"), st.sampled_from(NAMES)),
        st.tuples(st.just("expire"), st.sampled_from(NAMES)),
        st.tuples(st.just("break"), st.sampled_from(NAMES)),
        st.tuples(st.just("restart"), st.sampled_from(("b0", "b1"))),
        st.tuples(st.just("write"), st.integers(1, 30)),
        st.tuples(st.just("wait"), st.integers(1, 400)),
    ),
    max_size=20,
)
LEAST = DeliveryGuarantee("at least once", ("clicks",))


class Chaos:
    """A cluster to which one thing happens after the other."""

    def __init__(self, seed: int) -> None:
        self.cluster = Cluster(brokers=2, topics={"clicks": 2}, seed=seed)
        self.world = self.cluster.world
        self.up: dict[str, None] = {}

    def does(self, word: str, what: Any) -> None:
        """Let one thing happen, if it can."""
        happens: dict[str, Any] = {
            "leave": self.leave,
            "crash": self.crash,
            "expire": self.expire,
            "break": self.disturb,
            "restart": self.restart,
            "write": self.write,
            "wait": self.world.run,
        }
        if what in NAMES and what not in self.up:
            self.join(what)
        elif word != "join":
            happens[word](what)

    def join(self, name: str) -> None:
        self.up[name] = None
        self.cluster.member(name, {"clicks": 1}, slowly(3), fetch_size=200, queuedchunks_max=2)

    def leave(self, name: str) -> None:
        del self.up[name]
        process = self.world.processes[name]
        process.start(self.cluster.members[name].shutdown())
        self.world.run(1500)
        if process.ended is None and process.session in self.world.sessions:
            self.crash_process(name)

    def crash(self, name: str) -> None:
        del self.up[name]
        self.crash_process(name)

    def crash_process(self, name: str) -> None:
        """Kill it; its session ends some time later."""
        process = self.world.processes[name]
        self.world.kill(process)
        self.world.run(300)
        if process.session in self.world.sessions:
            self.world.expire(process)

    def expire(self, name: str) -> None:
        process = self.world.processes[name]
        if process.session in self.world.sessions:
            self.world.expire(process)

    def disturb(self, name: str) -> None:
        process = self.world.processes[name]
        if process.session in self.world.sessions and process.is_connected:
            self.world.disconnect(process)
            self.world.run(70)
            self.world.reconnect(process)

    def restart(self, name: str) -> None:
        was = self.world.processes[name]
        self.world.kill(was)
        self.world.run(200)
        if was.session in self.world.sessions:
            self.world.expire(was)
        self.cluster.start_broker(int(name[1:]), was=was)
        self.world.run(150)

    def write(self, count: int) -> None:
        for broker in range(2):
            self.cluster.write("clicks", broker, count % 2, count)


@settings(max_examples=2 * SEEDS, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, st.integers(0, 10_000))
def test_nothing_is_lost(steps: list[tuple[str, Any]], seed: int) -> None:
    """Members join, leave, crash and lose sessions and connections; brokers restart."""
    chaos = Chaos(seed)
    chaos.join("c1")
    chaos.write(20)
    for word, what in steps:
        chaos.does(word, what)
    for name in NAMES:
        if name not in chaos.up:
            chaos.join(name)
            break
    chaos.world.run(20_000)
    found = {finding.claim.name: finding for finding in chaos.cluster.findings(LEAST)}

    assert chaos.cluster.violated(LEAST) == []
    assert found["delivery to group"].verdict is Verdict.HOLDS
    assert "not yet read" not in found["delivery to group"].evidence
