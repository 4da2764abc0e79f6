"""Scenarios for real: the same files, the same code, the same verdicts as simulated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.consumer import turn
from model.faults import VERBS
from model.program import Program
from model.properties import judge
from model.trace import Trace
from model.verdicts import Verdict
from real.capabilities import LACKING, lacking
from real.job import Job
from real.nemesis import DEEDS
from real.problems import EnvironmentProblem
from real.world import World
from scenarios import from_text, load, shipped
from tests.live import lived
from watchkeeper import simulate
from watchkeeper.running import scenario_of

Fields = Mapping[str, Any]
LOAD = {"at": "0s", "produce": "clicks", "rate": "100/s"}


def scenario(*timeline: Fields, **more: Any) -> dict[str, Any]:
    """Two brokers and two consumers with short sessions, and what befalls them."""
    return {
        "name": "short",
        "about": "a short run",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1, "tick": "200ms"},
                "session_timeout": "1s",
                "brokers": 2,
                "topics": {"clicks": {"partitions_per_broker": 2}},
            }
        },
        "groups": {
            "group": {
                "consumers": 2,
                "streams": {"clicks": 1},
                "apart": "500ms",
                "fetch_every": "100ms",
                "config": {"zookeeper.session.timeout.ms": 1000, "auto.commit.interval.ms": 500},
            }
        },
        "timeline": [LOAD, *timeline],
        "settle": "8s",  # a busy machine takes its time to start what was killed
        **more,
    }


FAULTS: dict[str, tuple[Fields, ...]] = {
    "a consumer is killed": ({"at": "3s", "crash": "group/0"},),
    "a consumer stands still": ({"at": "3s", "pause": "group/0", "for": "2s"},),
    "a session ends": ({"at": "3s", "expire": "group/0"},),
    "a connection breaks": ({"at": "3s", "disconnect": "group/0", "for": "200ms"},),
    "a claim's reply is lost": ({"on": {"node": "group/1", "asks": "claim"}, "lose": "reply"},),
    "the server is killed": (
        {"at": "3s", "crash": "zookeeper/1"},
        {"at": "3500ms", "restart": "zookeeper/1"},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_hardened_holds_for_real_what_it_holds_simulated(fault: str) -> None:
    """Every fault strikes, the group comes to rest, and nobody fetches beside another."""
    fields = scenario(*FAULTS[fault])

    result = lived(fields)

    assert result.verdict is Verdict.HOLDS, result
    assert all(effect.is_real for effect in result.effects)
    assert simulate(fields).verdict is Verdict.HOLDS
    assert list(result.trace.of_kind("fetched"))


def test_nothing_is_left_of_a_live_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder and no process."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = lived(scenario(settle="2s"))

    assert result.trace.header.world == "live"
    assert os.listdir(tmp_path) == []


class Prepared:
    """A process that takes its time to begin."""

    is_alive = True

    def begin(self, job: Job) -> None:
        """Do nothing yet."""


def test_a_process_is_at_work_from_the_moment_it_is_started(tmp_path: Path) -> None:
    """Else a group counts as at rest while a broker that is back has yet to register."""
    world = World(scenario_of(scenario()).plan(), tmp_path)
    prepared: Any = Prepared()
    world._idle.append(prepared)
    program = Program(turn, None, None)
    job = Job("broker/0", "", program, "", "", 1000, "", "", world.begin_ns, {"address": "a:1"})

    world._run(job)

    assert [(row[1], row[2], row[8]) for row in world.rows] == [
        ("broker/0", "starts", {"address": "a:1"})
    ]


class Gone:
    """A member's process that is over."""

    def __init__(self, *, was_killed: bool) -> None:
        self.node, self.group, self.was_killed = "group/0", "group", was_killed


@pytest.mark.parametrize(
    ("code", "was_killed", "why"),
    [
        (-11, False, "its process ended with signal 11"),
        (1, False, "its process ended with exit code 1"),
        (-9, True, None),
        (0, False, None),
    ],
)
def test_a_process_that_dies_by_itself_is_told_of(
    tmp_path: Path, code: int, was_killed: bool, why: str | None
) -> None:
    """Whoever was killed is told of by who killed it, whoever is over by itself."""
    world = World(scenario_of(scenario()).plan(), tmp_path)
    member: Any = Gone(was_killed=was_killed)
    earlier: Any = Gone(was_killed=False)
    world.members[member.node] = member

    world._hear(earlier, {"gone": -11})
    said = (why or "").removeprefix("its process ")
    with pytest.raises(EnvironmentProblem, match=said) if why else nullcontext():
        world._hear(member, {"gone": code})

    assert [row[8]["why"] for row in world.rows if row[2] == "ends"] == ([why] if why else [])


