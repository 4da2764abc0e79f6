"""The stream of logs: each batch continues where the one before it ended.

The position of a stream is an offset for each log, `{"0/clicks-3": 1430}`, and Spark stores it
with the output of the batch. At brokers of 0.8 the name of a log is without the broker, since its
leader may move. An entry that is incomplete is left for a later batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.logs import Log, check_boundary, end_of
from watchkeeper.pipeline.kafkalog.missing_offsets import first_to_read, rest_of
from watchkeeper.pipeline.kafkalog.options import Options
from watchkeeper.pipeline.kafkalog.read_limits import bytes_of, messages_of, within
from watchkeeper.pipeline.kafkalog.scan.splits import SPLIT_BYTES, LogRange, bundles
from watchkeeper.pipeline.kafkalog.source import Bundle, read_bundle

if TYPE_CHECKING:
    import pyarrow as pa

Place = dict[str, int]
"""Log -> the offset at which to go on."""


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads logs, batch after batch."""

    def __init__(self, options: Options, columns: tuple[str, ...]) -> None:
        self.options = options
        self.columns = columns
        self.target: Place | None = None
        """The end of a stream that reads only what was there when it started."""

    # --- places ------------------------------------------------------------------------

    def initialOffset(self) -> Place:  # noqa: N802
        """The start of a new stream."""
        starting = self.options.starting_offsets
        logs = self.options.logs()
        if starting == "latest":
            return {log.name: end_of(log) for log in logs}
        place = {log.name: log.start for log in logs}
        if isinstance(starting, dict):
            self._check_starting(starting, logs)
            place |= starting
        return place

    def _check_starting(self, starting: Place, logs: list[Log]) -> None:
        known = {log.name: log for log in logs}
        for name, offset in starting.items():
            if name not in known:
                raise PipelineProblem(
                    f"startingOffsets has {name}, which is no log in {self.options.where}; it "
                    f"has {', '.join(sorted(known)[:10])}"
                )
            check_boundary(known[name], offset)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit of a batch, by the options."""
        if self.options.max_messages is not None:
            return ReadMaxRows(self.options.max_messages)
        if self.options.max_bytes is not None:
            return ReadMaxBytes(self.options.max_bytes)
        return ReadAllAvailable()

    def latestOffset(self, start: Place, limit: ReadLimit) -> Place:  # noqa: N802
        """Where the next batch ends."""
        logs = self.options.logs()
        self._check_names(start, logs)
        place = {log.name: self._begin(log, start) for log in logs}
        if isinstance(limit, ReadMaxRows):
            reached = within(logs, place, limit.max_rows, messages_of)
        elif isinstance(limit, ReadMaxBytes):
            reached = within(logs, place, limit.max_bytes, bytes_of)
        else:
            reached = {}
        for log in logs:
            if reached.get(log.name, place[log.name]) == place[log.name]:
                end = rest_of(log, place[log.name], None, SPLIT_BYTES).end
                reached.setdefault(log.name, end)
        return start | self._up_to_target(place, reached)

    def _check_names(self, start: Place, logs: list[Log]) -> None:
        """In 0.8 a log in a folder is named after its broker, and one at brokers is not."""
        for log in logs:
            plain = f"{log.topic}-{log.partition}"
            others = {plain, f"{log.broker}/{plain}"} - {log.name}
            if log.name not in start and (found := others & start.keys()):
                raise PipelineProblem(
                    f"the checkpoint has {min(found)}, and at {self.options.where} that log is "
                    f"{log.name}: it was begun elsewhere; begin with an empty checkpoint"
                )

    def _begin(self, log: Log, start: Place) -> int:
        """The offset from which a log is read; a new log, from its start."""
        return first_to_read(log, start.get(log.name, log.start), self.options.gaps)

    def _up_to_target(self, place: Place, reached: Place) -> Place:
        if self.target is None:
            return reached
        target = self.target
        return {
            name: max(min(offset, target.get(name, 0)), place[name])
            for name, offset in reached.items()
        }

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the stream at what is there now."""
        self.target = {log.name: end_of(log) for log in self.options.logs()}

    # --- messages ----------------------------------------------------------------------

    def partitions(self, start: Place, end: Place) -> list[InputPartition]:
        """The bundles of splits of a batch, one for each task."""
        logs = {log.name: log for log in self.options.logs()}
        splits: list[LogRange] = []
        for name, high in sorted(end.items()):
            if name not in logs:
                if start.get(name, high) < high:
                    raise PipelineProblem(
                        f"{name} is no log in {self.options.where} any more, and was read only "
                        f"up to {start[name]} of {high}; put it back"
                    )
                continue
            low = self._begin(logs[name], start)
            if low < high:
                splits += rest_of(logs[name], low, high, self.options.split_bytes).splits
        return [Bundle(some) for some in bundles(splits)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages in the splits of a task."""
        assert isinstance(partition, Bundle), "only bundles are handed out"
        return read_bundle(partition, self.options, self.columns)
