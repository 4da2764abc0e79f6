"""The classes of drawn runs: a few seeds of each are right, and each sees its mistake."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import HOME
from watchkeeper.api import folder
from watchkeeper.check import check
from watchkeeper.model.actor import orders
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command
from watchkeeper.model.actor.retry import Requests
from watchkeeper.model.broker import administrator
from watchkeeper.model.broker.request_handler import Serving
from watchkeeper.model.clients.producer.settings import ProducerSettings
from watchkeeper.model.group import assignment, claims, pipelined_reads, rebalance
from watchkeeper.model.judgement import signature
from watchkeeper.model.judgement.expectations import Expected
from watchkeeper.model.judgement.judge import Judgement
from watchkeeper.model.nemesis.targets import Targets
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.registry.subscription import Subscription, decode_consumer
from watchkeeper.sim.brokers.broker import Broker

sys.path.append(str(HOME / "bench"))

import regressions
from bench.regression_classes.applications import producers_of
from bench.support.dealt import dealt

FEW = 3
MANY = range(60)
"""Seeds among which each class shows its old mistake."""


@pytest.mark.parametrize("name", regressions.CLASSES)
def test_a_few_seeds_of_each_class_are_right(name: str) -> None:
    """`python bench/regressions.py` draws a thousand."""
    found = regressions.drawn(name, range(FEW))

    assert found.wrong == {}
    assert found.seeds == FEW


def test_the_report_has_a_row_for_each_class() -> None:
    """With the runs that show the subject of the class, and a failure that says what is wrong."""
    found = {name: regressions.Runs(4, 3, 1, 0.5) for name in regressions.CLASSES}
    found["topics"].wrong[2] = ["clicks/0-0 begins at 5"]
    report = regressions.report_of(found)

    assert [row[0] for row in report.rows] == list(regressions.CLASSES)
    assert f"of {4 * len(found)} drawn runs 1 are wrong" in report.title
    failures = regressions.failures_of(regressions.CLASSES["topics"], found["topics"])
    assert failures == ["seed 2: clicks/0-0 begins at 5"]


def test_a_class_may_show_so_many_kinds_of_failure() -> None:
    """Names of groups in signatures would make more of them."""
    one, found = regressions.CLASSES["signatures"], regressions.Runs(20)
    found.kinds.update(f"kind {number}" for number in range(20))

    assert regressions.failures_of(one, found) == ["20 kinds of failure, not 9 at most"]


# --- the old mistakes ------------------------------------------------------------------------


def seen(name: str) -> str:
    """What a class says is wrong, of the first seed that shows it; empty if none does."""
    for seed in MANY:
        outcome = regressions.CLASSES[name].outcome(seed)
        if outcome.wrong:
            return outcome.wrong[0]
    return ""


def test_commits_sees_a_failed_order_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    report = orders._report

    async def only_done(order: Command, *, is_done: bool) -> None:
        if is_done:
            await report(order, is_done=is_done)

    monkeypatch.setattr(orders, "_report", only_done)

    assert seen("commits")


def test_bounces_sees_logs_that_are_closed_beside_an_append(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def close_at_once(broker: Broker, then: Callable[[], None]) -> None:
        broker.host.calls.close(broker.announced.address, is_host_lost=False)
        broker.tasks.start("close", broker._close(then))

    monkeypatch.setattr(Broker, "close", close_at_once)

    assert "AssertionError" in seen("bounces")


def test_settings_sees_a_codec_without_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerSettings, "codec_for", lambda settings, topic: 0)

    assert "the wrong number of offsets" in seen("settings")


def test_topics_sees_messages_that_outlive_their_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    async def keep(serving: Serving, topic: str) -> None:
        """The registry forgets the topic, and its logs stay."""

    monkeypatch.setattr(Serving, "delete_topic", keep)

    assert "begins at" in seen("topics")


def test_leaders_sees_an_epoch_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_epoch(*fields: Any, leader_epoch: int = 0) -> PartitionState:
        return PartitionState(*fields)

    without_epoch.decode = PartitionState.decode  # type: ignore[attr-defined]
    monkeypatch.setattr(administrator, "PartitionState", without_epoch)

    assert "has the epochs" in seen("leaders")


def test_signatures_sees_the_name_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_evidence(findings: Iterable[Finding], verdict: Verdict) -> list[str]:
        return [f"{one.claim.name}: {one.evidence}" for one in findings if one.verdict is verdict]

    monkeypatch.setattr(signature, "_shapes", by_evidence)

    assert "names what differs" in seen("signatures")


def test_producers_sees_the_shipped_one_change_the_order() -> None:
    """Kafka 0.7.2 renews connections and adds senders without waiting for those before."""
    wrong = [
        sentence
        for seed in MANY
        for sentence in producers_of(Random(f"producers/{seed}/0"), "kafka_07").wrong
    ]

    assert any("is stored in" in one for one in wrong)


def test_folders_sees_a_folder_without_its_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    write = folder.write_text

    def but_the_scenario(path: Path, text: str) -> str:
        return path.name if path.name == folder.SCENARIO else write(path, text)

    monkeypatch.setattr(folder, "write_text", but_the_scenario)

    assert "no plan" in seen("folders")


def test_roles_sees_a_server_that_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Targets, "_holder", lambda targets, role: "zookeeper/1")

    assert "led at" in seen("roles")


def test_settled_sees_a_usage_error_where_a_group_never_settles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Unknown(Exception):
        """Not what the search raises."""

    monkeypatch.setattr(check, "NeverSettles", Unknown)

    assert "a usage error" in seen("settled")


@pytest.mark.slow
def test_new_groups_sees_an_attempt_that_fails_for_a_missing_znode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(requests: Requests, creations: Any) -> None:
        """Create no znode above the claims."""

    monkeypatch.setattr(claims, "ensure_all_parents", nothing)

    assert seen("new-groups")


def test_limits_sees_a_limit_of_whatever_is_violated(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_all(expected: Expected, judgement: Judgement) -> str:
        return expected.limit if judgement.violated() else ""

    monkeypatch.setattr(Expected, "limit_of", of_all)

    assert "known limit is" in seen("limits")


def test_members_sees_another_share_than_is_dealt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every member agrees, so that no property is violated: only what is dealt tells."""

    def last_first(partitions: int, streams: int, position: int) -> tuple[int, int]:
        first, end = assignment._range(partitions, streams, streams - 1 - position)
        return first, end

    monkeypatch.setitem(assignment._SLICES, "range", last_first)

    assert " fetches " in seen("members-hardened")


