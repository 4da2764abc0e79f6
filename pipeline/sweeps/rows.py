"""A row a run, and the schema of the tables of rows."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from watchkeeper.pipeline.errors import PipelineProblem

if TYPE_CHECKING:
    import pyarrow as pa

FAILED = "failed"
"""In place of a verdict if the run ended in an error."""


class PropertyRow(Struct, frozen=True):
    """The finding on one property."""

    verdict: str
    counts: bool
    """Whether the verdict of the run depends on it."""
    evidence: str | None
    """The evidence against it; None if it holds."""
    at_us: int | None


class EffectRow(Struct, frozen=True):
    """The effect of one entry of the timeline."""

    action: str
    at_us: int | None
    counts: dict[str, int]


class RunRow(Struct, frozen=True, kw_only=True):
    """One run."""

    run_id: str
    number: int
    """Its place in the grid."""
    cell: int
    scenario: str
    variant: str
    parameters: dict[str, str]
    seed: int
    self_test: bool = False
    """Whether it was made to fail, to see that failures are seen."""
    verdict: str
    met: bool | None = None
    """Whether it is as the scenario expects; None if unknown."""
    violated: tuple[str, ...] = ()
    """The properties that count and are violated."""
    signatures: tuple[str, ...] = ()
    """Its failure signatures: one for each kind of violation."""
    doubt: str | None = None
    """The reason for an unknown verdict; None if it is known."""
    properties: dict[str, PropertyRow] = {}
    effects: tuple[EffectRow, ...] = ()
    time_to_rest_us: int | None = None
    """From the last action until every group was at rest for good; None if one never was."""
    attempts: int = 0
    reads: int = 0
    operations: int = 0
    moves: int = 0
    """How often a partition moved to another member."""
    changes: int = 0
    """Of members, brokers and topics, in the registry."""
    zombie_window_us: int = 0
    failed_turns: int = 0
    events: int = 0
    virtual_us: int = 0
    fingerprint: str = ""
    repeated: bool = False
    """Whether it was run twice."""
    fingerprint_again: str | None = None
    """Of the second run, if it differed: the run is not deterministic."""


def schema() -> pa.Schema:
    """The columns of a table of runs."""
    import pyarrow as pa

    counts = pa.map_(pa.string(), pa.int64())
    found = pa.struct(
        [
            pa.field("verdict", pa.string(), nullable=False),
            pa.field("counts", pa.bool_(), nullable=False),
            ("evidence", pa.string()),
            ("at_us", pa.int64()),
        ]
    )
    effect = pa.struct(
        [
            pa.field("action", pa.string(), nullable=False),
            ("at_us", pa.int64()),
            pa.field("counts", counts, nullable=False),
        ]
    )
    optional = {
        "met": pa.bool_(),
        "doubt": pa.string(),
        "time_to_rest_us": pa.int64(),
        "fingerprint_again": pa.string(),
    }
    needed = {
        **dict.fromkeys(("run_id", "scenario", "variant", "verdict", "fingerprint"), pa.string()),
        **dict.fromkeys(("self_test", "repeated"), pa.bool_()),
        "parameters": pa.map_(pa.string(), pa.string()),
        "properties": pa.map_(pa.string(), found),
        "effects": pa.list_(effect),
        "violated": pa.list_(pa.string()),
        "signatures": pa.list_(pa.string()),
    }
    return pa.schema(
        [
            pa.field(name, optional[name])
            if name in optional
            else pa.field(name, needed.get(name, pa.int64()), nullable=False)
            for name in RunRow.__struct_fields__
        ]
    )


def table(rows: Iterable[RunRow]) -> pa.Table:
    """Runs as a table."""
    import pyarrow as pa

    return pa.Table.from_pylist([_plain(row) for row in rows], schema=schema())


def _plain(row: RunRow) -> dict[str, Any]:
    """A row as the library that writes tables takes it: a map is a list of pairs."""
    return {
        **asdict(row),
        "parameters": list(row.parameters.items()),
        "properties": [(name, asdict(found)) for name, found in row.properties.items()],
        "effects": [
            {**asdict(effect), "counts": list(effect.counts.items())} for effect in row.effects
        ],
    }


def check_libraries() -> None:
    """Name the extra to install if tables cannot be written."""
    if find_spec("pyarrow") is None:
        raise PipelineProblem(
            "a sweep writes its results as Parquet and needs pyarrow, which is not installed; "
            "pip install 'watchkeeper[arrow]'"
        )
