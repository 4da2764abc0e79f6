"""Brokers that leave and start again while messages are written to them."""

from __future__ import annotations

import pytest

from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.scenarios import from_text
from watchkeeper.sim.world import Simulated, simulate

LOADED = """
name: loaded
about: a broker under load
clusters:
  main:
    zookeeper: {servers: 1}
    brokers: 2
    storage: {config: {log.flush.interval: 500, log.default.flush.scheduler.interval.ms: 50}}
    topics: {clicks: {partitions_per_broker: 1}}
timeline:
  - {at: 1s, produce: clicks, rate: 20000/s, size: 1kB, for: 3s}
"""
MOMENTS_MS = [2000 + number * 7 + number % 5 for number in range(40)]


def loaded(*actions: str) -> Simulated:
    """Run a broker under load, with these actions."""
    text = LOADED + "".join(f"  - {{{action}}}\n" for action in actions) + "settle: 2s\n"
    return simulate(from_text("loaded.yaml", text).plan("hardened"), 1)


def opened(trace: Trace) -> list[dict[str, object]]:
    """What each start of the first broker found in its log."""
    return [
        dict(event.detail)
        for event in trace.of_kind(EventKind.LOG_OPENED)
        if event.node == "broker/0"
    ]


def stored_end(trace: Trace, before_us: int) -> int:
    """The end of the first broker's log at a moment, by what it said it stored."""
    return max(
        range_[4]
        for event in trace.of_kind(EventKind.STORED)
        if event.node == "broker/0" and event.t_us < before_us
        for range_ in event.detail["ranges"]
    )


@pytest.mark.parametrize("left_ms", MOMENTS_MS)
def test_a_broker_that_leaves_under_load_closes_its_log(left_ms: int) -> None:
    """At any moment of an append or a flush: nothing stored is lost, nothing is recovered."""
    run = loaded(f"at: {left_ms}ms, leave: broker/0", "at: 3s, start: broker/0")
    assert all(effect.is_real for effect in run.effects)
    (log,) = opened(run.trace)
    assert log["clean"]
    assert log["end"] == stored_end(run.trace, 3_000_000)


@pytest.mark.parametrize("moved_ms", MOMENTS_MS)
def test_a_broker_that_moves_under_load_starts_again(moved_ms: int) -> None:
    """It starts once its log is closed, and not while it is still being closed."""
    run = loaded(f"at: {moved_ms}ms, move: broker/0, to: h9")
    assert [effect.counts.get("brokers moved") for effect in run.effects][1:] == [1]
    (log,) = opened(run.trace)
    assert log["clean"]
    started = [
        event for event in run.trace.of_kind(EventKind.STARTED) if event.node == "broker/0"
    ]
    assert started[-1].detail["address"].startswith("h9:")


# --- the order of what a producer sends --------------------------------------------------

RETURNING = """
name: returning
about: a broker dies and comes back while messages wait for it
clusters:
  main:
    zookeeper: {{servers: 1}}
    brokers: 2
    storage: {{config: {{log.flush.interval: 500}}}}
    topics: {{clicks: {{partitions_per_broker: 1}}}}
producers:
  web: {{config: {{{config}}}}}
groups:
  billing:
    consumers: 1
    streams: {{clicks: 1}}
    config: {{refresh.leader.backoff.ms: 200, zookeeper.session.timeout.ms: 2000}}
timeline:
  - {{at: 2s, produce: clicks, rate: {rate}/s, size: 1kB, for: 10s}}
  - {{at: 4s, {fault}: broker/0}}
  - {{at: 6500ms, start: broker/0}}
settle: 12s
"""
BATCHING = (
    "producer.type: async, queue.time: 200, batch.size: 50, queue.size: 20000, "
    "reconnect.interval: 200"
)
"""A second sender beside the first, and connections that are renewed again and again."""
RENEWING = "reconnect.interval: 2000"
KEEPING = {"queued": (BATCHING, 2000), "at once": (RENEWING, 20_000)}


def returning(config: str, rate: int, fault: str, variant: str, seed: int) -> set[str]:
    """Run a producer whose broker comes back; return what is violated."""
    text = RETURNING.format(config=config, rate=rate, fault=fault)
    plan = from_text("returning.yaml", text).plan(variant)
    run = simulate(plan, seed)
    findings = judge(plan, run.trace, run.effects).findings
    return {finding.claim.name for finding in findings if finding.verdict is Verdict.VIOLATED}


@pytest.mark.parametrize("fault", ["crash", "crash_host", "leave"])
@pytest.mark.parametrize("name", KEEPING)
def test_a_producer_keeps_the_order_of_its_messages(name: str, fault: str) -> None:
    """Whether a connection is renewed, or a broker comes back to what waits for it."""
    assert returning(*KEEPING[name], fault, "hardened", seed=0) == set()


@pytest.mark.parametrize("name", KEEPING)
def test_the_shipped_producer_does_not(name: str) -> None:
    """It renews connections and adds senders without waiting for those before."""
    assert "order" in returning(*KEEPING[name], "crash", "kafka_07", seed=0)
