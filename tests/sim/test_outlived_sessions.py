"""Sessions that outlive their members: the program ends, and its process keeps the session."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.checker.clusters import searched, small, violated
from tests.support.checker.schedules import counterexample
from watchkeeper import Result, Verdict, simulate
from watchkeeper.check.replay import replay_sim
from watchkeeper.checker.search.liveness import judge, violation_of
from watchkeeper.model.counterexample.counterexample import Schedule
from watchkeeper.model.plan.bounds import Bounds, of_timeline
from watchkeeper.model.properties.at_quiescence import COVER
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.progress import PROGRESS
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.reports.facts.sessions import OUTLIVED, process_states
from watchkeeper.scenarios import ScenarioError, from_text, load

TEXT = """
name: outlived
about: the program of a member ends, and its session goes on
clusters: {{main: {{zookeeper: {{servers: 1}}, brokers: 2,
                  topics: {{clicks: {{partitions_per_broker: 2}}}}}}}}
groups: {{billing: {{consumers: {consumers}, streams: {{clicks: 1}},
                   config: {{zookeeper.session.timeout.ms: 2000}}}}}}
timeline:
  - {{at: 0s, produce: clicks, rate: 100/s}}
{entries}
settle: 10s
"""


def run(*entries: str, consumers: int = 2, variant: str = "hardened") -> Result:
    """A run with some faults."""
    lines = "\n".join(f"  - {entry}" for entry in entries)
    text = TEXT.format(consumers=consumers, entries=lines)
    return simulate(from_text("outlived.yaml", text), variant=variant)


def moments(result: Result, kind: EventKind, node: str) -> list[int]:
    """When a node, or the session of a node, had an event of a kind."""
    return [
        event.t_us
        for event in result.trace.of_kind(kind)
        if node in (event.node, event.detail.get("by"))
    ]


def evidence(result: Result, name: str) -> str:
    """Why a property has its verdict."""
    return next(finding.evidence for finding in result.findings if finding.claim.name == name)


# --- the simulation --------------------------------------------------------------------


def test_the_session_lives_until_its_process_ends() -> None:
    """Twenty session timeouts pass; its claims and its registration stay all the while."""
    result = run("{at: 6s, abandon: billing/0}", "{at: 46s, crash: billing/0}")

    assert moments(result, EventKind.ABANDONED, "billing/0") == [6_000_000]
    (expired_us,) = moments(result, EventKind.SESSION_EXPIRED, "billing/0")
    assert expired_us > 46_000_000 + 1_300_000
    assert not moments(result, EventKind.SESSION_CLOSED, "billing/0")
    deleted = [
        event.t_us
        for event in result.trace.of_kind(EventKind.APPLIED)
        for change in event.detail["did"]
        if change[0] == "deleted" and event.detail["by"] == "billing/0" and event.t_us > 6_000_000
    ]
    assert deleted == []


def test_no_program_reads_or_is_notified_after_its_end() -> None:
    result = run("{at: 6s, abandon: billing/0}", "{at: 9s, crash: billing/1}")

    later = [
        event.kind
        for event in result.trace
        if event.node == "billing/0" and event.t_us > 6_000_000
    ]
    # The ensemble still sends the events of watches; no program hears of them.
    assert set(later) <= {EventKind.WATCH_FIRED}
    ceased = [
        event.t_us
        for event in result.trace.of_kind(EventKind.FETCHING)
        if event.node == "billing/0" and event.detail["does"] == "ceases"
    ]
    assert ceased[-2:] == [6_000_000, 6_000_000]


def test_with_for_the_process_ends_by_itself_and_the_group_recovers() -> None:
    result = run("{at: 6s, abandon: billing/0, for: 5s}")

    assert moments(result, EventKind.ENDED, "billing/0") == [11_000_000]
    assert result.verdict is Verdict.HOLDS, str(result)


def test_a_process_that_was_killed_before_is_not_killed_again() -> None:
    """The one that was started in its place goes on."""
    result = run(
        "{at: 6s, abandon: billing/0, for: 9s}",
        "{at: 8s, crash: billing/0}",
        "{at: 12s, restart: billing/0}",
    )

    assert len(moments(result, EventKind.ENDED, "billing/0")) == 1
    assert len(moments(result, EventKind.STARTED, "billing/0")) == 2


def test_a_member_may_end_in_the_middle_of_its_claims() -> None:
    """It is registered and has claimed one of its partitions."""
    step = "{node: billing/1, purpose: claim, nth: 1}"
    result = run(f"{{on: {step}, abandon: billing/1, for: 4s}}")

    (at_us,) = moments(result, EventKind.ABANDONED, "billing/1")
    requests = moments(result, EventKind.REQUEST, "billing/1")
    assert requests[-1] <= at_us
    assert result.verdict is Verdict.HOLDS, str(result)


def test_an_order_to_leave_has_no_effect_on_a_program_that_is_over() -> None:
    step = "{node: billing/1, purpose: claim}"
    result = run(f"{{on: {step}, abandon: billing/1}}", "{at: 20s, leave: billing/1}")

    assert result.verdict is not Verdict.HOLDS
    assert [effect.is_real for effect in result.effects] == [True, True, False]


def test_a_session_that_the_ensemble_ends_is_not_replaced() -> None:
    result = run("{at: 6s, abandon: billing/0}", "{at: 9s, expire: billing/0}")

    assert len(moments(result, EventKind.SESSION_OPENED, "billing/0")) == 1
    assert evidence(result, PROGRESS.name).startswith("billing was at rest")


# --- the judges ------------------------------------------------------------------------


def test_a_registration_without_a_program_is_no_member() -> None:
    """Nothing has to be covered for a group of which only a session is left."""
    result = run("{on: {node: billing/0, purpose: claim}, abandon: billing/0}", consumers=1)

    cover = next(finding for finding in result.findings if finding.claim is COVER)
    assert (cover.verdict, cover.exercised) == (Verdict.UNKNOWN, 0)


@pytest.mark.parametrize("variant", ["hardened", "kafka_08", "kafka_07", "documented_ceil"])
def test_its_partitions_have_no_reader_and_the_evidence_says_why(variant: str) -> None:
    result = run("{at: 6s, abandon: billing/0}", variant=variant)

    assert COVER.name in result.violated
    cover = evidence(result, COVER.name)
    assert "(no member; the session of billing/0 claims it)" in cover
    assert "the program of billing/0 ended without closing its session" in cover
    progress = evidence(result, PROGRESS.name)
    assert "the program of billing/0 is over, and its session claims 2 partitions" in progress


def test_the_failure_has_a_signature_of_its_own() -> None:
    cover = next(
        finding
        for finding in run("{at: 6s, abandon: billing/0}").findings
        if finding.claim is COVER
    )
    assert cover.shape.endswith("and the session of a member outlives its program")


def test_who_is_a_member_follows_the_program_and_not_the_registration() -> None:
    scenario = load("session-outlives-member")
    result = simulate(scenario)
    history = History(scenario.plan("hardened"))
    seen = []
    for event in result.trace:
        if event.kind in history.handlers:
            history.handlers[event.kind](event)
        if event.node == "billing/0" and event.kind in (EventKind.ABANDONED, EventKind.ENDED):
            registered = bool(history.registered["billing/0"])
            seen.append((history.is_member("billing/0"), registered))
    assert seen == [(False, True), (False, True)]


def test_the_pages_show_a_session_without_a_program() -> None:
    trace = simulate("session-outlives-member").trace

    (outlived,) = (
        state for state in process_states(trace)["billing/0"] if state.what == OUTLIVED
    )
    assert (outlived.start_us, outlived.end_us) == (12_000_000, 26_000_000)


# --- the search ------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["hardened", "kafka_08"])
@pytest.mark.parametrize("reduces", [True, False])
def test_a_search_finds_the_partitions_without_a_reader(variant: str, *, reduces: bool) -> None:
    """Nothing but its process ends the session, so no converged state follows."""
    plan = small(variant, layout="0.8" if variant == "kafka_08" else "0.7")
    _, search, found = searched(plan, {"abandon": 1}, reduces=reduces)

    assert (found.stopped, violated(found)) == ("", [COVER.name])
    assert violation_of(judge(search)) is not None


def test_an_end_of_the_process_lets_the_group_converge() -> None:
    """Beside a live member, a session that outlives its program has no ephemerals any more."""
    system, search, found = searched(small(), {"abandon": 1, "crash": 1})

    assert violated(found) == [COVER.name]
    phases = set()
    for number in range(len(search.good.values)):
        if search.good.values[number]:
            state = search.state(number)
            owners = {node.owner for node in system.service.trees[state[0]].nodes.values()}
            values = system.values(state)
            consumers = [local for name, local in values.items() if name.startswith("billing")]
            if "running" in {local.phase for local in consumers}:
                outlived = {local.session for local in consumers if local.phase == "abandoned"}
                assert owners.isdisjoint(outlived)
                phases.update(local.phase for local in consumers)
    assert phases == {"running", "gone", "abandoned"}


def test_the_simulation_follows_the_counterexample() -> None:
    plan, bounds = small(partitions=3), Bounds({"abandon": 1}, begin="settled")
    violates, steps = counterexample(plan, bounds)

    replayed = replay_sim(plan, bounds, Schedule(violates, steps, ()))

    assert violates == COVER.name
    assert (replayed.conforms, replayed.reached) == (True, True), replayed.text


@pytest.mark.parametrize(
    ("entry", "kinds"),
    [
        ("{at: 6s, abandon: billing/0}", {"abandon": 1}),
        ("{at: 6s, abandon: billing/0, for: 2s}", {"crash": 1}),
    ],
)
def test_bounds_follow_from_the_timeline(entry: str, kinds: dict[str, Any]) -> None:
    """A process that ends later is a crash whose session expires late: a search has no clock."""
    text = TEXT.format(consumers=2, entries=f"  - {entry}")
    assert of_timeline(from_text("a.yaml", text).plan("hardened")).bounds.faults == kinds


OVER = "the program of billing/0 ended by timeline[1]; only its process and its session go on"


# --- the timeline ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            ("{at: 6s, abandon: billing/0}", "{at: 8s, leave: billing/0}"),
            OVER,
        ),
        (
            ("{at: 6s, abandon: billing/0}", "{at: 8s, abandon: billing/0}"),
            OVER,
        ),
        (
            ("{at: 6s, abandon: billing/0}", "{at: 8s, restart: billing/0}"),
            "billing/0 runs already at that time",
        ),
        (
            ("{at: 6s, abandon: billing/0, for: 1s}", "{at: 8s, crash: billing/0}"),
            "billing/0 does not run at that time: it ended by timeline[1]",
        ),
        (
            ("{at: 6s, crash: billing/0}", "{at: 8s, abandon: billing/0}"),
            "billing/0 does not run at that time: it ended by timeline[1]",
        ),
    ],
)
def test_contradictions_are_refused(entries: tuple[str, ...], message: str) -> None:
    lines = "\n".join(f"  - {entry}" for entry in entries)
    with pytest.raises(ScenarioError) as refused:
        from_text("a.yaml", TEXT.format(consumers=2, entries=lines)).plan("hardened")
    assert message in str(refused.value)
