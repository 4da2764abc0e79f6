"""The classes of mended faults: a few seeds of each are right, and each sees its old mistake."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests import HOME
from watchkeeper.check import check
from watchkeeper.model.actor import orders
from watchkeeper.model.actor.events import Command
from watchkeeper.model.actor.retry import Requests
from watchkeeper.model.broker import administrator
from watchkeeper.model.broker.request_handler import Serving
from watchkeeper.model.clients.producer.settings import ProducerSettings
from watchkeeper.model.group import claims
from watchkeeper.model.nemesis.targets import Targets
from watchkeeper.model.properties import signature
from watchkeeper.model.properties.expectations import Expected
from watchkeeper.model.properties.judge import Judgement
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.run import folder
from watchkeeper.sim.brokers.broker import Broker

sys.path.append(str(HOME / "bench"))

import regressions
from bench.regression_classes.applications import producers_of

FEW = 6
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
    assert "of 48 drawn runs 1 show one again" in report.title
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
