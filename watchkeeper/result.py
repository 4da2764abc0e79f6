"""What a run has shown: verdicts, trace, effects, and whether that was expected."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from model.faults import Effect
from model.plan import Plan
from model.properties import Judgement
from model.trace import Trace
from model.verdicts import Finding, Verdict
from scenarios import Scenario
from scenarios.schema import Expectation, ViolatedModel
from watchkeeper.profiles import NamedProfile


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """A run, judged."""

    scenario: Scenario
    plan: Plan
    seed: int
    trace: Trace
    effects: tuple[Effect, ...]
    judgement: Judgement
    operations: int
    is_repeated: bool = False
    """Whether it was run twice, and was the same."""
    options: tuple[str, ...] = ()
    """Further options of the command that made it."""
    profile: NamedProfile | None = None
    """With whose latencies it was simulated; None for those that come along."""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the run: holds, violated, unknown."""
        return self.judgement.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every property with its verdict and its evidence."""
        return self.judgement.findings

    @property
    def holds(self) -> bool:
        """Whether everything that counts holds."""
        return self.verdict is Verdict.HOLDS

    @property
    def violated(self) -> list[str]:
        """The names of the properties that are violated."""
        return self.judgement.violated()

    @property
    def fingerprint(self) -> str:
        """The hash of the trace."""
        return self.trace.fingerprint

    @property
    def expectation(self) -> Expectation | None:
        """What the scenario says of the variant that ran; nothing of a program of your own."""
        if self.plan.has_own_program:
            return None
        return self.scenario.expectations.get(self.plan.variant)

    @property
    def met(self) -> bool | None:
        """Whether the run is as the scenario expects; None where that cannot be said."""
        if self.plan.has_own_program:
            return None
        wanted = self.scenario.expected_of(self.plan.variant)
        return None if wanted is None else wanted.met_by(self.judgement)

    @property
    def exit_code(self) -> int:
        """0 holds or as expected, 1 violated or not as expected, 2 unknown."""
        if self.expectation is None:
            return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1, Verdict.UNKNOWN: 2}[self.verdict]
        return {True: 0, False: 1, None: 2}[self.met]

    @property
    def command(self) -> str:
        """The command that runs this again; a call where only Python can."""
        return self.command_with(self.scenario.source)

    def command_with(self, source: str) -> str:
        """The same, were the scenario found under this name."""
        variant = self.plan.variant
        if source and not self.plan.has_own_program:
            world = self.trace.header.world
            where = "" if world == "sim" else f" --world {world}"
            what = f"{shlex.quote(source)} --variant {variant}{where}"
            more = [f"--profile {shlex.quote(self.profile.source)}"] if self.profile else []
            command = f"watchkeeper run {what} --seed {self.seed}"
            return " ".join([command, *more, *self.options])
        what = repr(source) if source else f"<the fields of {self.scenario.name!r}>"
        own = ", consumer=..." if self.plan.has_own_program else ""
        took = f", profile={self.profile.source!r}" if self.profile else ""
        return f"simulate({what}, seed={self.seed}, variant={variant!r}{own}{took})"

    def check(self) -> None:
        """Raise AssertionError, with the report, unless the run is as it should be.

        That is: as the scenario expects of this variant, or, where it says nothing, that
        everything holds.
        """
        if self.exit_code != 0:
            raise AssertionError(str(self))

    def __repr__(self) -> str:
        violated = f" {', '.join(self.violated)}" if self.violated else ""
        return (
            f"<Result of {self.scenario.name}, {self.plan.variant}, seed {self.seed}: "
            f"{self.verdict.value}{violated}, {len(self.trace)} events>"
        )

    def __str__(self) -> str:
        from watchkeeper.printing import plain_report

        return plain_report(self)

    def to_json(self, files: list[str] | None = None) -> dict[str, Any]:
        """What `watchkeeper run --json` prints."""
        wanted = self.expectation
        return {
            "scenario": self.scenario.name,
            "variant": self.plan.variant,
            "world": self.trace.header.world,
            "seed": self.seed,
            **({"profile": self.profile.to_json()} if self.profile else {}),
            "verdict": self.verdict.value,
            "properties": [
                {
                    "name": one.claim.name,
                    "kind": one.claim.kind,
                    "verdict": one.verdict.value,
                    "evidence": one.evidence,
                    "counts": one.counts,
                }
                for one in self.findings
            ],
            "expected": wanted.model_dump() if isinstance(wanted, ViolatedModel) else wanted,
            "met": self.met,
            "faults": [_fault(effect) for effect in self.effects],
            "changes": [
                {
                    "at_s": change.at_us / 1e6,
                    "group": change.group,
                    "what": change.what,
                    "time_to_rest_s": _seconds(change.rest_after_us),
                    "trigger_skew_s": _seconds(change.skew_us),
                }
                for change in self.judgement.changes
            ],
            "stats": {
                **self.judgement.stats,
                "events": len(self.trace),
                "operations": self.operations,
                "failed_turns": {
                    node: {"number": number, "last_at_s": at_us / 1e6, "last": why}
                    for node, (number, at_us, why) in self.judgement.failed_turns.items()
                },
            },
            "fingerprint": self.fingerprint,
            "deterministic": True if self.is_repeated else None,
            "command": self.command,
            "files": files or [],
        }


def _fault(effect: Effect) -> dict[str, Any]:
    return {
        "kind": effect.action.verb.name,
        "target": effect.action.target,
        "at_s": _seconds(effect.at_us),
        "effects": dict(effect.counts),
    }


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / 1e6
