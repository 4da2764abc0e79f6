"""Every property has a run that it must fail, and one that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import mutant_consumers as bad
from tests.support.mutant_consumers import scenario
from watchkeeper import Result, Verdict, simulate
from watchkeeper.model.judgement.judge import PROPERTIES
from watchkeeper.model.properties.verdicts import Finding

LAST = "group/1"
"""The process that acts alone, where only one does."""


def finding(result: Result, name: str) -> Finding:
    """What was found about a property."""
    return next(
        finding for finding in result.findings if finding.claim.name.split(":")[0] == name
    )


PAUSE = {"at": "5s", "pause": "group/0", "for": "5s"}

VIOLATIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "single ownership": (bad.fetches_with_the_others, {}),
    "strict single ownership": (None, {"timeline": [PAUSE], "strict": True}),
    "truthful registry": (bad.fetches_unclaimed, {"only": LAST}),
    "own nodes only": (bad.removes_what_is_not_its_own, {"only": LAST}),
    "monotone offsets": (bad.commits_backwards, {"only": LAST}),
    "full cover": (bad.fetches_one_of_two, {"only": LAST}),
    "consensus": (bad.shares_with_all, {}),
    "agreed view": (bad.decides_by_itself, {}),
    "balance": (bad.takes_everything, {"only": LAST}),
    "progress": (bad.never_rests, {}),
    "work bound": (bad.rebalances_without_end, {}),
    "sometimes": (None, {"sometimes": [{"event": "session expired"}]}),
    "never": (None, {"never": [{"event": "rebalance completed"}]}),
    "faults struck": (
        None,
        {
            "timeline": [
                {"on": {"node": "group/0", "purpose": "claim", "nth": 900}, "lose": "reply"}
            ]
        },
    ),
}
"""Property -> the consumer that breaks it, or None for the shipped one, and how."""

UNKNOWN_AT_WORST = frozenset({"sometimes", "faults struck"})
"""What did not happen refutes nothing; it only shows nothing."""


def run(name: str) -> Result:
    """The run that breaks a property."""
    act, settings = VIOLATIONS[name]
    fields = {key: value for key, value in settings.items() if key != "only"}
    program = None if act is None else bad.consumer_that(act, only=settings.get("only", ""))
    return simulate(scenario(**fields), consumer=program)


def test_every_property_has_its_counter_example() -> None:
    """A new property needs a run here that it must fail."""
    assert set(VIOLATIONS) == {item.name for item in PROPERTIES} | {
        "sometimes",
        "never",
        "faults struck",
    }


@pytest.mark.parametrize("name", VIOLATIONS)
def test_is_violated(name: str) -> None:
    """The counter-example is caught, and the evidence says what happened."""
    result = run(name)
    found = finding(result, name)
    worst = Verdict.UNKNOWN if name in UNKNOWN_AT_WORST else Verdict.VIOLATED
    assert found.verdict is worst, result
    assert result.verdict is (
        Verdict.VIOLATED if worst is Verdict.VIOLATED else Verdict.UNKNOWN
    ), result
    assert len(found.evidence) > 20, found.evidence


@pytest.mark.parametrize("name", [item.name for item in PROPERTIES])
def test_holds_for_the_shipped_consumer(name: str) -> None:
    """The same cluster, with nothing broken."""
    assert finding(simulate(scenario()), name).verdict is Verdict.HOLDS


EVIDENCE = {
    "single ownership": ["group/0", "group/1", "clicks/0-0"],
    "truthful registry": ["group/1", "clicks/0-"],
    "own nodes only": ["group/1", "/consumers/group/ids/group_c0", "group/0"],
    "monotone offsets": ["group/1", "5", "9", "clicks/0-0"],
    "full cover": ["clicks/0-1", "no member"],
    "consensus": ["group/0 and group/1", "clicks/0-0", "2 partitions were"],
    "agreed view": ["group/0", "group/1", "clicks"],
    "balance": ["group/1-0", "2", "group/0-0"],
    "progress": ["group", "was not at rest"],
    "work bound": ["attempts"],
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_the_evidence_names_who_and_what(name: str) -> None:
    """One sentence from which a reader can go on."""
    message = finding(run(name), name).evidence
    for word in EVIDENCE[name]:
        assert word in message, message


def test_a_violation_outweighs_what_is_unknown() -> None:
    """A run is violated even where something else in it stays unknown."""
    program = bad.consumer_that(bad.commits_backwards, only=LAST)
    wanted = scenario(sometimes=[{"event": "session expired"}])
    result = simulate(wanted, consumer=program)
    assert result.verdict is Verdict.VIOLATED
    assert finding(result, "sometimes").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("clause", "verdict"),
    [
        ({"event": "fetching", "partition": "clicks/0-0"}, Verdict.VIOLATED),
        ({"event": "fetching", "partition": "clicks/7-0"}, Verdict.HOLDS),
        ({"event": "fetching", "detail": {"does": "begins"}}, Verdict.VIOLATED),
        ({"event": "fetching", "detail": {"does": "flies"}}, Verdict.HOLDS),
        ({"event": "fetching", "detail": {"partition": "clicks/0-0"}}, Verdict.UNKNOWN),
        ({"event": "session expired", "detail": {"why": "late"}}, Verdict.HOLDS),
    ],
)
def test_a_field_that_no_event_has_excludes_nothing(
    clause: dict[str, Any], verdict: Verdict
) -> None:
    """Such a clause could not fail, whatever happens."""
    found = finding(simulate(scenario(never=[clause])), "never")
    assert found.verdict is verdict
    if verdict is Verdict.UNKNOWN:
        assert "no event of this kind has a field 'partition'" in found.evidence


def test_strict_ownership_counts_only_where_requested() -> None:
    """The strict form is always shown; it decides only if the scenario says so."""
    lenient = simulate(scenario(timeline=[PAUSE]))
    strict = simulate(scenario(timeline=[PAUSE], strict=True))
    name = "strict single ownership"
    assert finding(lenient, name).verdict is finding(strict, name).verdict is Verdict.VIOLATED
    assert lenient.verdict is Verdict.HOLDS
    assert strict.verdict is Verdict.VIOLATED


def test_nothing_is_known_of_a_group_that_never_rests() -> None:
    """Properties at rest need a rest."""
    result = simulate(scenario(), consumer=bad.consumer_that(bad.never_rests))
    for name in ("full cover", "consensus", "agreed view", "balance"):
        assert finding(result, name).verdict is Verdict.UNKNOWN


def test_too_short_a_settle_leaves_progress_unknown() -> None:
    """A run that ends before the bound has shown nothing, and says so."""
    result = simulate(scenario(timeline=[{"at": "5s", "crash": "group/0"}], settle="1s"))
    found = finding(result, "progress")
    assert found.verdict is Verdict.UNKNOWN
    assert "settle for longer" in found.evidence


LEAVES = {"at": "8s", "leave": "group/1"}


def test_shares_that_overlap_violate_consensus_although_the_view_is_one() -> None:
    """What members saw is the same; what they made of it is not."""
    result = run("consensus")
    assert finding(result, "agreed view").verdict is Verdict.HOLDS
    assert finding(result, "consensus").verdict is Verdict.VIOLATED


def test_a_process_may_go_on_after_its_member_has_left() -> None:
    """It had a command to leave, closed its session, and owes its group nothing any more."""
    stays = simulate(
        scenario(timeline=[LEAVES], settle="20s"), consumer=bad.consumer_that_stays()
    )

    assert "ended" not in {event.kind for event in stays.trace}
    for name in ("full cover", "consensus", "agreed view", "balance", "progress"):
        assert finding(stays, name).verdict is Verdict.HOLDS, stays


def test_a_member_that_stays_registered_is_a_member() -> None:
    """Both stay despite the command to leave: they have to fetch the partitions of the group."""
    timeline = [LEAVES, {"at": "8s", "leave": "group/0"}]
    result = simulate(
        scenario(timeline=timeline, settle="20s"), consumer=bad.consumer_that(bad.does_nothing)
    )

    assert finding(result, "progress").verdict is Verdict.HOLDS
    found = finding(result, "full cover")
    assert found.verdict is Verdict.VIOLATED
    assert "2 times" in found.evidence
