"""What one run has shown: its verdict, its findings, and all that repeats it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from watchkeeper.model.ensemble.words import VERSION
from watchkeeper.model.properties.verdicts import Finding, Verdict
from watchkeeper.model.trace.trace import Header, Row, Trace
from watchkeeper.virtual.threads.task import Schedule
from watchkeeper.virtual.world.faults import Strike
from watchkeeper.virtual.zookeeper.record import without_line

WORLD = "virtual"


@dataclass(frozen=True, slots=True)
class Struck:
    """A strike of the plan, and what it had as effects."""

    strike: Strike
    at_us: int | None
    effects: dict[str, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one run."""

    test: str
    seed: int
    policy: str
    findings: tuple[Finding, ...]
    plan: tuple[Strike, ...]
    struck: tuple[Struck, ...]
    schedule: Schedule
    rows: Sequence[Row]
    requests: int
    turns: int
    steps: int
    end_us: int
    until_s: float
    """When it would have ended at the latest."""
    deaths: tuple[str, ...]
    """The threads that ended by an exception, a sentence each."""
    tracebacks: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Violated if a property is, else unknown if one is, else holds."""
        verdicts = [finding.verdict for finding in self.findings if finding.counts]
        for verdict in (Verdict.VIOLATED, Verdict.UNKNOWN):
            if verdict in verdicts:
                return verdict
        return Verdict.HOLDS

    @property
    def violated(self) -> tuple[Finding, ...]:
        """The findings of properties that are violated, the earliest first."""
        found = [
            each for each in self.findings if each.counts and each.verdict is Verdict.VIOLATED
        ]
        return tuple(sorted(found, key=lambda each: each.at_us or 0))

    @property
    def trace(self) -> Trace:
        """The events, in the project's format."""
        return Trace(self._header, list(self.rows))

    @property
    def _header(self) -> Header:
        return Header(self.test, self.policy, WORLD, self.seed, {"zookeeper": VERSION})

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the events, without lines of code, and of the number of decisions."""
        happened = Trace(self._header, list(map(without_line, self.rows)))
        digest = hashlib.sha256(happened.fingerprint.encode())
        digest.update(f"{self.turns} {self.steps} {self.end_us}".encode())
        return digest.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The value that commands print for it."""
        return {
            "test": self.test,
            "seed": self.seed,
            "policy": self.policy,
            "verdict": self.verdict.value,
            "findings": [finding.to_json() for finding in self.findings],
            "faults": [
                {**each.strike.to_json(), "at_us": each.at_us, "effects": each.effects}
                for each in self.struck
            ],
            "ended_at_us": self.end_us,
            "deaths": list(self.deaths),
            "fingerprint": self.fingerprint,
        }
