"""Logs in files and logs at brokers: each function here takes either.

What reads logs, a query, a stream or a load, does not know where they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.brokers import broker_log, fetched
from watchkeeper.pipeline.kafkalog.brokers.broker_log import BrokerLog, BrokerSplit
from watchkeeper.pipeline.kafkalog.scan import splits
from watchkeeper.pipeline.kafkalog.scan.folders import LogFolder
from watchkeeper.pipeline.kafkalog.scan.rows import Rows
from watchkeeper.pipeline.kafkalog.scan.segment_scan import Walked, walk, with_limits
from watchkeeper.pipeline.kafkalog.scan.split_reader import (
    COLUMNS,
    Asked,
    Counts,
    batch_of,
    segment_rows,
    treated,
)
from watchkeeper.pipeline.kafkalog.scan.splits import SPLIT_BYTES, Cut, LogRange, Split

Log = LogFolder | BrokerLog


def cut(
    log: Log,
    low: int | None = None,
    high: int | None = None,
    *,
    split_bytes: int = SPLIT_BYTES,
    are_boundaries: bool = False,
) -> Cut:
    """Cut a log from one offset up to another; see `scan.splits.cut`."""
    if isinstance(log, LogFolder):
        return splits.cut(log, low, high, split_bytes=split_bytes, are_boundaries=are_boundaries)
    low = log.start if low is None else max(low, log.start)
    if high is None or (high > log.end and not are_boundaries):
        high = log.end
    if log.format == "0.7":
        return broker_log.cut_at_segments(
            log, low, high, split_bytes=split_bytes, are_boundaries=are_boundaries
        )
    message_bytes = fetched.message_bytes(log, low) if low < min(high, log.end) else 1.0
    return broker_log.cut_at_messages(
        log, low, high, split_bytes=split_bytes, message_bytes=message_bytes
    )


def end_of(log: Log) -> int:
    """The offset after the last whole message of a log."""
    return cut(log).end if isinstance(log, LogFolder) else log.end


def bytes_ahead(log: Log, offset: int) -> int:
    """About how many bytes there are from an offset on; messages, at a broker of 0.8."""
    if isinstance(log, BrokerLog):
        return max(log.end - offset, 0)
    return sum(
        segment.size_bytes
        for segment, limit in with_limits(log)
        if limit is None or limit > offset
    )


def entries_from(log: Log, offset: int) -> Iterator[Walked | int]:
    """The entries from an offset on; at the end of a segment, the offset that follows it."""
    if isinstance(log, BrokerLog):
        if offset < log.end:
            yield from fetched.entries_from(log, offset)
        return
    for segment, limit in with_limits(log):
        if limit is not None and limit <= offset:
            continue
        with walk(log, segment, limit) as way:
            yield from way.entries(way.place_of(max(offset, segment.start), is_boundary=True))
        if limit is not None:
            yield limit


def check_boundary(log: Log, offset: int) -> None:
    """Raise PipelineProblem if no entry of a log starts or ends at an offset."""
    end = end_of(log)
    if not log.start <= offset <= end:
        raise PipelineProblem(
            f"{log} has the offsets from {log.start} to {end}, and not {offset}"
        )
    if log.format == "0.8":
        return
    if isinstance(log, BrokerLog):
        if not fetched.begins_entry(log, offset):
            raise PipelineProblem(f"in {log} no message begins at offset {offset}")
        return
    found = (each for each in splits.cut(log, offset).splits if isinstance(each, Split))
    begin = next((split.start + split.begin for split in found), offset)
    if begin != offset:
        raise PipelineProblem(
            f"in {log} no message begins at offset {offset}; one does at {begin}"
        )


def read(split: LogRange, asked: Asked, counts: Counts) -> Iterator[pa.RecordBatch]:
    """The requested messages of a split, in the order of the log."""
    columns = [COLUMNS[name] for name in asked.columns]
    for rows in read_rows(split, asked, counts):
        yield batch_of(rows, split, columns)


def read_rows(split: LogRange, asked: Asked, counts: Counts) -> Iterator[Rows]:
    """The same, before they are put into columns."""
    if isinstance(split, BrokerSplit):
        return treated(fetched.broker_rows(split, asked), split, asked, counts)
    assert isinstance(split, Split), "a split is of a file or of a broker"
    return treated(segment_rows(split, asked), split, asked, counts)
