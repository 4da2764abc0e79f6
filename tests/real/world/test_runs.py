"""Live runs of scenarios: the same files, the same code, the same verdicts as simulated."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_zookeeper import descendants, lived, lived_to_a_verdict, until
from tests.support.virtual_members import ran_in_virtual_time
from watchkeeper import simulate
from watchkeeper.api.simulate import scenario_of
from watchkeeper.model.actor.program import Program
from watchkeeper.model.group.consumer import turn
from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.plan.faults import VERBS
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.faults.faults import HANDLERS
from watchkeeper.real.member.job import Job
from watchkeeper.real.world.capabilities import LACKING, lacking
from watchkeeper.real.world.world import World
from watchkeeper.real.zookeepers.implementation import Implementation
from watchkeeper.scenarios import from_text, load, shipped

Fields = Mapping[str, Any]
LOAD = {"at": "0s", "produce": "clicks", "rate": "100/s"}


SERVERS = ("python", "java")
"""The ZooKeepers that a run can start."""
LONG_S, SHORT_S = 20, 4
"""Session timeouts: one that no run of a test outlasts, and one for runs in which a session has
to expire. No session may expire only because the machine is busy, so this is not short either.
"""


def scenario(*timeline: Fields, session_s: int = LONG_S, **more: Any) -> dict[str, Any]:
    """Two brokers and two consumers, and their faults."""
    tick_ms = max(200, 1000 * session_s // 20)  # a server grants at most 20 ticks
    return {
        "name": "short",
        "about": "a short run",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1, "tick": f"{tick_ms}ms"},
                "session_timeout": f"{session_s}s",
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
                "config": {
                    "zookeeper.session.timeout.ms": 1000 * session_s,
                    "auto.commit.interval.ms": 500,
                },
            }
        },
        "timeline": [LOAD, *timeline],
        "settle": "8s",  # a busy machine takes its time to start what was killed
        **more,
    }


FAULTS_THAT_EXPIRE: dict[str, tuple[Fields, ...]] = {
    "a consumer is killed": ({"at": "3s", "crash": "group/0"},),
    "a consumer stands still": ({"at": "3s", "pause": "group/0", "for": "6s"},),
    "a program ends, and its process later": ({"at": "3s", "abandon": "group/0", "for": "2s"},),
}
FAULTS: dict[str, tuple[Fields, ...]] = {
    **FAULTS_THAT_EXPIRE,
    "a session ends": ({"at": "3s", "expire": "group/0"},),
    "a connection breaks": ({"at": "3s", "disconnect": "group/0", "for": "200ms"},),
    "a claim's reply is lost": (
        {"on": {"node": "group/1", "purpose": "claim"}, "lose": "reply"},
    ),
    "the server is killed": (
        {"at": "3s", "crash": "zookeeper/1"},
        {"at": "3500ms", "restart": "zookeeper/1"},
    ),
}


def test_a_live_process_of_several_members_ends_and_starts_as_a_whole() -> None:
    """A consumer beside a broker: one process, and a session for each of the two."""
    fields = scenario(
        {"at": "3s", "pause": "app", "for": "500ms"},
        {"at": "5s", "crash": "app"},
        {"at": "7s", "restart": "app"},
        session_s=SHORT_S,
        processes={"app": ["broker/1", "group/0"]},
    )

    result = lived(fields)

    assert result.verdict is Verdict.HOLDS, result
    both = ["broker/1", "group/0"]
    for kind in (EventKind.ENDED, EventKind.SESSION_EXPIRED):
        found = (str(event.detail.get("by", event.node)) for event in result.trace.of_kind(kind))
        assert sorted(found) == both
    starts = Counter(event.node for event in result.trace.of_kind(EventKind.STARTED))
    assert (starts["broker/1"], starts["group/0"], starts["group/1"]) == (2, 2, 1)


OF_SERVERS = ("a consumer is killed", "the server is killed")
"""Faults whose effect on members is most up to the server."""


@pytest.mark.parametrize(
    ("fault", "zookeeper"),
    [
        pytest.param(name, server, marks=[] if is_quick else pytest.mark.slow)
        for name in FAULTS
        for server in ("virtual", *SERVERS)
        for is_quick in [server == "virtual" or name in OF_SERVERS]
    ],
)
def test_hardened_has_the_same_verdicts_live_and_simulated(fault: str, zookeeper: str) -> None:
    """Every fault is injected, the group converges, and ownership stays unique."""
    session_s = SHORT_S if fault in FAULTS_THAT_EXPIRE else LONG_S
    fields = scenario(*FAULTS[fault], session_s=session_s)

    result: Any = (
        ran_in_virtual_time(fields)
        if zookeeper == "virtual"
        else lived_to_a_verdict(fields, zookeeper=zookeeper)
    )

    assert result.verdict is Verdict.HOLDS, str(result)
    assert all(effect.is_real for effect in result.effects)
    assert simulate(fields).verdict is Verdict.HOLDS
    assert list(result.trace.of_kind(EventKind.FETCHED))


@pytest.mark.parametrize("zookeeper", SERVERS)
def test_the_leader_of_the_moment_is_struck_live(zookeeper: str) -> None:
    """As the servers themselves say; the restart is that of the same server."""
    fields = scenario(
        {"at": "4s", "crash": "zookeeper/leader"},
        {"at": "5s", "restart": "zookeeper/leader"},
        {"at": "5500ms", "restart": "zookeeper/follower"},
    )
    fields["clusters"]["main"]["zookeeper"]["servers"] = 3

    result = lived(fields, zookeeper=zookeeper)

    _, crash, restart, missed = result.effects
    assert crash.target == restart.target != ""
    assert crash.is_real
    assert restart.is_real
    assert missed.missed == "no earlier action has struck a zookeeper/follower"
    [struck] = result.trace.of_kind(EventKind.FAULT)
    assert (struck.node, struck.detail["role"]) == (crash.target, "zookeeper/leader")
    elected = [event.node for event in result.trace.of_kind(EventKind.LEADER_ELECTED)]
    assert crash.target in elected


@pytest.mark.parametrize("zookeeper", SERVERS)
def test_a_live_run_leaves_nothing(
    zookeeper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder and no process."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = descendants()
    result = lived(scenario(settle="2s"), zookeeper=zookeeper)

    assert result.trace.header.world == "live"
    assert os.listdir(tmp_path) == []
    until(lambda: descendants() <= before)


class Prepared:
    """A process that starts slowly."""

    is_alive = True

    def begin(self, job: Job) -> None:
        """Do nothing yet."""


def test_a_process_is_busy_from_its_start(tmp_path: Path) -> None:
    """Otherwise a group counts as quiescent while a restarted broker has yet to register."""
    world = World(scenario_of(scenario()).plan(), tmp_path)
    prepared: Any = Prepared()
    world._idle.append(prepared)
    program = Program(turn, None, None)
    job = Job("broker/0", "", program, "", "", 1000, "", "", world.begin_ns, {"address": "a:1"})

    world._run(job)

    assert [(row[1], row[2], row[8]) for row in world.rows] == [
        ("broker/0", EventKind.STARTED, {"address": "a:1"})
    ]


class Gone:
    """A member's process that has ended."""

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
def test_a_crashed_process_is_reported(
    tmp_path: Path, code: int, was_killed: bool, why: str | None
) -> None:
    """The killer writes the end of a killed process, a process its own normal end."""
    world = World(scenario_of(scenario()).plan(), tmp_path)
    member: Any = Gone(was_killed=was_killed)
    earlier: Any = Gone(was_killed=False)
    world.members[member.node] = member

    world._handle(earlier, {"gone": -11})
    reason = (why or "").removeprefix("its process ")
    with pytest.raises(EnvironmentProblem, match=reason) if why else nullcontext():
        world._handle(member, {"gone": code})

    assert [row[8]["why"] for row in world.rows if row[2] == EventKind.ENDED] == (
        [why] if why else []
    )


