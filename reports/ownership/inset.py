"""The inset: the part of a run that is shown closer, a split or the busiest part.

A split lasts milliseconds in a run of a minute, and a herd that starts together is done in a
tenth of a second. Neither is visible in a picture of the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence

from watchkeeper.reports.facts.spans import Span

TOO_SHORT = 1 / 300
"""Share of the run; a shorter span is not visible."""
NARROW = 1 / 20
"""Of the run: a part that is longer than this can be seen well enough as it is."""
NEARLY_ALL = 0.9
AROUND_BREACH = 0.35
AROUND_BUSY = 0.08
"""How much before and after it is shown with a part, in shares of it."""

Part = tuple[int, int]
"""From when to when, in microseconds."""


def worth_a_look(breaches: Sequence[Span], moments: Sequence[int], end_us: int) -> Part | None:
    """The part to be shown closer, if any; `moments` are the times of all changes."""
    found, around = _short_breaches(breaches, end_us), AROUND_BREACH
    if found is None:
        found, around = _busy(sorted(moments), end_us), AROUND_BUSY
    if found is None or found[1] - found[0] > end_us * NARROW:
        return None
    margin = max(round((found[1] - found[0]) * around), 5)
    step = round_step(margin)
    begins = max((found[0] - margin) // step * step, 0)
    ends = min(-(-(found[1] + margin) // step) * step, end_us)
    return (begins, ends) if begins < ends else None


def round_step(most_us: int) -> int:
    """The largest power of ten that is not longer than this."""
    return int("1" + "0" * (len(str(most_us)) - 1))


def _short_breaches(breaches: Sequence[Span], end_us: int) -> Part | None:
    """The first breach that is too short, with its adjacent spans."""
    short = [breach for breach in breaches if breach.duration_us < end_us * TOO_SHORT]
    if not short:
        return None
    first = min(short, key=lambda breach: breach.first_seq)
    begins, ends = first.start_us, first.end_us
    for breach in sorted(breaches, key=lambda breach: breach.first_seq):
        touches = breach.start_us <= ends and breach.end_us >= begins
        longer = max(ends, breach.end_us) - min(begins, breach.start_us)
        if touches and longer <= end_us * NARROW:
            begins, ends = min(begins, breach.start_us), max(ends, breach.end_us)
    return begins, ends


def _busy(moments: Sequence[int], end_us: int) -> Part | None:
    """The shortest part that contains nearly all changes, and its surroundings."""
    number = round(len(moments) * NEARLY_ALL)
    if number < 2:
        return None
    parts = zip(moments, moments[number - 1 :], strict=False)
    begins, ends = min(parts, key=lambda part: part[1] - part[0])
    nearby = (ends - begins) // 2
    near = [at for at in moments if begins - nearby <= at <= ends + nearby]
    return near[0], near[-1]
