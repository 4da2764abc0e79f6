"""Which traces of a sweep are kept, and how they come to be there.

A run can be had again from its cell and its seed. So no worker sends traces along with its
results; when all runs are done, those are chosen whose traces are kept, in an order that is
the same however the work was shared out, and run once more. The trace has to have the
fingerprint that stands in the table: that is one more look at whether runs are
deterministic, mostly in another process than the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.sweeps.grid import Grid, draw, sampled
from pipeline.sweeps.rows import FAILED
from pipeline.sweeps.summing import rows_of
from pipeline.sweeps.work import Wanted

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ["run_id", "cell", "seed", "verdict", "signature", "fingerprint"]
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

    Where there are more failures, each way of failing in each cell has its turn, so that none
    takes the room of another.
    """
    failures: dict[tuple[int, str], list[Candidate]] = {}
    others: list[Candidate] = []
    number = 0
    for table in tables:
        for row in rows_of(table):
            if row["verdict"] == FAILED:
                continue
            one = Candidate(row["run_id"], row["cell"], row["seed"], row["fingerprint"])
            if row["signature"] is None:
                number += 1
                others.append(one)
                others = _fewer(others)
            else:
                found = failures.setdefault((row["cell"], row["signature"]), [])
                if len(found) < most:
                    found.append(one)
    wanted = min(max(math.ceil(number / SAMPLE_OF), 1), MOST_SAMPLED)
    names = set(sampled([one.run_id for one in others], wanted))
    kept = [one for one in others if one.run_id in names]
    return [*_in_turn(list(failures.values()), most), *kept]


def _fewer(others: list[Candidate]) -> list[Candidate]:
    """Forget those that cannot be in the sample any more, now and then."""
    if len(others) < 50 * MOST_SAMPLED:
        return others
    return sorted(others, key=lambda one: draw(one.run_id, "sampled"))[:MOST_SAMPLED]


def _in_turn(ways: list[list[Candidate]], most: int) -> list[Candidate]:
    """The first of each way, then the second of each, and at most so many in all."""
    longest = max(map(len, ways), default=0)
    ordered = [way[at] for at in range(longest) for way in ways if at < len(way)]
    return ordered[:most]


def batches(
    chosen: Iterable[Candidate],
    grid: Grid,
    versions: tuple[tuple[str, str], ...],
    size: int,
) -> Iterator[tuple[Wanted, ...]]:
    """What is asked of workers, so many runs at a time."""
    batch: list[Wanted] = []
    for one in chosen:
        batch.append(Wanted(grid.cells[one.cell], one.seed, versions))
        if len(batch) == size:
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)
