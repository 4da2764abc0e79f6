"""Finds the entries of a message set without a Python step for each.

The start of an entry is known only from the end of the one before. Going from one to the next
costs a step in Python each, which is a third of the time of reading a log.

Instead, all places that look like the start of an entry are found at once, and for each the end
of that entry is computed. If the first is a start for certain, and ends at the second place, then
the second is one too; and so on. As long as each leads to the next, all of them are proved, and
numpy finds where that stops. There the entry is either incomplete, or looks unlike most (it is
large, or of magic 0), or something in a message looked like an entry. A few steps are then made
one by one. So nothing is guessed: the result is exactly that of going from one to the next.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.pipeline.kafkalog.scan.formats import Format, Places

STEPS = 512
"""How many steps are made one by one before places are searched again."""


def chain(data: bytes, form: Format) -> Places:
    """The starts of the entries that follow one another from 0 on, and the end of the last.

    It stops at the first entry that is incomplete or impossible; `[0]` if there is no entry.
    """
    limit = len(data)
    likely, ends = _linked(data, form)
    breaks = np.append(np.flatnonzero(ends[:-1] != likely[1:]), len(likely) - 1)
    found: list[Places] = []
    at = 0
    while True:
        first = int(np.searchsorted(likely, at))
        if first < len(likely) and likely[first] == at:
            last = int(breaks[np.searchsorted(breaks, first)])
            if ends[last] <= limit:
                found.append(likely[first : last + 1])
                at = int(ends[last])
                continue
            found.append(likely[first:last])
            at = int(likely[last])
            break
        steps = _steps(data, form, at)
        if len(steps) == 1:
            break
        found.append(np.array(steps[:-1], np.int64))
        at = steps[-1]
    return np.concatenate([*found, np.array([at], np.int64)])


def _linked(data: bytes, form: Format) -> tuple[Places, Places]:
    """The likely places, and where their entries end; without those that lead nowhere."""
    likely = form.likely(data)
    ends = form.ends(data, likely)
    if np.array_equal(ends[:-1], likely[1:]):
        return likely, ends
    is_likely = np.zeros(len(data) + 1, bool)
    is_likely[likely] = True
    is_likely[-1] = True
    leads = is_likely[np.minimum(ends, len(data))]
    return likely[leads], ends[leads]


def _steps(data: bytes, form: Format, at: int) -> list[int]:
    """The starts of some entries from a place on, and the end of the last."""
    steps = [at]
    limit = len(data)
    while len(steps) <= STEPS:
        end = form.step(data, steps[-1])
        if not steps[-1] < end <= limit:
            break
        steps.append(end)
    return steps
