"""A run as tables of Arrow: its events, and its properties.

Arrow and not pandas: pyarrow is what sweeps write their tables with, and every library of frames
reads a table of it, most without a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from watchkeeper.console.extras import needing

if TYPE_CHECKING:
    from pyarrow import Table

    from watchkeeper.api.result import Result

FEATURE = "Result.to_frame"
ENCODER = msgspec.json.Encoder(order="deterministic")
EVENTS = (
    *(("seq", "int64"), ("t_us", "int64"), ("node", "string"), ("kind", "string")),
    *(("session", "int64"), ("group", "string"), ("topic", "string"), ("partition", "string")),
    *(("zxid", "int64"), ("detail", "string")),
)
"""Column -> type, as in a trace; the detail is JSON."""
PROPERTIES = (
    *(("name", "string"), ("kind", "string"), ("verdict", "string"), ("counts", "bool")),
    *(("at_us", "int64"), ("exercised", "int64"), ("evidence", "string")),
)


def events_table(result: Result) -> Table:
    """Return a row for each event."""
    rows = [(*event[:-1], ENCODER.encode(event.detail).decode()) for event in result.trace]
    return _table(EVENTS, rows)


def properties_table(result: Result) -> Table:
    """Return a row for each property."""
    rows = [
        (
            *(finding.claim.name, str(finding.claim.kind), finding.verdict.value),
            *(finding.counts, finding.at_us, finding.exercised, finding.evidence),
        )
        for finding in result.findings
    ]
    return _table(PROPERTIES, rows)


def _table(columns: tuple[tuple[str, str], ...], rows: Sequence[tuple[object, ...]]) -> Table:
    with needing(FEATURE):
        import pyarrow as pa

    schema = pa.schema(
        [(name, pa.bool_() if kind == "bool" else getattr(pa, kind)()) for name, kind in columns]
    )
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
