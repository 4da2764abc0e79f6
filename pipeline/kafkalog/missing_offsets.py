"""The errors for a log that lacks the offset at which reading should continue."""

from __future__ import annotations

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.scan.folders import Gaps, LogFolder
from watchkeeper.pipeline.kafkalog.scan.splits import Cut, cut


def first_to_read(log: LogFolder, offset: int, gaps: Gaps) -> int:
    """The offset at which to continue: this one, or the first that is left if it was deleted."""
    if offset >= log.start:
        return offset
    if gaps == "allow":
        return log.start
    raise PipelineProblem(
        f"{log} was read up to {offset}, and now begins at {log.start}: what was between "
        "them has been deleted unread; go on behind it by allowing gaps"
    )


def rest_of(log: LogFolder, offset: int, high: int | None, split_bytes: int) -> Cut:
    """The splits from an offset on, at which an earlier read has ended."""
    rest = cut(log, offset, high, split_bytes=split_bytes, are_boundaries=True)
    if high is None and rest.end < offset:
        raise PipelineProblem(
            f"{log} was read up to {offset}, and now ends at {rest.end}: it is not the log that "
            "it was; its broker has lost messages in a crash, or it was begun anew: begin anew "
            "as well, with an empty folder to write to"
        )
    return rest


def check_boundary(log: LogFolder, offset: int) -> None:
    """Raise PipelineProblem if no entry of a log starts or ends at an offset."""
    end = cut(log).end
    if not log.start <= offset <= end:
        raise PipelineProblem(
            f"{log} has the offsets from {log.start} to {end}, and not {offset}"
        )
    splits = cut(log, offset).splits
    if log.format == "0.7" and splits and splits[0].start + splits[0].begin != offset:
        raise PipelineProblem(
            f"in {log} no message begins at offset {offset}; one does at "
            f"{splits[0].start + splits[0].begin}"
        )
