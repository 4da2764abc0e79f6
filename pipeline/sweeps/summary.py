"""The summary of a sweep, from its tables alone."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from watchkeeper.model.plan.bounds import mix_of
from watchkeeper.model.properties.verdicts import KNOWN_LIMIT
from watchkeeper.model.sweep_summary import (
    AS_EXPECTED,
    NOT_AS_EXPECTED,
    OPEN,
    CellSummary,
    Example,
    FailureBucket,
    Quantiles,
    Share,
    SweepSummary,
)
from watchkeeper.pipeline.sweeps.grid import Grid
from watchkeeper.pipeline.sweeps.store import SECONDS, Manifest, Store

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = [
    *("run_id", "cell", "seed", "verdict", "met", "violated", "signatures", "doubt"),
    *("time_to_rest_us", "reads", "moves", "repeated", "fingerprint_again"),
]
MET = {True: AS_EXPECTED, False: NOT_AS_EXPECTED, None: OPEN}
NAMED = 10


@dataclass(slots=True)
class _Cell:
    """The counts of a cell so far."""

    verdicts: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)
    rests: array[int] = field(default_factory=lambda: array("q"))
    reads: array[int] = field(default_factory=lambda: array("q"))
    moves: array[int] = field(default_factory=lambda: array("q"))


@dataclass(slots=True)
class _Way:
    """The counts of a signature so far."""

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
        expected = self.grid.cells[row["cell"]].expected
        if expected is not None:
            is_limit = row["met"] and row["violated"] and expected.limit
            cell.met[KNOWN_LIMIT if is_limit else MET[row["met"]]] += 1
        cell.reads.append(row["reads"])
        cell.moves.append(row["moves"])
        if row["time_to_rest_us"] is not None:
            cell.rests.append(row["time_to_rest_us"])
        self.repeated += row["repeated"]
        if row["fingerprint_again"] is not None:
            self.differing.append(_example(row))
        for signature in row["signatures"]:
            _add_to(self.ways, signature, row)
        if row["doubt"] is not None:
            _add_to(self.doubts, row["doubt"], row)

    def summed(self) -> SweepSummary:
        """All that was counted."""
        runs = sum(sum(cell.verdicts.values()) for cell in self.cells)
        return SweepSummary(
            tuple(self._cell(at) for at in range(len(self.cells))),
            _ways(self.ways, runs),
            _ways(self.doubts, runs),
            self.repeated,
            tuple(self.differing),
            self.seconds,
        )

    def _cell(self, at: int) -> CellSummary:
        cell, seen = self.grid.cells[at], self.cells[at]
        return CellSummary(
            at,
            cell.plan.name,
            cell.plan.variant,
            mix_of(cell.plan),
            dict(cell.parameters),
            cell.expected.limit if cell.expected is not None else "",
            sum(seen.verdicts.values()),
            dict(seen.verdicts),
            dict(seen.met),
            quantiles(seen.rests) if seen.rests else None,
            quantiles(seen.reads),
            quantiles(seen.moves),
        )


def _add_to(ways: dict[str, _Way], signature: str, row: dict[str, Any]) -> None:
    way = ways.setdefault(signature, _Way(_example(row)))
    way.runs += 1
    way.cells[row["cell"]] = None


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table, each as a mapping."""
    names = table.column_names
    for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def _example(row: dict[str, Any]) -> Example:
    return Example(row["cell"], row["seed"], row["run_id"])


def _ways(found: dict[str, _Way], runs: int) -> tuple[FailureBucket, ...]:
    ordered = sorted(found.items(), key=lambda entry: -entry[1].runs)
    return tuple(
        FailureBucket(
            sha256(signature.encode()).hexdigest()[:NAMED],
            signature,
            Share(bucket.runs, runs),
            tuple(bucket.cells),
            bucket.first,
        )
        for signature, bucket in ordered
    )


def quantiles(values: Iterable[int]) -> Quantiles:
    """A few quantiles of many numbers; zeros for none."""
    found = sorted(values) or [0]

    def at(share: float) -> int:
        return found[round(share * (len(found) - 1))]

    return Quantiles(len(found), found[0], at(0.5), at(0.9), found[-1])


def summed(store: Store, manifest: Manifest, grid: Grid) -> SweepSummary:
    """The summary of a sweep."""
    tally = Tally(grid)
    for table in store.tables(manifest, COLUMNS):
        tally.add(table)
    return tally.summed()
