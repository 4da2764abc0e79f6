"""Appends that a killed broker had stored but not yet written into the trace.

A process may be killed between an append and the line of the trace that reports it. The data
is in its files all the same. The next process of that broker reads from the trace files how
much was reported, and reports the rest when it has opened its logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.delivery.message_id import ranges_in
from watchkeeper.model.log.log import Log
from watchkeeper.model.trace.kinds import EventKind

ReportedEnds = dict[tuple[str, str], int]
"""Topic and partition -> the offset up to which the log's contents were reported."""


def trace_files_of(path: Path) -> list[Path]:
    """The trace files of all processes with one name, oldest first."""
    name, _, _ = path.stem.rpartition(".")
    return sorted(path.parent.glob(f"{name}.*{path.suffix}"), key=_life)


def _life(path: Path) -> int:
    return int(path.stem.rpartition(".")[2])


def reported_in(trace_files: Iterable[Path]) -> ReportedEnds:
    """How much of each log was reported; a truncated line counts as not written."""
    reported: ReportedEnds = {}
    for trace_file in trace_files:
        for line in trace_file.read_bytes().splitlines():
            try:
                _, _, kind, _, _, topic, partition, _, detail = msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue
            end = _end(kind, detail)
            if end is not None:
                reported[topic, partition] = end
    return reported


def _end(kind: str, detail: dict[str, Any]) -> int | None:
    if kind == EventKind.LOG_OPENED:
        return int(detail["end"])
    return (
        MessageRange(*detail["ranges"][-1]).to
        if kind == EventKind.STORED and detail["ranges"]
        else None
    )


def unreported_in(log: Log, root: Path, reported: int) -> Iterator[MessageRange]:
    """The messages of a log that lie behind the reported offset."""
    at = max(reported, log.start)
    while at < log.end:
        view = log.view(at, log.end - at)
        with (root / view.path).open("rb") as file:
            file.seek(view.at)
            yield from ranges_in(file.read(view.size_bytes), at)
        at += view.size_bytes
