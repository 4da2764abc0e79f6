"""Failure signatures: the kind of a failure, independent of the run that shows it.

A signature is a property, and the shape of the evidence against it. The judges give the shape
with the evidence: it names no group, member, topic, moment or number. A run has a signature for
each property that it violates, so a frequent failure does not hide a rare one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from watchkeeper.model.properties.verdicts import Finding, Verdict

BETWEEN = " | "
"""Between the doubts of a run."""


def signatures_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The signatures of a run's failures; none if no property that counts is violated."""
    return tuple(dict.fromkeys(_shapes(findings, Verdict.VIOLATED)))


def doubt_of(findings: Iterable[Finding]) -> str:
    """The reason for an unknown verdict; empty if no property that counts is unknown."""
    return BETWEEN.join(dict.fromkeys(_shapes(findings, Verdict.UNKNOWN)))


def _shapes(findings: Iterable[Finding], verdict: Verdict) -> Iterator[str]:
    for finding in findings:
        if finding.counts and finding.verdict is verdict:
            yield f"{finding.claim.base}: {finding.shape or finding.evidence}"