class Failing(Gone):
    """A broker's process that has reported a failure and has ended."""

    is_alive = False

    @property
    def family(self) -> list[Failing]:
        """The members of its process."""
        return [self]

    def kill(self) -> bool:
        """It had ended already."""
        self.was_killed = True
        return False


def test_a_failed_broker_ends_without_ending_the_run(tmp_path: Path) -> None:
    """It reports the reason before it ends; its report that it serves came too late."""
    world = World(scenario_of(scenario()).plan(), tmp_path)
    member: Any = Failing(was_killed=False)
    world.members[member.node] = member

    for message in ({"serves": True}, {"fails": "no room"}, {"fails": "again"}, {"gone": 1}):
        world._handle(member, message)

    assert [row[8]["why"] for row in world.rows if row[2] == EventKind.ENDED] == ["no room"]


# --- what cannot be done ---------------------------------------------------------------


def test_every_verb_works_live_or_has_a_reason() -> None:
    """A verb that some world supports is supported here, or has a reason why not."""
    doable = {name for name, verb in VERBS.items() if verb.worlds}

    assert set(HANDLERS) | set(LACKING) == doable
    assert not set(HANDLERS) & set(LACKING)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"partition": "group/1", "from": "brokers"}, "between a member and ZooKeeper"),
        ({"partition": "zookeeper/1", "from": "brokers"}, "from the other servers alone"),
        ({"partition": "zookeeper/1", "from": "zookeeper/2"}, "and not from one of them"),
        ({"partition": "zookeeper/1", "direction": "to"}, "in both directions, and not in one"),
    ],
)
def test_unsupported_actions_are_refused_with_the_reason(entry: Fields, reason: str) -> None:
    """The message names the entry of the timeline."""
    fields = scenario({"at": "3s", "for": "1s", **entry})
    fields["clusters"]["main"]["zookeeper"]["servers"] = 3
    plan = scenario_of(fields).plan()

    (problem,) = lacking(plan)

    assert problem.startswith("timeline[1]: ")
    assert reason in problem


