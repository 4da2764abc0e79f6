"""Where an axis has its numbers."""

from __future__ import annotations

STEPS = (1, 2, 5)
MOST_DECIMALS = 6


def step_us(length_us: int, most: int) -> int:
    """The smallest round step that needs at most so many ticks for a length."""
    power = 1
    while True:
        for factor in STEPS:
            if factor * power * most >= length_us:
                return factor * power
        power *= 10


def ticks_us(end_us: int, most: int, from_us: int = 0) -> list[int]:
    """The moments of a run, or of a part of it, that get a number."""
    step = step_us(max(end_us - from_us, 1), max(most, 1))
    return list(range(-(-from_us // step) * step, end_us + 1, step))


def tick_text(at_us: int) -> str:
    """A moment in seconds, with no more decimals than it needs."""
    return f"{at_us / 1e6:.{MOST_DECIMALS}f}".rstrip("0").rstrip(".")
