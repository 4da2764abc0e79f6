"""The errors for a log that lacks the offset at which reading should continue."""

from __future__ import annotations

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.logs import Log, cut
from watchkeeper.pipeline.kafkalog.scan.folders import Gaps, deleted_unread
from watchkeeper.pipeline.kafkalog.scan.splits import Cut


def first_to_read(log: Log, offset: int, gaps: Gaps) -> int:
    """The offset at which to continue: this one, or the first that is left if it was deleted."""
    if offset >= log.start:
        return offset
    if gaps == "allow":
        return log.start
    raise PipelineProblem(deleted_unread(log, offset, log.start))


def rest_of(log: Log, offset: int, high: int | None, split_bytes: int) -> Cut:
    """The splits from an offset on, at which an earlier read has ended."""
    rest = cut(log, offset, high, split_bytes=split_bytes, are_boundaries=True)
    if high is None and rest.end < offset:
        raise PipelineProblem(
            f"{log} was read up to {offset}, and now ends at {rest.end}: it is not the log that "
            "it was; its broker has lost messages in a crash, or it was begun anew: begin anew "
            "as well, with an empty folder to write to"
        )
    return rest
