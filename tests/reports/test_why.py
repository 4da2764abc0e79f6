"""Why a property is violated: the chains of events that led there."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from watchkeeper import simulate
from watchkeeper.api.result import Result
from watchkeeper.model.mutants.catalogue import MUTANTS
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event
from watchkeeper.reports.why.chain import MOST_LINES, chains
from watchkeeper.scenarios import load, shipped

REASONS = [
    (
        "gc-pause-zombie",
        "kafka_08",
        "single ownership",
        [
            "billing/1 stood still for 6.00 s",
            "the session of billing/1 expired, and the claim on clicks/2 went with it",
            "billing/0 heard of that and began a rebalance",
            "billing/0 claimed clicks/2 and began to fetch it",
            "billing/1 went on, and still fetched clicks/2",
            "billing/1 had a new session, and still fetched clicks/2",
        ],
    ),
    (
        "consumer-crash",
        "documented",
        "single ownership",
        [
            "billing/1 registered",
            "billing/0 heard of that and began a rebalance",
            "billing/0 released clicks/1-1, and went on fetching it until",
            "billing/1 claimed clicks/1-1 and began to fetch it",
        ],
    ),
    (
        "consumer-restart-same-id",
        "kafka_07",
        "truthful registry",
        [
            "billing/0 claimed clicks/0-0",
            "billing/0 was killed",
            "billing/0 read the claim on clicks/0-0: billing_c0-0, and took it as its own",
            "billing/0 began to fetch clicks/0-0 without a claim of its own",
        ],
    ),
    (
        "partition-added",
        "kafka_07",
        "full cover",
        [
            "billing/1 computed its share: clicks/1-0, clicks/1-1, without clicks/0-2",
            "broker/0 wrote /brokers/topics/clicks/0: 4; no watch of billing/0 and billing/1",
        ],
    ),
    (
        "late-requests",
        "kafka_08",
        "monotone offsets",
        [
            "the request of billing/2 to set the offset of clicks/4 got lost on its way",
            "billing/2 committed 512 for clicks/4",
            "billing/2 committed 479 for clicks/4",
        ],
    ),
    (
        "late-requests",
        "documented",
        "progress",
        [
            "the request of billing/1 to create the claim on clicks/1-0 got lost on its way",
            "billing/1 claimed clicks/1-0; that claim was still there",
            "billing/1 found clicks/1-0 claimed already, 17 times in all",
        ],
    ),
    (
        "controller-paused",
        "kafka_08",
        "no deposed writes",
        [
            "broker/0 stood still for 8.00 s",
            "broker/2 raised the controller epoch to 2",
            "broker/0 went on",
            "broker/0 wrote the state of clicks/1: leader 2, ISR [2]",
        ],
    ),
    (
        "controller-epoch-reply-lost",
        "kafka_08",
        "one controller an epoch",
        [
            "broker/1 raised the controller epoch to 2, and the reply was lost",
            "broker/1 wrote the state of clicks/0",
        ],
    ),
    (
        "leader-and-successor-crash",
        "kafka_08",
        "confirmed is kept",
        [
            "broker/0 was killed",
            "broker/2 cut its log of clicks/0 at offset 77 and lost 2 messages",
            "broker/2 led clicks/0 from offset 77 on, in leader epoch 2",
        ],
    ),
    (
        "settings-changed-twice",
        "kafka_08",
        "settings are applied",
        [
            "broker/1 stood still for 3.00 s",
            "an operator created /config/changes/config_change_0000000000",
            "broker/1 read the settings of views",
        ],
    ),
    (
        "partitions-added-during-move",
        "kafka_08",
        "live leaders",
        [
            'administrator wrote /brokers/topics/clicks: {"partitions":{"0":[0,1],"1":[1,2],"2"',
            'broker/3 wrote /brokers/topics/clicks: {"partitions":{"0":[2,3,0,1],"1":[1,2]}',
        ],
    ),
    (
        "offset-before-claim",
        "kafka_07",
        "delivery to billing",
        [
            "billing/1 read the offset of orders/0-2: 168000",
            "billing/0 ceased to fetch orders/0-2 at offset 336000",
            "billing/1 began to fetch orders/0-2 at offset 168000",
        ],
    ),
    (
        "mirror-commits-first",
        "hardened",
        "delivery to reports",
        ["hub-east/1 committed 72600 for clicks/0-1", "hub-east/1 was killed"],
    ),
]


@pytest.mark.parametrize(("name", "variant", "claim", "reason"), REASONS)
def test_the_chain_of_a_shipped_scenario(
    name: str, variant: str, claim: str, reason: list[str]
) -> None:
    """The lines that tell why, in their order."""
    result = simulate(name, variant=variant)
    [chain] = [one for one in result.why if one.property == claim]
    texts = [line.text for line in chain.lines]
    places = [
        next((at for at, text in enumerate(texts) if text.startswith(part)), None)
        for part in reason
    ]
    assert None not in places, texts
    assert places == sorted(places, key=lambda at: at or 0)
    check_lines_against_the_trace(result)


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped())
def test_the_chains_of_every_shipped_violation(name: str) -> None:
    """Each violated property has a chain, and each of its lines is in the trace."""
    for variant, expected in load(name).expectations.items():
        if expected != "holds":
            check_lines_against_the_trace(simulate(name, variant=variant))


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_the_chains_of_mutants(name: str) -> None:
    """Other mistakes than the shipped ones are explained by the same rules."""
    for scenario in ("gc-pause-zombie", "late-requests", "consumer-restart-same-id"):
        layouts = {cluster.layout for cluster in load(scenario).plan(None).clusters}
        if layouts <= set(MUTANTS[name].variant.layouts):
            check_lines_against_the_trace(simulate(scenario, variant=name, seed=1))


def test_a_run_that_holds_has_no_chain() -> None:
    """There is nothing to explain."""
    result = simulate("consumer-crash")
    assert result.why == ()
    assert all("why" not in one for one in result.to_json()["properties"])


def test_the_verdict_has_the_chain_of_each_violated_property() -> None:
    """As JSON: moments in seconds, and the numbers of events."""
    result = simulate("gc-pause-zombie", variant="kafka_08")
    told = result.to_json()["properties"]
    assert {one["name"] for one in told if "why" in one} == {
        one.claim.name for one in result.findings if one.verdict is Verdict.VIOLATED
    }
    [why] = [one["why"] for one in told if one["name"] == "single ownership"]
    assert why["at_s"] == 20.081723
    assert result.trace[why["seq"]].t_us == 20_081_723
    assert why["lines"][0]["text"] == "billing/1 stood still for 6.00 s"


def test_an_interrupted_trace_is_explained_as_far_as_it_goes() -> None:
    """A chain needs nothing of what comes after its violation."""
    result = simulate("gc-pause-zombie", variant="kafka_08")
    [whole] = [one for one in result.why if one.property == "single ownership"]
    trace = type(result.trace)(result.trace.header, result.trace.rows[: whole.seq + 1])
    [cut] = [one for one in chains(trace, result.findings) if one.property == whole.property]
    assert cut == whole


# --- lines against the trace -----------------------------------------------------------


def check_lines_against_the_trace(result: Result) -> None:
    """Check that each violated property has lines, and that each names its own event."""
    violated = [one for one in result.findings if one.verdict is Verdict.VIOLATED]
    assert [chain.property for chain in result.why] == [one.claim.name for one in violated]
    for chain in result.why:
        assert 0 < len(chain.lines) <= MOST_LINES, chain.property
        assert [line.seq for line in chain.lines] == sorted({line.seq for line in chain.lines})
        for line in chain.lines:
            event = result.trace[line.seq]
            assert line.seq <= chain.seq
            assert event.t_us == line.t_us
            assert says(line.text, event), (line.text, event)


def says(text: str, event: Event) -> bool:
    """Whether a line says what its event is: the kind, and the process, offset or partition."""
    for pattern, kinds, is_it in PHRASES:
        found = re.search(pattern, text)
        if found:
            return event.kind in kinds and is_it(found, event)
    return event.node in text or str(event.detail.get("by")) in text


def _by(found: re.Match[str], event: Event) -> bool:
    return event.detail.get("by") == found[1]


def _node(found: re.Match[str], event: Event) -> bool:
    return event.node == found[1]


def _begins(found: re.Match[str], event: Event) -> bool:
    return event.detail["does"] == "begins" and (event.node, event.place) == found.groups()


def _commits(found: re.Match[str], event: Event) -> bool:
    path = f"/offsets/{found[3]}"
    return _by(found, event) and any(
        one[1].endswith(path) and one[3] == found[2] for one in event.detail["did"]
    )


def _deletes(found: re.Match[str], event: Event) -> bool:
    path = f"/owners/{found[2]}"
    return _by(found, event) and any(
        one[0] == "deleted" and one[1].endswith(path) for one in event.detail["did"]
    )


ENDS = (EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED)
PHRASES: list[tuple[str, tuple[EventKind, ...], Callable[[re.Match[str], Event], bool]]] = [
    (r"^the request of .* got lost", (EventKind.FAULT,), lambda *_: True),
    (r"^the session of (\S+) (?:expired|was closed)", ENDS, _by),
    (r"^(\S+) claimed (\S+) and began to fetch it", (EventKind.FETCHING,), _begins),
    (r"^(\S+) began to fetch (\S+?),? (?:which|without|at)", (EventKind.FETCHING,), _begins),
    (r"^(\S+) ceased to fetch", (EventKind.FETCHING,), _node),
    (r"^(\S+) released ([^\s,;]+)", (EventKind.APPLIED,), _deletes),
    (r"^(\S+) committed (-?\d+) for ([^\s,;]+)", (EventKind.APPLIED,), _commits),
    (r"^(\S+/\d+) claimed ", (EventKind.APPLIED,), _by),
    (r"^(\S+) committed offset", (EventKind.COMMITTED,), _node),
    (
        r"^(\S+) (?:stood still|was killed|was cut off|left)",
        (EventKind.FAULT, EventKind.CHANGE),
        lambda found, event: (
            found[1] == event.node or found[1] in event.detail.get("members", ())
        ),
    ),
    (r"^\S+ went on", (EventKind.FAULT_ENDED,), lambda *_: True),
    (r"^(\S+) had a new session", (EventKind.CONNECTED,), _node),
    (r"^(\S+) computed its share", (EventKind.ASSIGNED,), _node),
    (r"^(\S+) (?:heard of that and )?began a rebalance", (EventKind.REBALANCE_STARTED,), _node),
    (r"^(\S+) (?:read the (?!settings)|read /|found no )", (EventKind.RESPONSE,), _node),
    (r"^(\S+) cut its log", (EventKind.TRUNCATED,), _node),
    (r"^(\S+) (?:registered|raised the|wrote the state)", (EventKind.APPLIED,), _by),
]
"""What a line begins with, the kinds of event that it may be about, and what else has to fit."""
