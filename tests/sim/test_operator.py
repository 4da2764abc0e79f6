"""What an operator writes by hand: it takes effect, it is undone, and no process is blamed."""

from __future__ import annotations

import pytest

from watchkeeper import Result, Verdict, simulate
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import from_text

TEXT = """
name: by-hand
about: An operator changes znodes.
clusters:
  main: {{brokers: 2, topics: {{clicks: {{partitions_per_broker: 2}}}}}}
groups:
  billing:
    consumers: 2
    streams: {{clicks: 1}}
    config: {{auto.commit.interval.ms: 1000}}
timeline:
  - {{at: 0s, produce: clicks, rate: 100/s}}
{timeline}
settle: 14s
"""


def run(*entries: str, variant: str = "hardened", seed: int = 0) -> Result:
    """Simulate the cluster under a timeline."""
    timeline = "\n".join(f"  - {entry}" for entry in entries)
    text = TEXT.format(timeline=timeline)
    return simulate(from_text("by-hand.yaml", text), variant=variant, seed=seed)


def writes(result: Result) -> list[list[object]]:
    """The changes that the operator has made, in order."""
    return [
        change
        for event in result.trace.of_kind(EventKind.APPLIED)
        if event.detail["by"] == "operator"
        for change in event.detail["did"]
    ]


def verdict(result: Result, name: str) -> Verdict:
    """The verdict on a property."""
    return next(one.verdict for one in result.findings if one.claim.name == name)


def test_a_write_is_undone() -> None:
    """The former data comes back; a znode that was not there is gone again."""
    result = run(
        "{at: 6s, write_znode: /brokers/topics/clicks/1, data: many, for: 2s}",
        "{at: 6s, write_znode: /brokers/note, data: x, for: 3s}",
    )
    path, note = "/brokers/topics/clicks/1", "/brokers/note"
    assert [(change[0], change[1], change[3:]) for change in writes(result)] == [
        ("changed", path, ["many"]),
        ("created", note, ["x"]),
        ("changed", path, ["2"]),
        ("deleted", note, []),
    ]
    assert result.verdict is Verdict.HOLDS, result
    assert all(
        event.session == 0 for event in result.trace if event.detail.get("by") == "operator"
    )


def test_a_write_without_an_end_stays() -> None:
    """Without `for` nothing is written back."""
    result = run("{at: 6s, write_znode: /brokers/topics/clicks/1, data: '1'}")
    assert [change[3] for change in writes(result)] == ["1"]


def test_what_cannot_be_done_says_why() -> None:
    """A znode with children stays, a missing one is named, and so is a lost leader."""
    result = run(
        "{at: 6s, delete_znode: /consumers/billing/ids}",
        "{at: 6s, delete_znode: /consumers/other}",
        "{at: 6s, write_znode: /a/b, data: x}",
        "{at: 7s, quorum_loss: zookeeper, for: 4s}",
        "{at: 8s, delete_znode: /brokers/topics/clicks/1}",
    )
    missed = [effect.missed for effect in result.effects if effect.missed]
    assert not writes(result)
    assert missed == [
        "/consumers/billing/ids: the znode has children",
        "/consumers/other: there is no such znode",
        "/a/b: there is no such znode",
        "/brokers/topics/clicks/1: the connection was lost",
    ]
    assert result.verdict is Verdict.UNKNOWN


def test_an_undo_that_fails_is_counted() -> None:
    """Another operator deletes what the operator wrote; the report has the undo that failed."""
    result = run(
        "{at: 6s, write_znode: /brokers/note, data: x, for: 3s}",
        "{at: 7s, delete_znode: /brokers/note}",
    )
    written = result.effects[1]
    assert written.counts["znodes written"] == 1
    assert any(what.startswith("not undone (/brokers/note") for what in written.counts)


@pytest.mark.parametrize("variant", ["hardened", "kafka_07"])
def test_no_process_is_blamed(variant: str) -> None:
    """Neither for a registration that an operator deletes, nor for an offset that it lowers."""
    result = run(
        "{at: 6s, unregister: billing/0}",
        "{at: 10s, write_znode: /consumers/billing/offsets/clicks/0-0, data: '0'}",
        variant=variant,
    )
    assert len(writes(result)) == 2
    assert verdict(result, "own nodes only") is not Verdict.VIOLATED
    assert verdict(result, "monotone offsets") is Verdict.HOLDS


def test_a_hardened_consumer_registers_again() -> None:
    """Within the second, and it takes part in the next rebalance; a shipped one does not."""
    entry = "{at: 6s, unregister: billing/0}"
    assert run(entry, "{at: 10s, crash: billing/1}").verdict is Verdict.HOLDS
    assert verdict(run(entry, variant="kafka_07"), "full cover") is Verdict.VIOLATED


def test_a_controller_that_cannot_be_read_is_no_target() -> None:
    """A fault that names the controller says that there is none."""
    text = TEXT.format(timeline="  - {at: 1s, write_znode: /controller, data: me}").replace(
        "brokers: 2, topics: {clicks: {partitions_per_broker: 2}}",
        'layout: "0.8", leaders: controller, brokers: 2, '
        "topics: {clicks: {partitions: 2, replicas: 2}}",
    )
    text = text.replace("settle", "  - {at: 4s, crash: controller}\nsettle")
    result = simulate(from_text("by-hand.yaml", text))
    assert "no broker is the controller" in result.effects[-1].missed


def test_a_path_names_its_cluster() -> None:
    """With several clusters a path begins with the name of its cluster."""
    text = """
name: two
about: Two clusters.
clusters:
  one: {brokers: 1, topics: {clicks: {partitions_per_broker: 1}}}
  two: {brokers: 1, topics: {views: {partitions_per_broker: 1}}}
groups:
  billing: {cluster: two, consumers: 1, streams: {views: 1}}
timeline:
  - {at: 5s, write_znode: "two:/brokers/note", data: x}
settle: 8s
"""
    result = simulate(from_text("two.yaml", text))
    [event] = [event for event in result.trace if event.detail.get("by") == "operator"]
    assert event.node.startswith("two:zookeeper/")


STRANGER = "{at: 5s, write_znode: /consumers/billing/ids/stranger, data: '*1*(', for: 8s}"


def test_a_filter_that_no_member_can_use_stops_no_hardened_group() -> None:
    """A consumer whose filter is no regular expression counts as one that wants nothing."""
    result = run(STRANGER, "{at: 6s, crash: billing/1}", "{at: 20s, restart: billing/1}")

    assert result.holds
    assert not list(result.trace.of_kind(EventKind.REBALANCE_FAILED))


def test_a_filter_that_no_member_can_use_fails_the_attempts_of_kafka() -> None:
    """The shipped consumers fail their attempts, and go on as soon as it is gone."""
    result = run(STRANGER, variant="kafka_07")

    failed = [event.detail["why"] for event in result.trace.of_kind(EventKind.REBALANCE_FAILED)]
    assert any("topic filter '(' cannot be used" in why for why in failed)
    last = {
        event.node: event.t_us for event in result.trace.of_kind(EventKind.REBALANCE_COMPLETED)
    }
    assert last.keys() == {"billing/0", "billing/1"}
    assert min(last.values()) > 13_000_000
