"""Signatures: in which way a run failed, whatever its seed made of it.

Two runs failed in the same way if the same properties are violated and their evidence names
the same things. What differs from seed to seed is left out of the evidence: times, numbers,
which member of a group, which partition of a topic, and how many of them a list names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from model.verdicts import Finding, Verdict

NUMBER = "#"
BETWEEN = " | "
"""Between the properties of a signature."""

_TIMES = re.compile(r" \(\d+ times in all\)$")
_DRAWN = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"  # a uuid
    r"|(?<=-)\d{4,}-[0-9a-f]{8}\b"  # the moment and the chance in an id of Kafka's
    r"|\b0x[0-9a-f]+\b"
)
_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?: (?:us|ms|s)\b)?")
_MORE = re.compile(rf" and (?:{NUMBER} more|others)\b")
_REPEATED = re.compile(r"([^\s,;][^,;]*?)(?:(?:, | and )\1(?=$|[\s,;)]))+")


def signature_of(findings: Iterable[Finding]) -> str:
    """In which way a run failed; empty where nothing that counts is violated."""
    return _told(findings, Verdict.VIOLATED)


def doubt_of(findings: Iterable[Finding]) -> str:
    """Why nothing can be said of a run; empty where nothing that counts is unknown."""
    return _told(findings, Verdict.UNKNOWN)


def _told(findings: Iterable[Finding], verdict: Verdict) -> str:
    return BETWEEN.join(
        f"{one.claim.name}: {shape(one.evidence)}"
        for one in findings
        if one.counts and one.verdict is verdict
    )


def shape(evidence: str) -> str:
    """A sentence of evidence without what differs from seed to seed."""
    said = _TIMES.sub("", evidence)
    said = _NUMBER.sub(NUMBER, _DRAWN.sub(NUMBER, said))
    said = _MORE.sub("", said)
    before = ""
    while said != before:
        before, said = said, _REPEATED.sub(r"\1", said)
    return said
