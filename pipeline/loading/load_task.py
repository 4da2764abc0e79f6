"""One task of a load: reads splits, and writes a file of the table for each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import asdict

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.logs import read_rows
from watchkeeper.pipeline.kafkalog.scan.folders import Gaps
from watchkeeper.pipeline.kafkalog.scan.rows import Rows
from watchkeeper.pipeline.kafkalog.scan.split_reader import (
    CODEC_NAMES,
    COLUMNS,
    Asked,
    Column,
    Counts,
    OnCorrupt,
    batch_of,
    picked,
)
from watchkeeper.pipeline.kafkalog.scan.splits import LogRange
from watchkeeper.pipeline.loading.commits import commit_of
from watchkeeper.pipeline.loading.table import QUARANTINE, put

GROUP_BYTES = 32 << 20
"""Bytes of one row group."""


class LoadTask(Struct, frozen=True):
    """The work of one task of a load."""

    splits: tuple[LogRange, ...]
    home: str
    run: str
    on_corrupt: OnCorrupt
    gaps: Gaps
    compression: str


class Loaded(Struct, frozen=True):
    """The result of a split."""

    split: LogRange
    messages: int = 0
    skipped: int = 0
    quarantined: int = 0
    problem: str = ""
    """Why it was not loaded; empty if it was."""


class CannotWrite(PipelineProblem):
    """The table cannot be written, so no later split can be either."""


def load(task: LoadTask) -> list[Loaded]:
    """Write a file for each split; an error of one is part of the result."""
    done = []
    for split in task.splits:
        try:
            done.append(_load(split, task))
        except PipelineProblem as problem:
            done.append(Loaded(split, problem=str(problem)))
            if isinstance(problem, CannotWrite):
                break
    return done


def _load(split: LogRange, task: LoadTask) -> Loaded:
    home, run = Path(task.home), Path(task.run)
    name = commit_of(split).name
    try:
        with _attempt(run) as place:
            return _written(split, task, name, home, place)
    except FileNotFoundError:
        raise CannotWrite(
            f"{run} is not there any more: another load into {home} has begun, or this worker "
            "does not see that folder; every worker has to see it at that path"
        ) from None
    except OSError as error:
        raise CannotWrite(
            f"{home / name} cannot be written: {error.strerror or error}; what was loaded before "
            "is kept, and the same command goes on when that is mended"
        ) from None


@contextmanager
def _attempt(run: Path) -> Iterator[Path]:
    """A folder for one attempt at a split: Spark may start several, even at once."""
    place = run / uuid4().hex
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _written(split: LogRange, task: LoadTask, name: str, home: Path, place: Path) -> Loaded:
    """Write the rows of a split, and commit the file."""
    counts = Counts()
    (place / QUARANTINE).mkdir()
    with (
        _File(place / name, OF_TABLE, task.compression) as table,
        _File(place / QUARANTINE / name, OF_QUARANTINE, task.compression) as quarantine,
    ):
        asked = Asked(tuple(COLUMNS), task.on_corrupt, task.gaps)
        for rows in read_rows(split, asked, counts):
            right, wrong = _parted(rows)
            table.add(right, split)
            if wrong is not None:
                quarantine.add(wrong, split)
        about = {
            **{field: str(value) for field, value in asdict(commit_of(split)).items()},
            "messages": str(table.rows),
            "skipped": str(counts.corrupt - quarantine.rows),
            "quarantined": str(quarantine.rows),
        }
        table.end(about)
        if quarantine.rows:
            quarantine.end(about)
            (home / QUARANTINE).mkdir(exist_ok=True)
            put(quarantine.path, home / QUARANTINE)
        put(table.path, home)
    return Loaded(split, table.rows, counts.corrupt - quarantine.rows, quarantine.rows)


def _parted(rows: Rows) -> tuple[Rows, Rows | None]:
    """Those that can be trusted, and those that cannot, if there are any."""
    if rows.crc_ok is None or rows.crc_ok.all():
        return rows, None
    return picked(rows, rows.crc_ok), picked(rows, ~rows.crc_ok)


# --- columns ---------------------------------------------------------------------------


def _repeated(text: str | None, count: int) -> pa.Array:
    """One text repeated, as Parquet stores it: once."""
    if text is None:
        return pa.nulls(count, TEXT)
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), [text])


TEXT = pa.dictionary(pa.int8(), pa.string())
OF_TABLE = (
    Column("topic", TEXT, lambda rows, split, count: _repeated(split.topic, count)),
    *(COLUMNS[name] for name in ("broker", "partition", "offset", "key", "payload")),
    Column(
        "codec", TEXT, lambda rows, split, count: _repeated(CODEC_NAMES.get(rows.codec), count)
    ),
    *(COLUMNS[name] for name in ("crc_ok", "next_offset")),
)
OF_QUARANTINE = (
    *OF_TABLE,
    Column(
        "reason",
        TEXT,
        lambda rows, split, count: _repeated(rows.reason or "its CRC is wrong", count),
    ),
)
REPEATING = ["topic", "broker", "partition", "codec", "crc_ok", "reason"]
"""Columns of which a file holds few values."""
RISING = ("offset", "next_offset")


# --- files -----------------------------------------------------------------------------


class _File:
    """A file of Parquet that is being written; it is made when there is something to write."""

    def __init__(self, path: Path, columns: tuple[Column, ...], compression: str) -> None:
        self.path = path
        self.columns = columns
        self.compression = compression
        self.rows = 0
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._sink: Any = None
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close an unfinished file; the owner of its folder removes it."""
        if self._sink is not None:
            with suppress(OSError):  # the write has failed before, so this may fail as well
                self._writer.close()
            with suppress(OSError):
                self._sink.close()

    def add(self, rows: Rows, split: LogRange) -> None:
        """Add rows, and write them when they are enough."""
        batch = batch_of(rows, split, self.columns)
        self._batches.append(batch)
        self.rows += len(batch)
        self._bytes += batch.nbytes
        if self._bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._open()
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
        self._batches, self._bytes = [], 0

    def _open(self) -> None:
        self._sink = self.path.open("xb")
        schema = pa.schema([(column.name, column.kind) for column in self.columns])
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression=self.compression,
            use_dictionary=[name for name in REPEATING if name in schema.names],
            column_encoding=dict.fromkeys(RISING, "DELTA_BINARY_PACKED"),
            store_schema=False,
        )

    def end(self, about: dict[str, str]) -> None:
        """Write the end, and bring it to the disk."""
        self._flush()
        self._writer.add_key_value_metadata(about)
        self._writer.close()
        self._sink.flush()
        os.fsync(self._sink.fileno())
        self._sink.close()
        self._writer = self._sink = None
