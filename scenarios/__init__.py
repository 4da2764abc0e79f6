"""Scenario files: what may stand in them, how they are read, and those that are shipped.

Reading order: `schema` (what a file may hold), `reading` and `checking` (how it is read
and what is said of its mistakes), `building` with `clusters` and `groups` (how it
becomes a plan).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path as FilePath
from stat import S_ISDIR, S_ISREG
from typing import Any

from model.bounds import KINDS, Bounds
from model.expectations import Expected
from model.plan import Plan
from model.program import Program
from model.story import Deed
from model.variants import VARIANTS
from model.zoo import variant_named
from scenarios.building import build
from scenarios.checking import validated
from scenarios.problems import Problem, ScenarioError, expected, nearest
from scenarios.reading import LARGEST_FILE, Document, read_document
from scenarios.schema import Expectation, ScenarioModel, json_schema

__all__ = [
    "Problem",
    "Scenario",
    "ScenarioError",
    "from_text",
    "json_schema",
    "load",
    "shipped",
]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that has been read and whose form is right."""

    document: Document
    model: ScenarioModel
    source: str
    """What names it on a command line; empty where nothing does."""
    text: str
    """What the file says."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.model.name

    @property
    def about(self) -> str:
        """What it shows."""
        return self.model.about

    @property
    def expectations(self) -> dict[str, Expectation]:
        """What it says of the variants."""
        return self.model.expect

    def expected_of(self, variant: str) -> Expected | None:
        """What it expects of a variant; None where it says nothing."""
        wanted = self.expectations.get(variant)
        if wanted is None or isinstance(wanted, str):
            return None if wanted is None else Expected()
        return Expected(tuple(wanted.violated), tuple(wanted.may))

    @property
    def live_differs(self) -> str | None:
        """Why live runs may come to another verdict than simulated ones; None if they may not."""
        return self.model.worlds.live.differs

    def bounds(self) -> Bounds | None:
        """What it says a search of every interleaving may try; None where it says nothing."""
        given = self.model.bounds
        if given is None:
            return None
        values: dict[str, Any] = given.model_dump()
        faults = {kind: values.pop(kind) for kind in KINDS}
        return Bounds({kind: number for kind, number in faults.items() if number}, **values)

    def schedule(self) -> tuple[str, tuple[Deed, ...]] | None:
        """The counterexample it holds: what is violated, and the deeds; None if it holds none."""
        given = self.model.schedule
        if given is None:
            return None
        deeds = (
            Deed(
                step.node,
                step.does,
                step.fault,
                step.operation,
                step.answer,
                tuple((read.operation, read.answer) for read in step.reads),
            )
            for step in given.steps
        )
        return given.violates, tuple(deeds)

    def plan(self, variant: str | None = None, *, program: Program | None = None) -> Plan:
        """What to run for a variant; ScenarioError where the two do not go together.

        `program` is a program of the caller's own, run in place of every consumer.
        """
        if variant is not None and variant_named(variant) is None:
            raise ScenarioError(
                "variant", [Problem("", expected(variant, "a variant", VARIANTS))]
            )
        return build(self.document, self.model, variant or self.model.variant, program)


def shipped() -> list[str]:
    """The names of the scenarios that come with this package."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in files("scenarios").iterdir()
        if entry.name.endswith(".yaml")
    )


def load(name: str | os.PathLike[str]) -> Scenario:
    """Read a scenario: a file's path, or the name of a shipped one.

    Raises ScenarioError, whose text says what is wrong in which line.
    """
    name = os.fspath(name)
    path = FilePath(name)
    is_yaml = path.suffix in (".yaml", ".yml")
    stem = path.stem if is_yaml else name
    if stem in shipped() and not os.path.isfile(name):
        raw = (files("scenarios") / f"{stem}.yaml").read_bytes()
        return from_text(f"{stem}.yaml", raw, source=stem)
    if is_yaml or (name and os.path.lexists(name)):
        return from_text(name, _contents(name), source=name)
    hint = nearest(name, shipped())
    said = f"there is no such file or shipped scenario{hint}" if name else f"is empty{hint}"
    raise ScenarioError(name or "the name of a scenario", [Problem("", said)])


def _contents(name: str) -> bytes:
    """The bytes of a regular file, and no more of them than a scenario may have."""
    try:
        mode = os.stat(name).st_mode
        if S_ISREG(mode):
            with open(name, "rb") as file:
                return file.read(LARGEST_FILE + 1)
        said = "Is a directory" if S_ISDIR(mode) else "it is a device or a pipe, and no file"
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
    raise ScenarioError(name, [Problem("", f"cannot be read: {said}")])


def from_text(name: str, raw: bytes | str, *, source: str | None = None) -> Scenario:
    """Read a scenario from its text; `source` is what names it on a command line."""
    data = raw.encode() if isinstance(raw, str) else raw
    document = read_document(name, data)
    model = validated(document)
    return Scenario(document, model, name if source is None else source, data.decode("utf-8-sig"))
