"""Runs of a test in another process: the seeds that it gets, and what it sends back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.virtual.schedule.policies import parse_policy
from watchkeeper.virtual.world.campaign import Campaign
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.replay import find_case


@dataclass(frozen=True, slots=True)
class Brief:
    """What a run has shown, in a few values that can be sent."""

    seed: int
    verdict: Verdict
    violated: tuple[str, ...]
    unknown: tuple[str, ...]
    fingerprint: str
    struck: tuple[str, ...]
    """Each fault that was drawn and had an effect."""
    drawn: tuple[str, ...]


def brief_of(outcome: Outcome) -> Brief:
    """The few values of a run that its verdict needs."""
    return Brief(
        outcome.seed,
        outcome.verdict,
        tuple(finding.claim.name for finding in outcome.violated),
        tuple(
            f"{finding.claim.name}: {finding.evidence}"
            for finding in outcome.findings
            if finding.verdict is Verdict.UNKNOWN and finding.counts
        ),
        outcome.fingerprint,
        tuple(each.strike.fault.kind.value for each in outcome.struck if each.effects),
        tuple(each.strike.fault.kind.value for each in outcome.struck),
    )


@dataclass(frozen=True, slots=True)
class Part:
    """Some seeds of a test."""

    number: int
    file: str
    """The file of the test, which the other process can read too."""
    test: str
    policy: str
    seeds: Sequence[int]


def run_part(part: Part) -> list[Brief]:
    """Run the seeds of a part, in a process of its own."""
    campaign = Campaign(find_case(Path(part.file), part.test), parse_policy(part.policy))
    return [brief_of(campaign.run(seed)) for seed in part.seeds]
