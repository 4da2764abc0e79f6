"""Signatures tell failures apart, and nothing else; intervals are those of Wilson."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import HOME
from watchkeeper import simulate
from watchkeeper.model.judgement.expectations import Expected
from watchkeeper.model.judgement.judge import Judgement
from watchkeeper.model.judgement.signature import doubt_of, signatures_of
from watchkeeper.model.properties.verdicts import Finding, Property, Verdict
from watchkeeper.model.sweep_summary import Share

SHOWN = (
    ("session-expiry", "kafka_07"),
    ("consumer-crash", "documented"),
    ("rolling-upgrade", "documented"),
)
"""Scenarios and variants that violate something."""

THREE_GROUPS = HOME / "bench" / "three_groups.yaml"
NAMES = ("billing", "search", "audit", "clicks", "views", "orders")


def test_a_kind_of_failure_is_one_class_for_all_groups_and_topics() -> None:
    """Three groups with a mistake each, in thirty runs: a class names no group and no topic."""
    found: set[str] = set()
    for seed in range(30):
        found.update(signatures_of(simulate(THREE_GROUPS, seed=seed).findings))

    assert found == {
        "truthful registry: a member fetches a partition whose claim belongs to another member",
        "truthful registry: a member fetches a partition whose claim belongs to no member",
        "full cover: no member of a group at rest fetches a partition",
        "single ownership: several members with live sessions fetch one partition",
    }


@pytest.mark.parametrize("variant", ["documented", "kafka_07"])
def test_no_signature_names_what_differs(variant: str, tmp_path: Path) -> None:
    """No group, no topic, no number, in three groups that run the protocols of Kafka."""
    text = re.sub(r"\n    variant: .*", "", THREE_GROUPS.read_text())
    file = tmp_path / "three.yaml"
    file.write_text(text)
    found: set[str] = set()
    for seed in range(6):
        found.update(signatures_of(simulate(file, seed=seed, variant=variant).findings))

    assert found
    for signature in found:
        assert not re.search(r"\d", signature), signature
        assert not any(name in signature for name in NAMES), signature


def test_every_kind_of_violation_has_a_shape() -> None:
    """Else its class would be its evidence, with names and moments."""
    for scenario, variant in SHOWN:
        violated = [
            finding
            for finding in simulate(scenario, variant=variant, seed=1).findings
            if finding.verdict is Verdict.VIOLATED
        ]
        assert violated, scenario
        assert all(finding.shape for finding in violated)


def test_a_delivery_to_any_group_is_one_kind() -> None:
    """The property is judged for each group; its failure is one class."""
    shape = "messages are lost, beyond the guarantee"
    of_groups = [
        Property(f"delivery to {group}", "end", "", family="delivery")
        for group in ("billing", "audit")
    ]
    findings = [
        Finding(name, Verdict.VIOLATED, f"{at} messages lost", shape=shape)
        for at, name in enumerate(of_groups)
    ]

    assert signatures_of(findings) == (f"delivery: {shape}",)


def test_different_failures_have_different_signatures() -> None:
    """Two ways in which the design pages fail are distinguished, over seeds that show both."""
    found = defaultdict(set)
    for seed in range(12):
        result = simulate("consumer-crash", variant="documented", seed=seed)
        found[tuple(result.violated)].add(signatures_of(result.findings))

    assert len(found) == 2
    assert all(len(signatures) == 1 for signatures in found.values())
    assert len(set.union(*found.values())) == 2


CLAIM = Property("cover", "at rest", "")
HAPPENS = Property("sometimes: it", "sometimes", "")


def judgement(*findings: Finding) -> Judgement:
    """A judgement of nothing but findings."""
    return Judgement(findings, (), {})


def test_what_does_not_count_has_no_signature() -> None:
    """Nor has what holds; what is unknown is distinguished."""
    aside = Finding(CLAIM, Verdict.VIOLATED, "at 3 s", counts=False)
    fine = Finding(CLAIM, Verdict.HOLDS, "2 times")
    open_one = Finding(HAPPENS, Verdict.UNKNOWN, "it never happened")

    assert signatures_of([aside, fine, open_one]) == ()
    assert doubt_of([aside, fine, open_one]) == "sometimes: it: it never happened"


@pytest.mark.parametrize(
    ("expected", "violated", "met"),
    [
        (Expected(), (), True),
        (Expected(), ("cover",), False),
        (Expected(("cover",)), ("cover",), True),
        (Expected(("cover",)), (), False),
        (Expected(may=("cover",)), ("cover",), True),
        (Expected(("cover",), ("balance",)), ("balance",), False),
    ],
)
def test_what_is_expected(expected: Expected, violated: tuple[str, ...], met: bool) -> None:
    """All that must be violated is, and nothing else but what may be."""
    claims = [Property(name, "always", "") for name in violated]
    found = judgement(*(Finding(claim, Verdict.VIOLATED, "") for claim in claims))

    assert expected.met_by(found) is met


def test_what_is_open_is_neither_met_nor_unmet() -> None:
    """As long as the run does not show what it is about."""
    violated = Finding(CLAIM, Verdict.VIOLATED, "")
    open_one = Finding(HAPPENS, Verdict.UNKNOWN, "")

    assert Expected(("cover",)).met_by(judgement(violated, open_one)) is None


@pytest.mark.parametrize(
    ("number", "runs", "low", "high"),
    [  # the examples of Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_intervals_are_those_of_wilson(number: int, runs: int, low: float, high: float) -> None:
    """Against figures that were published."""
    assert Share(number, runs).interval == pytest.approx((1000 * low, 1000 * high), abs=0.06)


@given(st.integers(1, 10**6).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))))
def test_an_interval_holds_what_was_seen(pair: tuple[int, int]) -> None:
    """The density lies in it, and it lies between none and all."""
    share = Share(*pair)
    low, high = share.interval

    assert 0 <= low <= share.density + 1e-9
    assert share.density - 1e-9 <= high <= 1000


def test_of_no_runs_nothing_is_known() -> None:
    """The interval is everything."""
    assert Share(0, 0).interval == (0.0, 1000.0)
    assert Share(0, 0).density == 0.0
