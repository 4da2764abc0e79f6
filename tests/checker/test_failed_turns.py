"""A search names the processes with a turn that an error ends, as a run does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.checker.clusters import searched
from watchkeeper.check.battery import cells_of, explore_battery
from watchkeeper.check.check import explore_within, to_json
from watchkeeper.checker.search.search import SearchOptions
from watchkeeper.model.actor.effects import new_session
from watchkeeper.model.actor.errors import SessionExpired
from watchkeeper.model.group.consumer import GroupMember
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.scenarios import from_text

TEXT = """
name: expiry
about: the session of a member ends
clusters: {main: {zookeeper: {servers: 1}, brokers: 1, topics: {clicks: {partitions: 1}}}}
groups: {billing: {consumers: 1, streams: {clicks: 1}}}
"""
EXPIRY = Bounds({"expire": 1}, begin="fresh")


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """No member handles the end of its session."""

    async def raises(*given: Any) -> None:
        await new_session()
        raise SessionExpired("/session")

    monkeypatch.setattr(GroupMember, "after_expiry", raises)


def explored(bounds: Bounds, *, reduces: bool = True) -> Any:
    scenario = from_text("expiry.yaml", TEXT)
    return explore_within(scenario, scenario.plan(), bounds, (), SearchOptions(reduces=reduces))


@pytest.mark.parametrize("reduces", [True, False])
@pytest.mark.usefixtures("fails")
def test_a_turn_that_fails_is_named(*, reduces: bool) -> None:
    found = explored(EXPIRY, reduces=reduces)
    assert list(found.failed_turns) == ["billing/0"]
    assert found.remarks[-1] == (
        "a turn of billing/0 ends with an error that its program does not handle: "
        + found.failed_turns["billing/0"]
    )
    assert to_json(found, [])["failed_turns"] == found.failed_turns
    assert "/session" in found.failed_turns["billing/0"]


@pytest.mark.usefixtures("fails")
def test_only_states_that_were_seen_count() -> None:
    """A move beyond the budget is computed, and its state is none of the search."""
    system, search, _ = searched(from_text("expiry.yaml", TEXT).plan(), {"expire": 1})
    assert list(system.failed_turns(search.rows)) == ["billing/0"]
    assert system.failed_turns(search.rows[:1]) == {}


@pytest.mark.usefixtures("fails")
def test_a_battery_names_it_once() -> None:
    battery = explore_battery(from_text("expiry.yaml", TEXT), None, budget_s=30)
    assert sum("a turn of billing/0" in remark for remark in battery.remarks) == 1


TWO = """
name: two
about: two members share a topic
clusters:
  main:
    zookeeper: {servers: 1}
    brokers: 1
    layout: "LAYOUT"
    topics: {clicks: {PARTITIONS: 1}}
groups: {billing: {consumers: 2, streams: {clicks: 1}}}
"""


@pytest.mark.parametrize(
    ("variant", "cell"),
    [
        ("hardened", "broker crash, restart, settled"),
        ("kafka_08", "lost reply, settled, messages"),
        ("kafka_08", "late request, settled, messages"),
        ("kafka_07", "expiry, settled, messages"),
        ("documented", "broker crash, restart, settled"),
    ],
)
def test_no_turn_of_a_shipped_process_fails(variant: str, cell: str) -> None:
    """The first commit of an offset creates its znode, and its reply may be lost. A broker finds
    the registration of its last session, which is gone a moment later."""
    in_08 = variant == "kafka_08"
    text = TWO.replace("LAYOUT", "0.8" if in_08 else "0.7")
    text = text.replace("PARTITIONS", "partitions" if in_08 else "partitions_per_broker")
    cells, _ = cells_of(from_text("two.yaml", text).plan(variant))
    [one] = [found for found in cells if found.name == cell]
    scenario = from_text("two.yaml", text)
    found = explore_within(scenario, one.plan, one.bounds, (), SearchOptions(finds_all=True))
    assert found.searched is not None
    assert found.searched.is_complete
    assert found.failed_turns == {}
