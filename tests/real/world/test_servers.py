"""What happens between the servers of a live ensemble: lags and cuts, with the one in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.real.world.test_runs import scenario
from tests.support.live_zookeeper import lived, lived_to_a_verdict
from tests.support.member_worlds import MEMBER_WORLDS, ran
from watchkeeper import simulate
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace

Fields = Mapping[str, Any]
LAG_S = 1
LAGS = [
    {"at": "2500ms", "lag": f"zookeeper/{number}", "by": f"{LAG_S}s", "for": "6s"}
    for number in (1, 2)
]
"""The third server is the first leader."""


def ensemble(*timeline: Fields, **more: Any) -> dict[str, Any]:
    """The short scenario on three servers; a silent one is missed after four ticks of 200 ms."""
    fields = scenario(*timeline, session_s=4, **more)
    fields["clusters"]["main"]["zookeeper"]["servers"] = 3
    return fields


def longest_wait_us(trace: Trace) -> int:
    """The longest time from a change to a watch that fires for it."""
    changed = (EventKind.APPLIED, EventKind.SESSION_CLOSED, EventKind.SESSION_EXPIRED)
    changed_us = {event.zxid: event.t_us for event in trace.of_kind(*changed)}
    return max(
        event.t_us - changed_us[event.zxid]
        for event in trace.of_kind(EventKind.WATCH_FIRED)
        if event.zxid in changed_us
    )


def leaders(result: Any) -> list[str]:
    """The servers that have led, in order."""
    return [event.node for event in result.trace.of_kind(EventKind.LEADER_ELECTED)]


def suspended(result: Any) -> set[str]:
    """The members that have lost their connection after the first fault."""
    [first, *_] = result.trace.of_kind(EventKind.FAULT)
    return {
        event.node
        for event in result.trace.of_kind(EventKind.NOTIFIED)
        if event.detail.get("what") == "suspended" and event.t_us > first.t_us
    }


@pytest.mark.parametrize("world", MEMBER_WORLDS)
def test_servers_that_lag_fire_watches_late(world: str) -> None:
    """The effect counts what they have delayed, and the trace shows how late a watch fired."""
    fields = ensemble(*LAGS, {"at": "4s", "leave": "group/1"}, settle="10s")
    fields["groups"]["group"]["consumers"] = (
        5  # one of them at least is not connected to the leader
    )

    result = ran(fields, world)

    assert result.verdict is Verdict.HOLDS, str(result)
    lags = [effect for effect in result.effects if effect.action.verb.name == "lag"]
    assert all(effect.counts["commits delayed"] > 0 for effect in lags)
    assert longest_wait_us(result.trace) > LAG_S * 900_000


def test_a_leader_does_not_lag() -> None:
    """It has applied everything that is committed; such a fault has no effect, and says why."""
    lag = {"at": "3s", "lag": "zookeeper/3", "by": "1s", "for": "1s"}  # the first leader

    result = lived(ensemble(lag, settle="4s"))

    assert result.verdict is Verdict.UNKNOWN
    assert not result.effects[1].is_real
    assert result.effects[1].missed == "it leads, and a leader has applied all that is committed"


@pytest.mark.parametrize("world", MEMBER_WORLDS)
def test_a_follower_that_is_cut_off_drops_its_clients(world: str) -> None:
    """They move to the others with their sessions, as in the simulation.

    There a link has one direction, so the same cut counts twice as many.
    """
    fields = ensemble({"at": "4s", "partition": "zookeeper/follower", "for": "3s"})

    result = ran(fields, world)

    assert result.verdict is Verdict.HOLDS, str(result)
    links = "links between servers cut"
    assert result.effects[1].counts[links] == 2
    assert simulate(fields).effects[1].counts[links] == 4
    assert len(leaders(result)) == 1
    assert not list(result.trace.of_kind(EventKind.SESSION_EXPIRED))


@pytest.mark.parametrize("world", MEMBER_WORLDS)
def test_a_leader_that_is_cut_off_is_replaced(world: str) -> None:
    """The majority elects another one, and every client loses its connection meanwhile."""
    fields = ensemble({"at": "4s", "partition": "zookeeper/leader", "for": "3s"}, settle="12s")

    result = ran(fields, world)

    assert result.verdict is Verdict.HOLDS, str(result)
    first, *later = leaders(result)
    assert result.effects[1].target == first
    assert later[-1] not in ("", first)
    assert {"group/0", "group/1"} <= suspended(result)


def test_a_majority_that_is_cut_off_serves_nothing_until_it_is_back() -> None:
    """Each of two followers is alone, so no server can commit; no session expires meanwhile."""
    cuts = [
        {"at": "4s", "partition": "zookeeper/follower", "for": "4s"},
        {"at": "4s", "partition": "zookeeper/leader", "for": "2s"},
    ]
    fields = ensemble(*cuts, settle="12s")

    result = lived_to_a_verdict(fields)

    assert result.verdict is Verdict.HOLDS, str(result)
    assert all(effect.is_real for effect in result.effects)
    assert list(result.trace.of_kind(EventKind.LEADER_LOST))
    assert not list(result.trace.of_kind(EventKind.SESSION_EXPIRED))


@pytest.mark.parametrize("world", MEMBER_WORLDS)
def test_a_lost_majority_is_restored_with_what_was_written(world: str) -> None:
    """Two of three servers are killed and started again; the group goes on."""
    fields = ensemble({"at": "4s", "quorum_loss": "zookeeper", "for": "2s"}, settle="12s")

    result = ran(fields, world)

    assert result.verdict is Verdict.HOLDS, str(result)
    assert result.effects[1].counts == {"servers killed": 2, "servers started": 2}
    assert {"group/0", "group/1"} <= suspended(result)


@pytest.mark.slow
def test_every_server_is_restarted_in_turn() -> None:
    """Sessions move, and what was written is there afterwards."""
    fields = ensemble({"at": "4s", "rolling_restart": "zookeeper", "each": "1500ms"})
    fields["settle"] = "14s"

    result = lived_to_a_verdict(fields)

    assert result.verdict is Verdict.HOLDS, str(result)
    assert result.effects[1].counts == {"servers killed": 3, "servers started": 3}


@pytest.mark.slow
@pytest.mark.parametrize("server", ["leader", "follower"])
def test_a_server_that_stands_still_is_missed(server: str) -> None:
    """A leader is replaced, a follower loses its clients."""
    fields = ensemble({"at": "4s", "pause": f"zookeeper/{server}", "for": "3s"}, settle="12s")

    result = lived_to_a_verdict(fields)

    assert result.verdict is Verdict.HOLDS, str(result)
    assert result.effects[1].counts == {"servers paused": 1}
    assert (len(set(leaders(result))) > 1) is (server == "leader")


@pytest.mark.slow
def test_a_minority_is_cut_off_as_the_shipped_scenario_has_it() -> None:
    """Its verdict is that of the simulation, and so is what happens in between."""
    result = lived_to_a_verdict("zookeeper-minority")

    assert result.verdict is Verdict.HOLDS, str(result)
    assert result.met
