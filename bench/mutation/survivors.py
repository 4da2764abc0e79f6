"""The file that explains what neither a simulation nor a search kills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import yaml
from bench.mutation.catalogue import Mutant

FILE = Path(__file__).resolve().parent / "survivors.yaml"


class Explanation(StrEnum):
    """Why a mutant survives."""

    EQUIVALENT = "equivalent"
    """No input can tell it from the original."""
    SURVIVOR = "survivor"
    """It is a mistake, or a change of what no judgement is about."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A mutant that nothing kills, and the reason."""

    mutant: str
    line: str
    explanation: Explanation
    reason: str


def explained(path: Path = FILE) -> dict[str, Explained]:
    """Read the file: the name of each mutant -> its explanation.

    Raises ValueError for an entry that is not understood, or that comes twice.
    """
    rows = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    found: dict[str, Explained] = {}
    for row in rows:
        entry = _entry(path, row)
        if entry.mutant in found:
            raise ValueError(f"{path.name}: {entry.mutant} is explained twice; keep one entry")
        found[entry.mutant] = entry
    return found


def _entry(path: Path, row: dict[str, str]) -> Explained:
    wanted = {"mutant", "line", "verdict", "reason"}
    if not isinstance(row, dict) or row.keys() != wanted:
        raise ValueError(
            f"{path.name}: {row!r} is no explanation; expected {', '.join(sorted(wanted))}"
        )
    try:
        verdict = Explanation(row["verdict"])
    except ValueError:
        raise ValueError(
            f"{path.name}: the verdict on {row['mutant']} is {row['verdict']!r}; expected "
            f"{' or '.join(Explanation)}"
        ) from None
    return Explained(row["mutant"], row["line"], verdict, row["reason"])


def stale(entries: dict[str, Explained], mutants: Sequence[Mutant]) -> list[str]:
    """Return a sentence for each entry whose mutant is gone, or stands on another line."""
    lines = {mutant.name: mutant.edit.text for mutant in mutants}
    sentences = []
    for entry in entries.values():
        line = lines.get(entry.mutant)
        if line is None:
            sentences.append(f"{entry.mutant}: there is no such mutant; remove the entry")
        elif line != entry.line:
            sentences.append(
                f"{entry.mutant}: its line is {line!r}, not {entry.line!r}; explain it again"
            )
    return sentences
