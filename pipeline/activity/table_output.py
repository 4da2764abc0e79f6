"""Writes tables: whole, replacing the one before, or batch by batch.

A stream writes each batch into files named after it. A batch that was written in part is
written again under the same names; so a kill at any moment does no harm, and a reader of Parquet
reads each row once.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from watchkeeper.pipeline.activity.folder import Made, Place, stamp
from watchkeeper.pipeline.activity.jobs import Table
from watchkeeper.pipeline.activity.log_input import names_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def put_in_place(frame: DataFrame, table: Table, place: Place, made: Made) -> None:
    """Write a whole table, and then replace the one before."""
    _write(frame, table, place.new)
    stamp(place.new, made)
    shutil.rmtree(place.old, ignore_errors=True)
    if place.home.exists():
        place.old.parent.mkdir(exist_ok=True)
        place.home.rename(place.old)
    place.new.rename(place.home)


def put_batch(frame: DataFrame, number: int, table: Table, place: Place) -> None:
    """Write the rows of a batch to a table, replacing earlier files of this batch."""
    _write(frame, table, place.new)
    for left in place.home.rglob(f"batch-{number:06}-*.parquet"):
        left.unlink()
    for at, part in enumerate(sorted(place.new.rglob("*.parquet"))):
        if rows_in(part):
            name = f"batch-{number:06}-{at:04}.parquet"
            folder = place.home / part.parent.relative_to(place.new)
            folder.mkdir(exist_ok=True)
            part.rename(folder / name)


def _write(frame: DataFrame, table: Table, folder: Path) -> None:
    writer = frame.write.mode("overwrite")
    if table.parted_by:
        writer = writer.partitionBy(table.parted_by)
    writer.parquet(str(folder))


def in_columns(frame: DataFrame, table: Table) -> DataFrame:
    """The columns of a table, which must match its definition."""
    names = names_of(table.columns)
    kinds = dict(frame.dtypes)
    has = ", ".join(f"{name} {kinds.get(name)}" for name in names)
    assert has == table.columns, f"{table.name} has {has}, and not {table.columns}"
    assert len(kinds) == len(names), f"{table.name} has more than {has}: {list(kinds)}"
    return frame.select(*names)


def rows_in(file: Path) -> int:
    """How many rows a file of Parquet has."""
    return int(pq.read_metadata(file).num_rows)
