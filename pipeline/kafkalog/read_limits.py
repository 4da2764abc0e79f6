"""How far a batch of a stream reads, if it may not read everything.

The limit is shared among the logs in turn, those with the least to read first, so that what one
of them leaves is available to the others. An entry is read whole or not at all; if no entry
fits, one of the longest log is read nevertheless, since the stream would stall otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from watchkeeper.model.log.format.codecs import decompress
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.pipeline.kafkalog.logs import Log, bytes_ahead, entries_from
from watchkeeper.pipeline.kafkalog.scan.entry_scan import chain
from watchkeeper.pipeline.kafkalog.scan.formats import FORMATS, Places
from watchkeeper.pipeline.kafkalog.scan.rows import LIMIT_BYTES
from watchkeeper.pipeline.kafkalog.scan.segment_scan import Walked

Cost = Callable[[Log, Walked, int], Places]
"""A log, scanned entries of it, and the offset before: the cost of each entry."""


def bytes_of(log: Log, passed: Walked, before: int) -> Places:
    """An entry counts for its size in the file."""
    return np.diff(passed.stretch.bounds)


def messages_of(log: Log, passed: Walked, before: int) -> Places:
    """An entry costs the number of its messages.

    In 0.8 the offsets give that number; in 0.7 a wrapper has to be opened.
    """
    if log.format == "0.8":
        return np.maximum(np.diff(passed.after, prepend=before), 1)
    form = FORMATS[log.format]
    data, bounds = passed.stretch.data, passed.stretch.bounds
    heads = form.heads(data, bounds[:-1], bounds[1:])
    counts = np.ones(len(passed.after), np.int64)
    for at in np.flatnonzero(heads.codec).tolist():
        wrapped = data[int(heads.value_at[at]) : int(bounds[at + 1])]
        try:
            inner = decompress(
                int(heads.codec[at]),
                wrapped,
                limit_bytes=LIMIT_BYTES,
                where=str(log),
                known=form.codecs,
            )
        except LogError:
            continue  # it costs one, as one unreadable row
        counts[at] = max(len(chain(inner, form)) - 1, 1)
    return counts


def within(
    logs: Iterable[Log], place: Mapping[str, int], limit: int, cost: Cost
) -> dict[str, int]:
    """The offset to stop at in each log, so that the total cost stays within the limit."""
    ahead = sorted((bytes_ahead(log, place[log.name]), log.name, log) for log in logs)
    reached = dict(place)
    left = limit
    for turn, (_, name, log) in enumerate(ahead):
        reached[name], used = reach(log, place[name], left // (len(ahead) - turn), cost)
        left -= used
    for _, name, log in reversed(ahead):
        if left < limit:
            break
        reached[name], used = reach(log, place[name], 0, cost, at_least_one=True)
        left -= used
    return reached


def reach(
    log: Log, offset: int, budget: int, cost: Cost, *, at_least_one: bool = False
) -> tuple[int, int]:
    """The last entry boundary within a limit from an offset on, and the cost up to it."""
    reached, used = offset, 0
    for passed in entries_from(log, offset):
        if isinstance(passed, int):
            reached = passed
            continue
        wanted = _wanted(passed, offset)
        costs = used + np.cumsum(cost(log, wanted, reached))
        fitting = int(np.count_nonzero(costs <= budget))
        if at_least_one and not used and len(costs):
            fitting = max(fitting, 1)
        if fitting:
            reached, used = int(wanted.after[fitting - 1]), int(costs[fitting - 1])
        if fitting < len(costs):
            break
    return reached, used


def _wanted(passed: Walked, offset: int) -> Walked:
    """Without the entries before an offset."""
    first = int(np.count_nonzero(passed.after <= offset))
    if not first:
        return passed
    entries = passed.stretch
    wanted = entries._replace(bounds=entries.bounds[first:])
    return Walked(wanted, passed.after[first:], passed.goes_on)