@pytest.mark.parametrize(
    "entry", [{"lag": "zookeeper/1", "by": "1s"}, {"partition": "zookeeper/1"}]
)
def test_nothing_happens_between_servers_of_apaches(entry: Fields) -> None:
    """It is refused with the reason, and with what can do it; on that it is not."""
    plan = scenario_of(scenario({"at": "3s", "for": "1s", **entry})).plan()

    (problem,) = lacking(plan, Implementation.JAVA)

    assert "past the proxy; --zookeeper python can do it" in problem
    assert not list(lacking(plan, Implementation.PYTHON))


def test_most_shipped_scenarios_can_be_run_live() -> None:
    """Those that are refused cut Apache's servers off, or fill a disk."""
    plans = {name: load(name).plan() for name in shipped()}
    refused = {
        server: {name for name, plan in plans.items() if list(lacking(plan, server))}
        for server in Implementation
    }

    assert refused == {
        Implementation.JAVA: {"zookeeper-minority", "broker-disk-full", "produce-reply-lost"},
        Implementation.PYTHON: {"broker-disk-full", "produce-reply-lost"},
    }


def test_scenarios_do_not_mention_worlds() -> None:
    """The same file is the input of both worlds."""
    assert "live" not in str(from_text("x.yaml", str(scenario())).document.data)


def test_every_fired_watch_has_its_cause() -> None:
    """Servers report the zxid of the change, and each event reaches its recipient."""
    result = lived(scenario({"at": "3s", "leave": "group/1"}))

    fired = list(result.trace.of_kind(EventKind.WATCH_FIRED))
    changes = {
        event.zxid for event in result.trace.of_kind(EventKind.APPLIED, EventKind.SESSION_CLOSED)
    }
    heard = [
        event for event in result.trace.of_kind(EventKind.NOTIFIED) if "path" in event.detail
    ]
    assert len(fired) >= 4
    assert {event.zxid for event in fired} <= changes
    for node in {event.node for event in [*fired, *heard]} - {"group/1"}:
        assert paths_at(node, heard) == paths_at(node, fired)
    # The member that leaves does not wait for the last of its events.
    assert paths_at("group/1", heard) <= paths_at("group/1", fired)
    left = next(change for change in result.judgement.changes if change.what == "group_c1 left")
    assert left.skew_us is not None


def paths_at(node: str, events: list[Event]) -> Counter[str]:
    """How often each path was reported to a member."""
    return Counter(event.detail["path"] for event in events if event.node == node)


@pytest.mark.parametrize(("world", "verdict"), [("sim", "violated"), ("live", "holds")])
def test_an_accidental_disconnection_does_not_fail_a_group(world: str, verdict: str) -> None:
    """A busy machine breaks live connections; in simulation only actions do."""
    quick = partial(scenario, session_s=1)  # the bound on progress follows from it
    done = simulate(quick({"at": "20s", "disconnect": "group/0", "for": "200ms"}))
    plan = scenario_of(quick()).plan()
    header = replace(done.trace.header, world=world)
    rows = [
        row for row in done.trace.rows if row[2] not in (EventKind.FAULT, EventKind.FAULT_ENDED)
    ]

    judgement = judge(plan, Trace(header, rows), done.effects[:1])

    assert judgement.finding("progress").verdict.value == verdict
