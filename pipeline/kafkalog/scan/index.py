"""Finds an offset in a segment of 0.8 by the index that its broker keeps.

An index says of an entry now and then at which place of the segment it stands. It is an
advice, not more: what it points at is looked at, and where no undamaged entry stands there,
or there is no index, the segment is read from its beginning.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pipeline.kafkalog.formats import Format, int64s
from pipeline.kafkalog.stretches import SegmentFile, has_right_crc

SUFFIX = ".index"
LARGEST_BYTES = 64 << 20
TRIES = 3


def nearest(file: SegmentFile, form: Format, start: int, offset: int, size_bytes: int) -> int:
    """Where an entry begins before all that is wanted: as near to an offset as is known."""
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
    """Whether an undamaged entry stands there that ends before the offset.

    Then nothing that is wanted stands before it, whatever the index says.
    """
    head = file.read(place, min(place + form.head_bytes, size_bytes))
    entry_bytes = form.step(head, 0)
    if not 0 < entry_bytes <= size_bytes - place:
        return False
    entry = file.read(place, place + entry_bytes)
    return has_right_crc(entry, form) and int(int64s(entry, np.array([0]))[0]) < offset
