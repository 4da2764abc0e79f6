"""Scenario files: what may stand in them, how they are read, and those that are shipped.

Reading order: `schema` (what a file may hold), `reading` and `checking` (how it is read
and what is said of its mistakes), `building` with `clusters` and `groups` (how it
becomes a plan).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path as FilePath

from model.plan import Plan
from model.program import Program
from scenarios.building import build
from scenarios.checking import validated
from scenarios.problems import Problem, ScenarioError, nearest
from scenarios.reading import Document, read_document
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
    """The words that name it on a command line."""
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

    def plan(self, variant: str | None = None, *, program: Program | None = None) -> Plan:
        """What to run for a variant; ScenarioError where the two do not go together.

        `program` is a program of the caller's own, run in place of every consumer.
        """
        return build(self.document, self.model, variant or self.model.variant, program)


def shipped() -> list[str]:
    """The names of the scenarios that come with this package."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in files("scenarios").iterdir()
        if entry.name.endswith(".yaml")
    )


def load(name: str) -> Scenario:
    """Read a scenario: a file's path, or the name of a shipped one.

    Raises ScenarioError, whose text says what is wrong in which line.
    """
    path = FilePath(name)
    looks_like_file = path.suffix in (".yaml", ".yml") or path.exists()
    if looks_like_file and not path.exists() and path.stem in shipped():
        looks_like_file = False
    if looks_like_file:
        return from_text(name, _contents(name, path), source=name)
    stem = path.stem if path.suffix else name
    if stem in shipped():
        raw = (files("scenarios") / f"{stem}.yaml").read_bytes()
        return from_text(f"{stem}.yaml", raw, source=stem)
    hint = nearest(name, shipped())
    raise ScenarioError(name, [Problem("", f"there is no such file or shipped scenario{hint}")])


def _contents(name: str, path: FilePath) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        said = f"cannot be read: {error.strerror}"
        raise ScenarioError(name, [Problem("", said)]) from None


def from_text(name: str, raw: bytes | str, *, source: str | None = None) -> Scenario:
    """Read a scenario from its text."""
    data = raw.encode() if isinstance(raw, str) else raw
    document = read_document(name, data)
    return Scenario(document, validated(document), source or name, data.decode("utf-8-sig"))
