"""The parallel load: plans what a table lacks of the logs, runs it, and sums up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.logs import Log
from watchkeeper.pipeline.kafkalog.missing_offsets import first_to_read, rest_of
from watchkeeper.pipeline.kafkalog.options import Options
from watchkeeper.pipeline.kafkalog.scan.splits import BUNDLE_BYTES, Cut, LogRange, bundles
from watchkeeper.pipeline.loading.commits import Held, LogKey, commit_of, key_of
from watchkeeper.pipeline.loading.load_task import Loaded, LoadTask
from watchkeeper.pipeline.loading.table import opened

Run = Callable[[list[Log], Iterable[LoadTask]], Iterator[list[Loaded]]]
"""Runs the tasks of some logs, and yields the results of their splits as they arrive."""
Tell = Callable[["Progress"], None]


@dataclass(slots=True)
class LogSum:
    """The result of a load for one log."""

    begin: int
    """The offset that the table had reached."""
    reached: int
    messages: int = 0
    skipped: int = 0
    quarantined: int = 0
    torn_bytes: int = 0
    """Bytes at the end of the log that are no whole message yet."""


@dataclass(slots=True)
class Sum:
    """The result of a load."""

    logs: dict[LogKey, LogSum] = field(default_factory=dict)
    files: int = 0
    size_bytes: int = 0
    """How much was read."""
    problems: list[str] = field(default_factory=list)
    """Why some splits were not loaded, in the order of time."""

    def counted(self, what: str) -> int:
        """A count over all logs: messages, skipped, quarantined."""
        return sum(getattr(log, what) for log in self.logs.values())


class Progress(Struct, frozen=True):
    """The progress of a load."""

    done_bytes: int
    all_bytes: int
    messages: int


class Planned(Struct, frozen=True):
    """The plan of a load."""

    splits: list[LogRange]
    logs: dict[LogKey, LogSum]


def load_logs(
    options: Options, out: Path, run: Run, *, compression: str = "snappy", tell: Tell
) -> Sum:
    """Load what a table lacks of the logs; after a kill at any moment the same call continues.

    PipelineProblem if it cannot start; an error of one split is part of the result, and all
    others are loaded.
    """
    logs = options.logs()
    with opened(out) as table:
        plan = planned(logs, table.held(), options)
        tasks = [
            LoadTask(
                tuple(some),
                str(table.home),
                str(table.run),
                options.on_corrupt,
                options.gaps,
                compression,
            )
            for some in bundles(plan.splits, BUNDLE_BYTES)
        ]
        found = Sum(plan.logs)
        for outcome in run(logs, tasks):
            _add(found, outcome)
            tell(Progress(found.size_bytes, size_of(plan.splits), found.counted("messages")))
        for key, log in table.held().items():
            if key in found.logs:
                found.logs[key].reached = log.reached
    return found


def size_of(splits: Iterable[LogRange]) -> int:
    """How much is read of the logs."""
    return sum(split.size_bytes for split in splits)


def _add(found: Sum, outcome: list[Loaded]) -> None:
    for result in outcome:
        if result.problem:
            found.problems.append(result.problem)
            continue
        log = found.logs[key_of(result.split)]
        log.messages += result.messages
        log.skipped += result.skipped
        log.quarantined += result.quarantined
        found.files += 1
        found.size_bytes += result.split.size_bytes


# --- planning --------------------------------------------------------------------------


def planned(logs: list[Log], has: dict[LogKey, Held], options: Options) -> Planned:
    """The parts of the logs that a table lacks."""
    plan = Planned([], {})
    for log in logs:
        key = key_of(log)
        there = has.get(key)
        _check_format(log, has, there)
        reached = log.start if there is None else there.reached
        plan.logs[key] = LogSum(reached, reached)
        for low, high in [(log.start, None)] if there is None else there.holes(log.start):
            rest = _rest(log, low, high, options)
            plan.splits.extend(rest.splits)
            plan.logs[key].torn_bytes = rest.torn_bytes
    for split in plan.splits:
        commit_of(split).name  # noqa: B018  # says now what would keep it from being written
    return plan


def _rest(log: Log, low: int, high: int | None, options: Options) -> Cut:
    """The splits of a log that fill a hole."""
    first = first_to_read(log, low, options.gaps)
    if high is not None and first >= high:
        return Cut([], high, 0)
    rest = rest_of(log, first, high, options.split_bytes)
    if first > low and rest.splits:
        # messages deleted unread count as passed, or the table would never get beyond them
        passed = replace(rest.splits[0], from_offset=low)
        return rest._replace(splits=[passed, *rest.splits[1:]])
    return rest


def _check_format(log: Log, has: dict[LogKey, Held], there: Held | None) -> None:
    for key, held in has.items():
        is_same = (key.topic, key.partition) == (log.topic, log.partition)
        if is_same and held.format != log.format:
            raise PipelineProblem(
                f"the table holds {key} of Kafka {held.format}, and the log is of {log.format}; "
                "their offsets mean different things: name another folder for it"
            )
    assert there is None or there.format == log.format, "that was looked at above"
