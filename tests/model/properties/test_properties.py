"""Every property has a run that it must fail, and one that it must not."""

from __future__ import annotations

from typing import Any

import pytest

from model.properties import PROPERTIES
from model.verdicts import Finding
from tests import bad_consumers as bad
from watchkeeper import Result, Verdict, simulate

LAST = "group/1"
"""The process that acts alone, where only one does."""


def scenario(*, settle: str = "14s", **fields: Any) -> dict[str, Any]:
    """One broker, two partitions, two consumers, nothing else."""
    return {
        "name": "broken",
        "about": "a rule is broken",
        "clusters": {
            "main": {
                "layout": "0.7",
                "brokers": 1,
                "topics": {"clicks": {"partitions_per_broker": 2}},
            }
        },
        "groups": {
            "group": {
                "consumers": 2,
                "streams": {"clicks": 1},
                "config": {"zookeeper.session.timeout.ms": 2000, "auto.commit.interval.ms": 1000},
            }
        },
        "timeline": [{"at": "0s", "produce": "clicks", "rate": "10/s"}],
        "settle": settle,
        **fields,
    }


def finding(result: Result, name: str) -> Finding:
    """What was found about a property."""
    return next(one for one in result.findings if one.claim.name.split(":")[0] == name)


PAUSE = {"at": "5s", "pause": "group/0", "for": "5s"}

VIOLATIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "single ownership": (bad.fetches_with_the_others, {}),
    "strict single ownership": (None, {"timeline": [PAUSE], "strict": True}),
    "truthful registry": (bad.fetches_unclaimed, {"only": LAST}),
    "own nodes only": (bad.removes_what_is_not_its_own, {"only": LAST}),
    "monotone offsets": (bad.commits_backwards, {"only": LAST}),
    "full cover": (bad.fetches_one_of_two, {"only": LAST}),
    "consensus": (bad.decides_by_itself, {}),
    "balance": (bad.takes_everything, {"only": LAST}),
    "progress": (bad.never_rests, {}),
    "work bound": (bad.rebalances_without_end, {}),
    "sometimes": (None, {"sometimes": [{"event": "session expired"}]}),
    "never": (None, {"never": [{"event": "rebalance ends"}]}),
    "faults struck": (
        None,
        {"timeline": [{"on": {"node": "group/0", "asks": "claim", "nth": 900}, "lose": "reply"}]},
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
    assert set(VIOLATIONS) == {one.name for one in PROPERTIES} | {
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


@pytest.mark.parametrize("name", [one.name for one in PROPERTIES])
def test_holds_for_the_shipped_consumer(name: str) -> None:
    """The same cluster, with nothing broken."""
    assert finding(simulate(scenario()), name).verdict is Verdict.HOLDS


EVIDENCE = {
    "single ownership": ["group/0", "group/1", "clicks/0-0"],
    "truthful registry": ["group/1", "clicks/0-"],
    "own nodes only": ["group/1", "/consumers/group/ids/group_c0", "group/0"],
    "monotone offsets": ["group/1", "5", "9", "clicks/0-0"],
    "full cover": ["clicks/0-1", "nobody"],
    "consensus": ["group/0", "group/1", "clicks"],
    "balance": ["group/1-0", "2", "group/0-0"],
    "progress": ["group", "was not at rest"],
    "work bound": ["attempts"],
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_the_evidence_names_who_and_what(name: str) -> None:
    """One sentence from which a reader can go on."""
    said = finding(run(name), name).evidence
    for word in EVIDENCE[name]:
        assert word in said, said


def test_a_violation_outweighs_what_is_unknown() -> None:
    """A run is violated even where something else in it stays unknown."""
    program = bad.consumer_that(bad.commits_backwards, only=LAST)
    wanted = scenario(sometimes=[{"event": "session expired"}])
    result = simulate(wanted, consumer=program)
    assert result.verdict is Verdict.VIOLATED
    assert finding(result, "sometimes").verdict is Verdict.UNKNOWN


def test_strict_ownership_counts_only_where_asked_for() -> None:
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
    for name in ("full cover", "consensus", "balance"):
        assert finding(result, name).verdict is Verdict.UNKNOWN


def test_too_short_a_settle_leaves_progress_unknown() -> None:
    """A run that ends before the bound has shown nothing, and says so."""
    result = simulate(scenario(timeline=[{"at": "5s", "crash": "group/0"}], settle="1s"))
    found = finding(result, "progress")
    assert found.verdict is Verdict.UNKNOWN
    assert "settle for longer" in found.evidence
