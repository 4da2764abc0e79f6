"""A scenario that has been read: its fields, its bounds, its plan."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path as FilePath
from stat import S_ISDIR, S_ISREG
from typing import Any

from watchkeeper.model.actor.program import Program
from watchkeeper.model.counterexample.counterexample import Schedule, ScheduledStep
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.judgement.expectations import Expected
from watchkeeper.model.mutants.by_name import variant_named
from watchkeeper.model.plan.bounds import KINDS, Bounds, FaultKind
from watchkeeper.model.plan.plan import Plan
from watchkeeper.scenarios.plan.build import build
from watchkeeper.scenarios.schema.schema import Expectation, ScenarioModel
from watchkeeper.scenarios.schema.search_schema import StepModel
from watchkeeper.scenarios.schema.validation import validated
from watchkeeper.scenarios.shipped_files import shipped, shipped_text
from watchkeeper.scenarios.text.document import LARGEST_FILE, Document, read_document
from watchkeeper.scenarios.text.errors import Problem, ScenarioError, expected, nearest


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that has been read and whose form is valid."""

    document: Document
    model: ScenarioModel
    source: str
    """Its name on a command line; empty if it has none."""
    text: str
    """The text of the file."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.model.name

    @property
    def about(self) -> str:
        """What the scenario shows, in a sentence."""
        return self.model.about

    @property
    def expectations(self) -> dict[str, Expectation]:
        """The expectation for each variant."""
        return self.model.expect

    def expected_of(self, variant: str) -> Expected | None:
        """The expectation for a variant; None if the scenario states none."""
        wanted = self.expectations.get(variant)
        if wanted is None or isinstance(wanted, str):
            return None if wanted is None else Expected()
        return Expected(tuple(wanted.violated), tuple(wanted.may), wanted.limit or "")

    @property
    def live_differs(self) -> str | None:
        """Why verdicts of live runs may differ from simulated ones; None if they may not."""
        return self.model.worlds.live.differs

    def bounds(self) -> Bounds | None:
        """The bounds of a search of every interleaving; None if the scenario states none."""
        given = self.model.bounds
        if given is None:
            return None
        values: dict[str, Any] = given.model_dump()
        faults = {kind: values.pop(kind) for kind in KINDS}
        return Bounds({kind: number for kind, number in faults.items() if number}, **values)

    def schedule(self) -> Schedule | None:
        """The schedule of a counterexample; None if the scenario has none."""
        given = self.model.schedule
        if given is None:
            return None
        return Schedule(
            given.violates,
            tuple(map(_scheduled_step, given.steps)),
            tuple(map(_scheduled_step, given.cycle)),
        )

    def plan(self, variant: str | None = None, *, program: Program | None = None) -> Plan:
        """The plan for a variant. `program` replaces the program of every consumer.

        Raises ScenarioError if the scenario and the variant do not go together.
        """
        if variant is not None and variant_named(variant) is None:
            raise ScenarioError(
                "variant", [Problem("", expected(variant, "a variant", VARIANTS))]
            )
        return build(self.document, self.model, variant or self.model.variant, program)


def _scheduled_step(step: StepModel) -> ScheduledStep:
    return ScheduledStep(
        step.node,
        StepKind(step.does),
        None if step.fault is None else FaultKind(step.fault),
        step.operation,
        step.answer,
        tuple((read.operation, read.answer) for read in step.reads),
        None if step.then is None else StepKind(step.then),
    )


def load(name: str | os.PathLike[str]) -> Scenario:
    """Read a scenario: the path of a file, or the name of a shipped scenario.

    Raises ScenarioError, whose text names file, line and field of each mistake.
    """
    name = os.fspath(name)
    path = FilePath(name)
    is_yaml = path.suffix in (".yaml", ".yml")
    stem = path.stem if is_yaml else name
    if stem in shipped() and not os.path.isfile(name):
        return from_text(f"{stem}.yaml", shipped_text(stem), source=stem)
    if is_yaml or (name and os.path.lexists(name)):
        return from_text(name, _contents(name), source=name)
    hint = nearest(name, shipped())
    message = f"there is no such file or shipped scenario{hint}" if name else f"is empty{hint}"
    raise ScenarioError(name or "the name of a scenario", [Problem("", message)])


def _contents(name: str) -> bytes:
    """The bytes of a regular file, and no more of them than a scenario may have."""
    try:
        mode = os.stat(name).st_mode
        if S_ISREG(mode):
            with open(name, "rb") as file:
                return file.read(LARGEST_FILE + 1)
        message = "it is a device or a pipe, and no file"
        if S_ISDIR(mode):
            message = "it is a folder; name a file in it"
    except (OSError, ValueError) as error:
        message = getattr(error, "strerror", None) or str(error)
    raise ScenarioError(name, [Problem("", f"cannot be read: {message}")])


def from_text(name: str, raw: bytes | str, *, source: str | None = None) -> Scenario:
    """Read a scenario from its text; `source` is its name on a command line."""
    data = raw.encode() if isinstance(raw, str) else raw
    document = read_document(name, data)
    model = validated(document)
    return Scenario(document, model, name if source is None else source, data.decode("utf-8-sig"))
