"""Round steps of the axes that pages and pictures share, and the words of a moment.

Pictures place the numbers of time by matplotlib's tickers; pages are written without it.
"""

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


def tick_text(at_us: int) -> str:
    """A moment in seconds, with no more decimals than it needs."""
    return f"{at_us / 1e6:.{MOST_DECIMALS}f}".rstrip("0").rstrip(".")