class Failing(Gone):
    """A broker's process that has said that it cannot go on, and is over by now."""

    is_alive = False

    def kill(self) -> bool:
        """It was there no longer."""
        self.was_killed = True
        return False


def test_a_broker_that_cannot_go_on_has_ended_and_the_run_has_not(tmp_path: Path) -> None:
    """It says why before it ends; that it serves was said too late then."""
    world = World(scenario_of(scenario()).plan(), tmp_path)
    member: Any = Failing(was_killed=False)
    world.members[member.node] = member

    for message in ({"serves": True}, {"fails": "no room"}, {"fails": "again"}, {"gone": 1}):
        world._hear(member, message)

    assert [row[8]["why"] for row in world.rows if row[2] == "ends"] == ["no room"]


# --- what cannot be done ---------------------------------------------------------------


def test_every_verb_is_done_live_or_there_is_a_reason() -> None:
    """A verb that some world can do is done here, or it is said why not."""
    doable = {name for name, verb in VERBS.items() if verb.worlds}

    assert set(DEEDS) | set(LACKING) == doable
    assert not set(DEEDS) & set(LACKING)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"at": "3s", "lag": "zookeeper/1", "by": "1s", "for": "1s"}, "falls behind"),
        ({"at": "3s", "partition": "zookeeper/1", "for": "1s"}, "past the proxy"),
        (
            {"at": "3s", "partition": "group/1", "from": "brokers", "for": "1s"},
            "between a member and ZooKeeper",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(entry: Fields, said: str) -> None:
    """The entry of the timeline is named."""
    plan = scenario_of(scenario(entry)).plan()

    (problem,) = lacking(plan)

    assert problem.startswith("timeline[1]: ")
    assert said in problem


def test_which_shipped_scenarios_can_be_run_live() -> None:
    """What is refused meddles between servers, or fills a disk of this machine."""
    plans = {name: load(name).plan() for name in shipped()}
    refused = {name for name, plan in plans.items() if list(lacking(plan))}

    assert refused == {"zookeeper-minority", "broker-disk-full"}


def test_the_text_of_a_scenario_says_nothing_of_worlds() -> None:
    """The same file is the input of both."""
    assert "live" not in str(from_text("x.yaml", str(scenario())).document.data)


def test_every_watch_that_fired_is_told_with_its_cause() -> None:
    """Servers say which change it was, and each event reaches the one it was sent to."""
    result = lived(scenario({"at": "3s", "leave": "group/1"}))

    fired = list(result.trace.of_kind("fires"))
    changes = {event.zxid for event in result.trace.of_kind("applied", "session closed")}
    heard = [event for event in result.trace.of_kind("hears") if "path" in event.detail]
    assert len(fired) >= 4
    assert {event.zxid for event in fired} <= changes
    assert sorted(one.detail["path"] for one in heard) == sorted(
        event.detail["path"] for event in fired if event.node != "group/1" or event.t_us < 3e6
    )
    left = next(one for one in result.judgement.changes if one.what == "group_c1 left")
    assert left.skew_us is not None


@pytest.mark.parametrize(("world", "verdict"), [("sim", "violated"), ("live", "holds")])
def test_a_connection_that_broke_by_itself_is_not_held_against_a_group(
    world: str, verdict: str
) -> None:
    """A busy machine breaks connections for real; in simulation only actions do."""
    done = simulate(scenario({"at": "20s", "disconnect": "group/0", "for": "200ms"}))
    plan = scenario_of(scenario()).plan()
    header = replace(done.trace.header, world=world)
    rows = [row for row in done.trace.rows if row[2] not in ("fault", "fault ends")]

    judgement = judge(plan, Trace(header, rows), done.effects[:1])

    assert judgement.finding("progress").verdict.value == verdict
