"""Several members in one process, each with a session of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.checker.clusters import outcome_of, searched, violated
from tests.support.checker.schedules import counterexample
from watchkeeper import Result, Verdict, simulate
from watchkeeper.check.replay import replay_sim
from watchkeeper.checker.search.liveness import judge
from watchkeeper.model.counterexample.counterexample import Schedule
from watchkeeper.model.plan.bounds import Bounds, of_timeline, shrunk
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.progress import PROGRESS
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.reports.facts.sessions import paused
from watchkeeper.scenarios import ScenarioError, from_text, load

TEXT = """
name: together
about: members in one process
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: 2,
                  topics: {{clicks: {{partitions_per_broker: 1}}}}}}}}
groups:
  billing: {{consumers: 2, streams: {{clicks: 1}},
            config: {{zookeeper.session.timeout.ms: 2000}}}}
  audit: {{consumers: {audits}, streams: {{clicks: 1}},
          config: {{zookeeper.session.timeout.ms: 2000}}}}
processes: {processes}
timeline:
  - {{at: 0s, produce: clicks, rate: 100/s}}
{entries}
settle: 10s
"""
APP = "{app: [billing/0, audit/0]}"
BOTH = ("billing/0", "audit/0")


def text(*entries: str, processes: str = APP, audits: str = "1") -> str:
    """A scenario with a process of several members."""
    lines = "\n".join(f"  - {entry}" for entry in entries)
    return TEXT.format(entries=lines, processes=processes, audits=audits)


def run(*entries: str, variant: str = "hardened", **fields: str) -> Result:
    """A run of such a scenario."""
    return simulate(from_text("together.yaml", text(*entries, **fields)), variant=variant)


def plan(variant: str = "hardened", **fields: str) -> Plan:
    """The plan of such a scenario, as small as a search needs it."""
    return from_text("together.yaml", text(**fields)).plan(variant)


def nodes_of(result: Result, kind: EventKind, since_us: int = 0) -> list[str]:
    """The nodes that had an event of a kind, or whose session had it."""
    return sorted(
        str(event.detail.get("by", event.node))
        for event in result.trace.of_kind(kind)
        if event.t_us >= since_us
    )


# --- the simulation --------------------------------------------------------------------


def test_a_crash_of_a_process_kills_all_of_its_members() -> None:
    """Each leaves a session behind, and both groups recover."""
    result = run("{at: 6s, crash: app}")

    assert nodes_of(result, EventKind.ENDED) == sorted(BOTH)
    assert nodes_of(result, EventKind.SESSION_EXPIRED) == sorted(BOTH)
    crash = result.effects[-1].counts
    assert crash["processes killed"] == 1
    assert crash["ephemerals left behind"] == 5  # two registrations, one claim and two
    assert result.verdict is Verdict.HOLDS, str(result)


def test_the_members_of_a_process_have_sessions_of_their_own() -> None:
    """The end of one session leaves the other alone."""
    result = run("{at: 6s, expire: billing/0}")

    assert nodes_of(result, EventKind.SESSION_EXPIRED) == ["billing/0"]
    assert nodes_of(result, EventKind.EXPIRED) == ["billing/0"]


def test_a_pause_of_a_process_stops_every_member() -> None:
    result = run("{at: 6s, pause: app, for: 5s}")

    assert nodes_of(result, EventKind.EXPIRED) == sorted(BOTH)
    stopped = {
        event.node
        for event in result.trace.of_kind(
            EventKind.REQUEST, EventKind.FETCHED, EventKind.NOTIFIED
        )
        if 6_000_000 < event.t_us < 11_000_000
    }
    assert stopped.isdisjoint(BOTH)
    assert "billing/1" in stopped
    assert set(paused(result.trace)) == set(BOTH)


def test_a_restart_starts_every_member_and_a_member_that_left_as_well() -> None:
    result = run("{at: 4s, leave: audit/0}", "{at: 8s, crash: app}", "{at: 12s, restart: app}")

    assert nodes_of(result, EventKind.STARTED, 12_000_000) == sorted(BOTH)
    assert result.verdict is Verdict.HOLDS, str(result)


def test_a_member_may_leave_while_its_process_goes_on() -> None:
    result = run("{at: 6s, leave: billing/0}")

    assert nodes_of(result, EventKind.ENDED) == ["billing/0"]
    assert nodes_of(result, EventKind.SESSION_CLOSED) == ["billing/0"]
    assert result.verdict is Verdict.HOLDS, str(result)


def test_the_end_of_a_process_after_a_program_ends_the_others_too() -> None:
    result = run("{at: 6s, abandon: billing/0, for: 3s}")

    assert nodes_of(result, EventKind.ENDED) == sorted(BOTH)
    assert result.verdict is Verdict.HOLDS, str(result)


def test_a_machine_is_lost_with_all_members() -> None:
    result = run("{at: 6s, crash_host: app}")

    assert result.effects[-1].counts["connections left open"] == 2
    assert nodes_of(result, EventKind.ENDED) == sorted(BOTH)


def test_a_clock_is_wrong_for_all_members() -> None:
    result = run("{at: 3s, skew: app, by: 1h}", "{at: 6s, expire: billing/0}")

    assert result.effects[1].counts["clock readings"] > 0


def test_a_consumer_may_run_beside_a_broker() -> None:
    """Its partitions and its claims go together; the broker is back with the consumer."""
    together = "{app: [broker/1, billing/0]}"
    result = run("{at: 6s, crash: app}", "{at: 10s, restart: app}", processes=together)

    assert nodes_of(result, EventKind.ENDED) == ["billing/0", "broker/1"]
    assert nodes_of(result, EventKind.STARTED, 10_000_000) == ["billing/0", "broker/1"]
    assert result.verdict is Verdict.HOLDS, str(result)
    hosts = {
        member.host
        for _, member in from_text("a.yaml", text(processes=together))
        .plan("hardened")
        .consumers()
        if member.node == "billing/0"
    }
    assert hosts == {"main-b1.example"}


def test_the_trace_says_which_members_are_in_a_process() -> None:
    result = run("{at: 6s, pause: app, for: 1s}")

    process = {
        event.node: event.detail.get("process")
        for event in result.trace.of_kind(EventKind.STARTED)
    }
    assert (process["billing/0"], process["audit/0"], process["billing/1"]) == (
        "app",
        "app",
        None,
    )
    (fault,) = result.trace.of_kind(EventKind.FAULT)
    (ended,) = result.trace.of_kind(EventKind.FAULT_ENDED)
    assert [event.detail["members"] for event in (fault, ended)] == [list(BOTH), list(BOTH)]


# --- the judges ------------------------------------------------------------------------


def test_every_member_of_a_paused_process_is_paused_for_the_judges() -> None:
    """Otherwise a zombie window would count while nothing runs."""
    scenario = from_text("a.yaml", text("{at: 6s, pause: app, for: 5s}"))
    history = History(scenario.plan("hardened"))
    seen = []
    for event in simulate(scenario).trace:
        if event.kind in history.handlers:
            history.handlers[event.kind](event)
        if event.kind in (EventKind.FAULT, EventKind.FAULT_ENDED):
            seen.append([history.node(name).is_paused for name in (*BOTH, "billing/1")])
    assert seen == [[True, True, False], [False, False, False]]


# --- the search ------------------------------------------------------------------------


@pytest.mark.parametrize("reduces", [True, False])
def test_a_crash_in_a_search_takes_every_member(*, reduces: bool) -> None:
    system, search, found = searched(
        plan(), {"crash": 1, "restart": 1}, begin="settled", reduces=reduces
    )

    assert (found.stopped, violated(found)) == ("", [])
    assert judge(search).is_inevitable
    lives: set[tuple[str, ...]] = set()
    for number in range(len(search.good.values)):
        values = system.values(search.state(number))
        lives.add(tuple(values[name].phase for name in (*BOTH, "billing/1")))
    # billing/1 has a process of its own, and those of app run together or not at all.
    assert lives == {
        ("running", "running", "running"),
        ("gone", "gone", "running"),
        ("running", "running", "gone"),
    }


@pytest.mark.parametrize("variant", ["hardened", "kafka_07"])
def test_the_reductions_change_no_verdict(variant: str) -> None:
    faults = {"crash": 1, "expire": 1}
    outcomes = [
        outcome_of(*searched(plan(variant, audits="1"), faults, begin="settled", reduces=reduces))
        for reduces in (True, False)
    ]
    assert outcomes[0] == outcomes[1]


def test_the_simulation_follows_a_search_through_a_crash_and_a_restart() -> None:
    """A wrong variant, so that there is something to follow."""
    small = plan("documented")
    bounds = Bounds({"crash": 1, "restart": 1}, begin="settled")
    violates, steps = counterexample(small, bounds)

    replayed = replay_sim(small, bounds, Schedule(violates, steps, ()))

    assert (replayed.conforms, replayed.reached) == (True, True), replayed.text


def test_bounds_count_a_process_once_and_a_pause_for_each_session() -> None:
    entries = (
        "{at: 6s, pause: app, for: 5s}",
        "{at: 20s, crash: app}",
        "{at: 24s, restart: app}",
    )
    faults = of_timeline(from_text("a.yaml", text(*entries)).plan("hardened")).bounds.faults
    assert faults == {"expire": 2, "crash": 1, "restart": 1}


def test_a_smaller_plan_keeps_the_processes_of_what_is_left() -> None:
    small = shrunk(load("two-sessions-in-a-process").plan("hardened"), Bounds(consumers=1))
    assert [process.members for process in small.processes] == [BOTH]
    none = shrunk(plan(processes="{app: [billing/0, billing/1]}"), Bounds(consumers=1))
    assert none.processes == ()


# --- the file --------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"entries": ["{at: 6s, crash: billing/0}"]},
        "billing/0 runs in the process app, with others; expected app: `crash` affects a whole "
        "process",
    ),
    ({"entries": ["{at: 6s, expire: app}"]}, "'app' is not a consumer or broker"),
    (
        {"entries": ["{at: 6s, crash: app}", "{at: 8s, leave: billing/0}"]},
        "billing/0 does not run at that time: it ended by timeline[1]",
    ),
    (
        {"entries": ["{at: 6s, restart: app}"]},
        "app runs already at that time",
    ),
    ({"processes": "{app: [billing/0]}"}, "needs two members or more"),
    ({"processes": "{app: [billing/0, billing/0]}"}, "needs two members or more"),
    ({"processes": "{app: [billing/0, billing/7]}"}, "'billing/7' is not a member"),
    (
        {"processes": "{app: [billing/0, audit/0], web: [billing/1, audit/0]}"},
        "audit/0 runs in app already; expected one process",
    ),
    (
        {"processes": "{audit: [billing/0, audit/0]}"},
        "is the name of a group or of producers; choose another name",
    ),
    ({"processes": "{broker: [billing/0, audit/0]}"}, "is a reserved word"),
    (
        {"processes": "{app: [broker/0, broker/1]}"},
        "broker/1 runs on main-b1.example, and app on main-b0.example; a process has one host",
    ),
    (
        {"audits": "[{starts: never}]"},
        "audit/0 never starts by itself; a member starts with its process",
    ),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    entries = fields.get("entries", [])
    others = {key: value for key, value in fields.items() if key != "entries"}
    with pytest.raises(ScenarioError) as refused:
        from_text("a.yaml", text(*entries, **others)).plan("hardened")
    assert message in str(refused.value)


def test_the_shipped_scenario_holds_progress_after_one_process() -> None:
    """Both groups come to rest after one crash of one process."""
    finding = next(
        finding
        for finding in simulate("two-sessions-in-a-process").findings
        if finding.claim is PROGRESS
    )
    assert finding.verdict is Verdict.HOLDS


def test_the_judges_look_at_every_member_when_a_pause_ends() -> None:
    """A zombie may fetch beside the new owner for a moment, in both groups."""
    result = run("{at: 6s, pause: app, for: 5s}")

    strict = next(
        finding for finding in result.findings if finding.claim.name == "strict single ownership"
    )
    assert strict.verdict is Verdict.VIOLATED
