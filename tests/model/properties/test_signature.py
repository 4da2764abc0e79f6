"""Signatures tell ways of failing apart, and nothing else; intervals are those of Wilson."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.expectations import Expected
from model.properties import Judgement
from model.signatures import doubt_of, shape, signature_of
from model.sweeps import Share
from model.verdicts import Finding, Property, Verdict
from watchkeeper import simulate

SHAPES = [
    (
        "at 20.082 s billing/0 and billing/1 fetch clicks/2 at once; their sessions are alive "
        "(2 times in all)",
        "at # billing/# fetch clicks/# at once; their sessions are alive",
    ),
    (
        "at rest at 27.000 s, 3 of 12 partitions were not fetched by exactly one member: "
        "clicks/0-1 (nobody), clicks/1-0 (nobody), clicks/2-1 (nobody) and 3 more",
        "at rest at # of # partitions were not fetched by exactly one member: clicks/#-# "
        "(nobody)",
    ),
    (
        "billing was not at rest 26.00 s after the last action; billing/0, billing/1, billing/2 "
        "and others had not come to rest; the bound is 3.02 s",
        "billing was not at rest # after the last action; billing/# had not come to rest; the "
        "bound is #",
    ),
    (
        "at 14.003 s billing_billing-0.example-1620000000-ab12cd34 deleted "
        "/consumers/billing/owners/clicks/0-1, an ephemeral of billing/2, whose session was "
        "alive",
        "at # billing_billing-#.example-# deleted /consumers/billing/owners/clicks/#-#, an "
        "ephemeral of billing/#, whose session was alive",
    ),
    (
        "billing: 1,200 attempts and 40 reads for 3 changes and 1 lost connections or sessions "
        "among 3 members; 12 attempts allowed",
        "billing: # attempts and # reads for # changes and # lost connections or sessions among "
        "# members; # attempts allowed",
    ),
    ("at rest at 2.000 s, a/0, a/1 and a/2 had decided", "at rest at #, a/# had decided"),
]


@pytest.mark.parametrize(("evidence", "said"), SHAPES)
def test_what_differs_from_seed_to_seed_is_left_out(evidence: str, said: str) -> None:
    """Times, numbers, which member, which partition, how many."""
    assert shape(evidence) == said


@given(st.lists(st.integers(0, 40), min_size=1, max_size=9), st.integers(1, 10**6))
def test_lists_of_any_length_have_one_shape(numbers: list[int], at: int) -> None:
    """It does not matter how many are named, nor which."""
    some = [f"clicks/{number}-{at} (nobody)" for number in numbers]
    said = ", ".join(some[:3]) + (f" and {len(some) - 3} more" if len(some) > 3 else "")

    assert shape(f"at {at / 1e3:.3f} s, {said}") == shape("at 1.000 s, clicks/1-1 (nobody)")


def test_different_failures_have_different_signatures() -> None:
    """Two ways in which the design pages fail are told apart, over seeds that show both."""
    found = defaultdict(set)
    for seed in range(12):
        result = simulate("consumer-crash", variant="documented", seed=seed)
        found[tuple(result.violated)].add(signature_of(result.findings))

    assert len(found) == 2
    assert all(len(signatures) == 1 for signatures in found.values())
    assert len(set.union(*found.values())) == 2


CLAIM = Property("cover", "at rest", "")
HAPPENS = Property("sometimes: it", "sometimes", "")


def judgement(*findings: Finding) -> Judgement:
    """A judgement of nothing but findings."""
    return Judgement(findings, (), {})


def test_what_does_not_count_has_no_signature() -> None:
    """Nor has what holds; what is unknown is told apart."""
    aside = Finding(CLAIM, Verdict.VIOLATED, "at 3 s", counts=False)
    fine = Finding(CLAIM, Verdict.HOLDS, "2 times")
    open_one = Finding(HAPPENS, Verdict.UNKNOWN, "it never happened in 3 s")

    assert signature_of([aside, fine, open_one]) == ""
    assert doubt_of([aside, fine, open_one]) == "sometimes: it: it never happened in #"


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
