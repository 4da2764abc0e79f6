"""The events of many runs as one table, in Parquet.

A trace is read once, line by line, by a worker that checks it, hashes it and writes it as
Parquet into a folder of its own; all other steps read those. If a file is not a trace, or is cut
short, a sentence says so, and nothing is analysed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import msgspec

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import CHUNK, ENCODER, BadTrace, Header, header_of
from watchkeeper.pipeline.analysis.engine.api import DataFrame
from watchkeeper.pipeline.analysis.engine.engine import Engine, Failed, Schema
from watchkeeper.pipeline.errors import PipelineProblem

if TYPE_CHECKING:
    import pyarrow as pa

EVENTS = Schema(
    {
        "seq": "int",
        "t_us": "long",
        "node": "string",
        "kind": "string",
        "session": "long",
        "group": "string",
        "topic": "string",
        "partition": "string",
        "zxid": "long",
        "detail": "string",
        "run": "string",
    }
)
"""A row an event: the columns of a trace, except those that are constant in a run.

`run` is the name of the folder that holds the rows.
"""

LAST = EventKind.RUN_ENDED
ROWS = 100_000
"""As many are written at once."""
TAIL_BYTES = 4096


class Line(msgspec.Struct, array_like=True, frozen=True):
    """A line of a trace file; the detail of an event stays undecoded."""

    run_id: str
    seq: int
    t_us: int
    world: str
    node: str
    kind: str
    session: int
    group: str
    topic: str
    partition: str
    zxid: int
    detail: msgspec.Raw


class Source(NamedTuple):
    """A trace to be read."""

    run: str
    path: str


class Read(NamedTuple):
    """A trace that was read."""

    run: str
    events: int
    end_us: int
    fingerprint: str
    problem: str
    """Why it could not be; empty where it could."""


_LINE = msgspec.json.Decoder(Line)


def read_header(path: Path) -> Header:
    """The header of a trace; PipelineProblem if the file is not one, or is cut short."""
    try:
        with path.open("rb") as file:
            first = file.readline()
            file.seek(0, 2)
            file.seek(max(file.tell() - TAIL_BYTES, 0))
            last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    except OSError as error:
        raise PipelineProblem(
            f"{path} cannot be read ({error.strerror or error}); leave that run out"
        ) from None
    try:
        header = header_of(first, name=str(path))
    except BadTrace as error:
        raise PipelineProblem(f"{error}; leave that run out, or make it again") from None
    if f'"{LAST}"'.encode() not in last or not last.endswith(b"]"):
        raise PipelineProblem(
            f"{path} is half a trace: it does not end with the event '{LAST}'; leave that run "
            "out, or make it again"
        )
    return header


# --- from traces to Parquet ------------------------------------------------------------


def write_events(engine: Engine, sources: list[Source], home: Path) -> list[Read]:
    """Write the events of traces as Parquet, a folder a run; return what was read of each."""
    try:
        rows = engine.each(partial(_converted, home=home), sources)
    except Failed as error:
        raise PipelineProblem(
            f"the traces could not be read ({error}); see that the workers can "
            "reach them, and the folder of --out"
        ) from None
    bad = [row.problem for row in rows if row.problem]
    if bad:
        raise PipelineProblem(bad[0])
    return rows


def _converted(source: Source, home: Path) -> Read:
    """Read one trace and write it; an error is part of the result."""
    import pyarrow as pa

    digest = hashlib.sha256()
    count = end_us = 0
    try:
        for table in _tables(Path(source.path), digest):
            _write(table, home / f"run={quote(source.run, safe='')}", count)
            count += table.num_rows
            end_us = table.column("t_us")[-1].as_py()
    except BadTrace as error:
        return Read(source.run, 0, 0, "", f"{error}; leave that run out, or make it again")
    except (OSError, pa.ArrowException) as error:
        message = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        return Read(
            source.run, 0, 0, "", f"{home} cannot be written ({message}); make room there"
        )
    return Read(source.run, count, end_us, digest.hexdigest(), "")


def _tables(path: Path, digest: hashlib._Hash) -> Iterator[pa.Table]:
    """The events of a trace in chunks, hashed as fingerprints are."""
    rows: list[Line] = []
    with path.open("rb") as file:
        file.readline()
        for number, text in enumerate(file):
            try:
                row = _LINE.decode(text)
                if row.seq != number:
                    raise ValueError(f"it is event {row.seq}, where {number} was expected")
            except ValueError as error:
                message = f"{path}:{number + 2} is not a line of a trace ({error})"
                raise BadTrace(message) from None
            rows.append(row)
            if len(rows) == ROWS - ROWS % CHUNK:
                yield _table(rows, digest)
                rows = []
    if rows:
        yield _table(rows, digest)


def _table(rows: list[Line], digest: hashlib._Hash) -> pa.Table:
    import pyarrow as pa

    for first in range(0, len(rows), CHUNK):
        digest.update(ENCODER.encode([_told(row) for row in rows[first : first + CHUNK]]))
    kinds = {"seq": pa.int32(), "t_us": pa.int64(), "session": pa.int64(), "zxid": pa.int64()}
    columns = {
        name: [getattr(row, name) for row in rows]
        for name in EVENTS.names
        if name not in ("run", "detail")
    }
    columns["detail"] = [bytes(row.detail).decode() for row in rows]
    schema = pa.schema(
        [pa.field(name, kinds.get(name, pa.string()), nullable=False) for name in columns]
    )
    return pa.Table.from_pydict(columns, schema=schema)


def _told(row: Line) -> tuple[object, ...]:
    """The columns of an event that its fingerprint covers."""
    return (
        *(row.t_us, row.node, row.kind, row.session),
        *(row.group, row.topic, row.partition, row.zxid, row.detail),
    )


def _write(table: pa.Table, folder: Path, first: int) -> None:
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / f"part-{first:09d}.parquet", compression="zstd")


def events(engine: Engine, home: Path) -> DataFrame:
    """The events that were written to a folder."""
    return engine.read(home, EVENTS)
