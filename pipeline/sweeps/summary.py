"""What came of a sweep, from its tables alone."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from model.sweeps import CellSum, Example, Quantiles, Share, SweepSum, Way
from pipeline.sweeps.grid import Grid
from pipeline.sweeps.store import SECONDS, Manifest, Store

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = [
    *("run_id", "cell", "seed", "verdict", "met", "violated", "signature", "doubt"),
    *("time_to_rest_us", "reads", "moves", "repeated", "fingerprint_again"),
]
MET = {True: "as expected", False: "not as expected", None: "open"}
NAMED = 10


@dataclass(slots=True)
class _Cell:
    """What has been seen of a cell."""

    verdicts: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    rests: array[int] = field(default_factory=lambda: array("q"))
    reads: array[int] = field(default_factory=lambda: array("q"))
    moves: array[int] = field(default_factory=lambda: array("q"))


@dataclass(slots=True)
class _Way:
    """What has been seen of a signature."""

    violated: tuple[str, ...]
    first: Example
    runs: int = 0
    cells: dict[int, None] = field(default_factory=dict)


class Tally:
    """Counts runs, table by table, in their order."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.cells = [_Cell() for _ in grid.cells]
        self.ways: dict[str, _Way] = {}
        self.doubts: dict[str, _Way] = {}
        self.repeated = 0
        self.differing: list[Example] = []
        self.seconds = 0.0

    def add(self, table: pa.Table) -> None:
        """Count the runs of a table."""
        self.seconds += float((table.schema.metadata or {}).get(SECONDS, b"0"))
        for row in rows_of(table):
            self._add(row)

    def _add(self, row: dict[str, Any]) -> None:
        cell = self.cells[row["cell"]]
        cell.verdicts[row["verdict"]] += 1
        if self.grid.cells[row["cell"]].expected is not None:
            cell.met[MET[row["met"]]] += 1
        cell.reads.append(row["reads"])
        cell.moves.append(row["moves"])
        if row["time_to_rest_us"] is not None:
            cell.rests.append(row["time_to_rest_us"])
        self.repeated += row["repeated"]
        if row["fingerprint_again"] is not None:
            self.differing.append(_example(row))
        for ways, said in ((self.ways, row["signature"]), (self.doubts, row["doubt"])):
            if said is not None:
                way = ways.setdefault(said, _Way(tuple(row["violated"]), _example(row)))
                way.runs += 1
                way.cells[row["cell"]] = None

    def summed(self) -> SweepSum:
        """All that was counted."""
        runs = sum(sum(one.verdicts.values()) for one in self.cells)
        return SweepSum(
            tuple(self._cell(at) for at in range(len(self.cells))),
            _ways(self.ways, runs),
            _ways(self.doubts, runs),
            self.repeated,
            tuple(self.differing),
            self.seconds,
        )

    def _cell(self, at: int) -> CellSum:
        cell, seen = self.grid.cells[at], self.cells[at]
        return CellSum(
            at,
            cell.plan.name,
            cell.plan.variant,
            dict(cell.parameters),
            sum(seen.verdicts.values()),
            dict(seen.verdicts),
            dict(seen.met),
            quantiles(seen.rests) if seen.rests else None,
            quantiles(seen.reads),
            quantiles(seen.moves),
        )


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table, each as a mapping."""
    names = table.column_names
    for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def _example(row: dict[str, Any]) -> Example:
    return Example(row["cell"], row["seed"], row["run_id"])


def _ways(found: dict[str, _Way], runs: int) -> tuple[Way, ...]:
    ordered = sorted(found.items(), key=lambda one: -one[1].runs)
    return tuple(
        Way(
            sha256(said.encode()).hexdigest()[:NAMED],
            said,
            one.violated,
            Share(one.runs, runs),
            tuple(one.cells),
            one.first,
        )
        for said, one in ordered
    )


def quantiles(values: Iterable[int]) -> Quantiles:
    """A few numbers that tell many; zeros of none."""
    found = sorted(values) or [0]

    def at(share: float) -> int:
        return found[round(share * (len(found) - 1))]

    return Quantiles(len(found), found[0], at(0.5), at(0.9), found[-1])


def summed(store: Store, manifest: Manifest, grid: Grid) -> SweepSum:
    """What came of a sweep."""
    tally = Tally(grid)
    for table in store.tables(manifest, COLUMNS):
        tally.add(table)
    return tally.summed()
