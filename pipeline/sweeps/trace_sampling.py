"""The traces of a sweep that are kept, and how they are made.

A run can be repeated from its cell and its seed. So no worker sends traces with its results; when
all runs are done, those whose traces are kept are selected, independent of how the work was
distributed, and run once more. The trace must have the fingerprint in the table: one more check
of determinism, mostly in another process than the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from watchkeeper.pipeline.sweeps.chunk import Wanted
from watchkeeper.pipeline.sweeps.grid import Grid, draw, sampled
from watchkeeper.pipeline.sweeps.rows import FAILED
from watchkeeper.pipeline.sweeps.summary import rows_of

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ["run_id", "cell", "seed", "verdict", "signatures", "fingerprint"]
SAMPLE_OF = 100
MOST_SAMPLED = 20
"""Of runs that do not fail one in so many is kept, at least one and at most so many."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run whose trace may be kept."""

    run_id: str
    cell: int
    seed: int
    fingerprint: str


def selected(tables: Iterable[pa.Table], most: int) -> list[Candidate]:
    """The runs whose traces are kept: failures, at most so many, and a sample of the others.

    If there are more failures, each signature in each cell has its turn, so that none displaces
    another.
    """
    failures: dict[tuple[int, str], list[Candidate]] = {}
    others: list[Candidate] = []
    number = 0
    for table in tables:
        for row in rows_of(table):
            if row["verdict"] == FAILED:
                continue
            candidate = Candidate(row["run_id"], row["cell"], row["seed"], row["fingerprint"])
            if not row["signatures"]:
                number += 1
                others.append(candidate)
                others = _fewer(others)
            for signature in row["signatures"]:
                found = failures.setdefault((row["cell"], signature), [])
                if len(found) < most:
                    found.append(candidate)
    wanted = min(max(math.ceil(number / SAMPLE_OF), 1), MOST_SAMPLED)
    names = set(sampled([candidate.run_id for candidate in others], wanted))
    kept = [candidate for candidate in others if candidate.run_id in names]
    return [*_in_turn(list(failures.values()), most), *kept]


def _fewer(others: list[Candidate]) -> list[Candidate]:
    """Forget those that cannot be in the sample any more, now and then."""
    if len(others) < 50 * MOST_SAMPLED:
        return others
    return sorted(others, key=lambda candidate: draw(candidate.run_id, "sampled"))[:MOST_SAMPLED]


def _in_turn(ways: list[list[Candidate]], most: int) -> list[Candidate]:
    """The first of each signature, then the second of each, and at most so many in all."""
    longest = max(map(len, ways), default=0)
    ordered = [way[at] for at in range(longest) for way in ways if at < len(way)]
    return list(dict.fromkeys(ordered))[:most]


def batches(
    chosen: Iterable[Candidate],
    grid: Grid,
    versions: tuple[tuple[str, str], ...],
    size: int,
) -> Iterator[tuple[Wanted, ...]]:
    """The runs to repeat, so many at a time."""
    batch: list[Wanted] = []
    for candidate in chosen:
        batch.append(Wanted(grid.cells[candidate.cell], candidate.seed, versions))
        if len(batch) == size:
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)
