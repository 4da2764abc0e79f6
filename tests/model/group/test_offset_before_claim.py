"""A member that reads an offset before it owns the claim repeats or loses messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from watchkeeper.model.group.variants import VARIANTS, Step, Variant
from watchkeeper.model.judgement.judge import Judgement, judge
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.scenarios import load
from watchkeeper.sim.world import simulate

SEEDS = (0, 1)
OF_GROUPS = ("delivery to billing", "delivery to search")


def judged(plan: Plan, seed: int) -> Judgement:
    done = simulate(plan, seed)
    return judge(plan, done.trace, done.effects)


def plan_for(variant: Variant) -> Plan:
    """The scenario, with these consumers."""
    plan = load("offset-before-claim").plan("hardened")
    groups = tuple(
        replace(
            group,
            consumers=tuple(replace(consumer, variant=variant) for consumer in group.consumers),
        )
        for group in plan.groups
    )
    return replace(plan, groups=groups)


def exchanged(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The same with the reading of offsets and the claiming exchanged; nothing if it has none."""
    if "read offsets" not in steps:
        return steps
    claim = next(step for step in steps if step.startswith("9 claim"))
    exchange: dict[Step, Step] = {"read offsets": claim, claim: "read offsets"}
    return tuple(exchange.get(step, step) for step in steps)


def the_other_way(name: str) -> Variant:
    variant = VARIANTS[name]
    return replace(
        variant,
        steps=exchanged(variant.steps),
        steps_when_freed=exchanged(variant.steps_when_freed),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_hardened_hands_everything_on_once(seed: int) -> None:
    judgement = judged(plan_for(VARIANTS["hardened"]), seed)
    assert judgement.verdict is Verdict.HOLDS, judgement.findings
    for name in OF_GROUPS:
        assert "again" not in judgement.finding(name).evidence


@pytest.mark.parametrize("seed", SEEDS)
def test_kafka_07_repeats_and_commits_what_is_lower(seed: int) -> None:
    judgement = judged(plan_for(VARIANTS["kafka_07"]), seed)
    assert judgement.violated() == ["monotone offsets", *OF_GROUPS]
    for name in OF_GROUPS:
        assert "again" in judgement.finding(name).evidence
    assert judgement.finding("faults struck").verdict is Verdict.HOLDS


@pytest.mark.parametrize("seed", SEEDS)
def test_kafka_07_that_claims_first_repeats_nothing(seed: int) -> None:
    """One step earlier, and the same faults do no harm."""
    assert judged(plan_for(the_other_way("kafka_07")), seed).verdict is Verdict.HOLDS


@pytest.mark.parametrize("seed", SEEDS)
def test_hardened_that_reads_first_repeats_and_loses(seed: int) -> None:
    """It commits no place before it has come somewhere: the next one begins at the end."""
    judgement = judged(plan_for(the_other_way("hardened")), seed)
    billing, search = (judgement.finding(name) for name in OF_GROUPS)
    assert (billing.verdict, search.verdict) == (Verdict.VIOLATED, Verdict.VIOLATED)
    assert "again" in billing.evidence
    assert "lost (0 never stored" in search.evidence
