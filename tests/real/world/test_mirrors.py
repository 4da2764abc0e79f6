"""Live mirrors: processes that read one cluster, send to another, and are killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.real.world.test_runs import SHORT_S
from tests.support.live_zookeeper import lived
from watchkeeper import simulate
from watchkeeper.api.result import Result, plain_report
from watchkeeper.model.judgement.judge import Judgement
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace

Identity = tuple[str, int]
QUICK = {
    "zookeeper.session.timeout.ms": 1000 * SHORT_S,
    "auto.commit.interval.ms": 500,
    "auto.offset.reset": "smallest",
    "refresh.leader.backoff.ms": 100,
    "rebalance.backoff.ms": 200,
}
WAITS = {"producer.type": "async", "queue.time": 6000, "batch.size": 1000}
"""Messages wait for 6 s, so all that a mirror has read are waiting when it crashes or leaves:
about 3 s after the first one. There are too few for a batch.
"""


def cluster(*topics: str) -> dict[str, Any]:
    return {
        "zookeeper": {"servers": 1, "tick": "200ms"},
        "session_timeout": f"{SHORT_S}s",
        "brokers": 1,
        "storage": {"config": {"log.flush.interval": 20}},
        "topics": {topic: {"partitions_per_broker": 1} for topic in topics},
    }


def mirror(source: str, topic: str, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"consumers": 1, "config": QUICK, **more}
    return {"from": [source], "to": "all", "topics": topic, **given}


def load(topic: str, source: str) -> dict[str, Any]:
    sent = {"rate": "100/s", "size": "100B", "for": "8s"}
    return {"at": "2s", "produce": topic, "from": f"web-{source}", **sent}


def crash(member: str, nth: int, when: str) -> dict[str, Any]:
    return {
        "on": {"node": member, "purpose": "commit", "nth": nth, "when": when},
        "crash": member,
    }


SCENARIO: dict[str, Any] = {
    "name": "mirrors",
    "about": "a mirror waits and dies, one commits first and dies, one commits first and leaves",
    "clusters": {
        "east": cluster("clicks", "orders"),
        "west": cluster("clicks"),
        "all": cluster("clicks", "orders"),
    },
    "producers": {"web-east": {"cluster": "east"}, "web-west": {"cluster": "west"}},
    "mirrors": {
        "waits": mirror("east", "clicks", config={**QUICK, "auto.commit.interval.ms": 1500}),
        "hasty": mirror("west", "clicks", commits="before", producer=WAITS),
        "polite": mirror("east", "orders", commits="before", producer=WAITS),
    },
    "groups": {
        "reports": {
            "cluster": "all",
            "consumers": 1,
            "streams": {"clicks": 1, "orders": 1},
            "guarantee": {"semantics": "at least once", "most_repeated": 400},
            "config": QUICK,
        }
    },
    "timeline": [
        load("clicks", "east"),
        load("clicks", "west"),
        load("orders", "east"),
        crash("waits-east/0", nth=8, when="before"),
        crash("hasty-west/0", nth=10, when="after_reply"),
        {"at": "5s", "leave": "polite-east/0"},
        {"at": "10s", "restart": "waits-east/0"},
        {"at": "10s", "restart": "hasty-west/0"},
    ],
    "settle": "9s",
}


@pytest.fixture(scope="module")
def result() -> Result:
    """One live run; each test checks a part of it."""
    return lived(SCENARIO)


@pytest.fixture(scope="module")
def simulated() -> Result:
    """The same run, simulated."""
    return simulate(SCENARIO)


def delivery(result: Result) -> Finding:
    return result.judgement.finding("delivery to reports")


def number(finding: Finding, words: str) -> int:
    """A count in a finding; 0 if the finding does not mention it."""
    before, found, _ = finding.evidence.partition(f" {words}")
    return int(before.split()[-1].lstrip("(").replace(",", "")) if found else 0


# --- what the events say, without a judge ------------------------------------------------


def sent_by(trace: Trace, topic: str, producer: str) -> set[Identity]:
    return {
        (producer, number)
        for event in trace.of_kind(EventKind.SENT)
        if event.topic == topic
        and (event.detail["producer"], event.detail["outcome"]) == (producer, "accepted")
        for number in range(event.detail["first"], event.detail["end"])
    }


def messages_of(event: Event) -> Iterator[Identity]:
    for producer, first, end, *_ in event.detail["ranges"]:
        for number in range(first, end):
            yield producer, number


def stored_at(trace: Trace, cluster: str, topic: str) -> Counter[Identity]:
    return Counter(
        message
        for event in trace.of_kind(EventKind.STORED)
        if event.node.startswith(f"{cluster}:") and event.topic == topic
        for message in messages_of(event)
    )


def of(found: Counter[Identity], producer: str) -> Counter[Identity]:
    return Counter({pair: times for pair, times in found.items() if pair[0] == producer})


# --- the run -----------------------------------------------------------------------------


def test_the_verdicts_are_those_of_the_simulation(result: Result, simulated: Result) -> None:
    def verdicts(judgement: Judgement) -> dict[str, str]:
        return {
            finding.claim.name: finding.verdict.value
            for finding in judgement.findings
            if finding.counts
        }

    assert result.verdict is simulated.verdict is Verdict.VIOLATED, plain_report(result)
    assert verdicts(result.judgement) == verdicts(simulated.judgement), plain_report(result)
    assert all(effect.is_real for effect in result.effects)


@pytest.mark.parametrize("world", ["result", "simulated"])
def test_lost_and_repeated_messages_are_counted_by_source(
    world: str, request: pytest.FixtureRequest
) -> None:
    """A mirror of east waits, so it repeats; that of west commits first, so it loses."""
    found = delivery(request.getfixturevalue(world))

    repeated, lost = number(found, "handed on again"), number(found, "lost")
    assert repeated > 0, found
    assert lost > 0, found
    assert f"(of east's {repeated:,} again, of west's {lost:,} lost)" in found.evidence


def test_every_message_is_counted(result: Result) -> None:
    """The judge counts what the test counts."""
    found, trace = delivery(result), result.trace
    east, west = (sent_by(trace, "clicks", f"web-{name}-0") for name in ("east", "west"))
    there = stored_at(trace, "all", "clicks")

    assert set(of(there, "web-east-0")) == east
    again = sum(of(there, "web-east-0").values()) - len(east)
    assert again == number(found, "stored twice") == number(found, "handed on again")
    assert set(of(there, "web-west-0").values()) == {1}
    assert len(west - set(there)) == number(found, "never stored") == number(found, "lost")


def test_a_leaving_mirror_sends_what_waits(result: Result) -> None:
    """What it had committed but not sent is sent before it has ended."""
    trace = result.trace
    there = stored_at(trace, "all", "orders")
    handed = {
        message
        for event in trace.of_kind(EventKind.CONSUMED)
        if event.group == "polite-east"
        for message in messages_of(event)
    }
    (left_us,) = [
        event.t_us for event in trace.of_kind(EventKind.ENDED) if event.node == "polite-east/0"
    ]
    late = [event for event in trace.of_kind(EventKind.STORED) if event.topic == "orders"]

    assert set(there) == handed
    assert set(there.values()) == {1}
    assert any(event.t_us > left_us and event.node.startswith("all:") for event in late)
    accepted = sent_by(trace, "orders", "web-east-0")
    assert number(delivery(result), "not yet mirrored") == len(accepted - handed) > 0


def test_each_session_belongs_to_one_cluster(result: Result) -> None:
    """Three services, each with its own server, in one trace."""
    members = {
        cluster: {
            event.detail["by"]
            for event in result.trace.of_kind(EventKind.SESSION_OPENED)
            if event.node.startswith(f"{cluster}:")
        }
        for cluster in ("east", "west", "all")
    }
    assert members == {
        "east": {"east:broker/0", "web-east/0", "waits-east/0", "polite-east/0"},
        "west": {"west:broker/0", "web-west/0", "hasty-west/0"},
        "all": {"all:broker/0", "reports/0"},
    }
