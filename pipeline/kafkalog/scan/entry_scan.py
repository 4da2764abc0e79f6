"""Finds where the entries of a message set begin, without a step for each.

Where an entry begins is known only from where the one before it ends. Going from one to
the next costs a step in Python each, which is a third of all that reading a log takes.

Instead, all places that look like the beginning of an entry are found at once, and of each
it is computed where that entry would end. If the first is a beginning for certain, and ends
where the second place is, then so is the second; and so on. As long as each leads to the
next, all of them are proved, and numpy says where that ends. There the entry either is not
whole, or looks unlike most (it is large, or of magic 0), or something in a message looked
like an entry. Some steps are then made one by one. So nothing is guessed: what comes out is
exactly what going from one to the next would give.
"""

from __future__ import annotations

import numpy as np

from pipeline.kafkalog.formats import Format, Places

STEPS = 512
"""How many steps are made one by one before places are looked at again."""


def chain(data: bytes, form: Format) -> Places:
    """Where the entries begin that follow one another from 0 on, and where the last ends.

    It goes as far as entries are whole and can be ones; `[0]` if there is no such entry.
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
    """Where some entries begin, from there on, and where the last of them ends."""
    steps = [at]
    limit = len(data)
    while len(steps) <= STEPS:
        end = form.step(data, steps[-1])
        if not steps[-1] < end <= limit:
            break
        steps.append(end)
    return steps
