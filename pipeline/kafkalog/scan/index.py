"""Finds an offset in a segment of 0.8 by the index of its broker.

An index holds the positions of some entries. It is a hint only: the entry at a position is
checked, and without an undamaged entry there, or without an index, the segment is read from its
start.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from watchkeeper.pipeline.kafkalog.scan.formats import Format, int64s
from watchkeeper.pipeline.kafkalog.scan.valid_runs import SegmentFile, has_right_crc

SUFFIX = ".index"
LARGEST_BYTES = 64 << 20
TRIES = 3


def nearest(file: SegmentFile, form: Format, start: int, offset: int, size_bytes: int) -> int:
    """The start of an entry at or before an offset, as near to it as is known."""
    path = Path(file.path).with_suffix(SUFFIX)
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return 0
        known = path.read_bytes()
    except OSError:
        return 0
    pairs = np.frombuffer(known[: len(known) // 8 * 8], ">i4").reshape(-1, 2).astype(np.int64)
    before = pairs[(pairs[:, 0] + start <= offset) & (pairs[:, 1] < size_bytes), 1]
    for place in np.unique(before[before > 0])[: -TRIES - 1 : -1].tolist():
        if _is_unwanted(file, form, place, offset, size_bytes):
            return int(place)
    return 0


def _is_unwanted(
    file: SegmentFile, form: Format, place: int, offset: int, size_bytes: int
) -> bool:
    """Whether an undamaged entry at a position ends before the offset.

    Then no message that is wanted stands before it, whatever the index says.
    """
    head = file.read(place, min(place + form.head_bytes, size_bytes))
    entry_bytes = form.step(head, 0)
    if not 0 < entry_bytes <= size_bytes - place:
        return False
    entry = file.read(place, place + entry_bytes)
    return has_right_crc(entry, form) and int(int64s(entry, np.array([0]))[0]) < offset