def test_members_sees_an_assignment_that_kafka_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(assignment._DEALS, "roundrobin", assignment._deal_and_skip)

    assert "round robin needs" in seen("members-kafka_08")


def test_operators_sees_a_member_that_cannot_read_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def raised(
        members: tuple[str, ...], payloads: tuple[bytes | None, ...]
    ) -> tuple[tuple[tuple[str, Subscription], ...], bool]:
        read = zip(members, payloads, strict=True)
        return tuple(
            (path.rpartition("/")[2], decode_consumer(path, data)) for path, data in read
        ), False

    monkeypatch.setattr(pipelined_reads, "_usable_members", raised)

    assert "fails because of a registration" in seen("operators-hardened")


def test_operators_sees_members_that_do_not_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka 0.8.2 has a number of attempts for each rebalance."""
    monkeypatch.setattr(rebalance, "_is_final", lambda attempt, step: True)

    assert "differ: gives up" in seen("operators-kafka_08")


# --- who gets what -------------------------------------------------------------------------


@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    wants=st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=4),
    assignor=st.sampled_from(["range", "range_floor", "range_ceil", "roundrobin_11"]),
)
def test_what_is_dealt_slowly_is_what_members_compute(
    sizes: list[int], wants: list[list[int]], assignor: assignment.Assignor
) -> None:
    """The dealer of the classes and the assignment of the members share no code."""
    topics = {f"topic{at}": [str(name) for name in range(size)] for at, size in enumerate(sizes)}
    streams = {
        topic: sorted(
            f"c{member}-{stream}"
            for member, counts in enumerate(wants)
            for stream in range(counts[at])
        )
        for at, topic in enumerate(topics)
    }
    there = {topic: names for topic, names in topics.items() if streams[topic]}
    view = tuple(
        assignment.topic_view(
            topic, [Partition(topic, name) for name in names], streams[topic], "0.8"
        )
        for topic, names in there.items()
    )
    assume(view)

    computed = assignment.assign(assignor, view)

    slowly = dealt(assignor, there, {topic: streams[topic] for topic in there})
    assert {stream: set(places) for stream, places in computed.items() if places} == {
        stream: places for stream, places in slowly.items() if places
    }
