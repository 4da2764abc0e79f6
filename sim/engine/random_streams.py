"""Chance, from one seed: a stream of random bits for each purpose.

Streams are separate so that one more draw for one purpose leaves all the others as they
were: a longer latency does not change which server a client tries first. Everything is
drawn from whole random bits by integer arithmetic, since the floating-point functions of
the C library, and the methods of `random`, differ between machines and versions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from random import Random
from typing import TypeVar

T = TypeVar("T")

Quantiles = tuple[int, ...]
"""257 values: what is drawn with probability 0/256, 1/256, .. 256/256 of being no more."""


def quantiles(anchors: Sequence[tuple[float, int]]) -> Quantiles:
    """A table to draw from, given (per cent, value) pairs from 0 to 100, joined by lines."""
    assert anchors[0][0] == 0, "the first anchor is at 0 %"
    assert anchors[-1][0] == 100, "the last anchor is at 100 %"
    table: list[int] = []
    at = 0
    for step in range(257):
        while step * 100 > anchors[at + 1][0] * 256:
            at += 1
        (low, low_value), (high, high_value) = anchors[at], anchors[at + 1]
        # In thousandths of a per cent, so that no float decides a value.
        low_m, high_m, here_m = round(low * 1000), round(high * 1000), step * 100_000 // 256
        span = max(high_m - low_m, 1)
        table.append(low_value + (high_value - low_value) * (here_m - low_m) // span)
    return tuple(table)


Steps = tuple[tuple[int, int], ...]
"""A table of quantiles as 256 pairs: the least value of a step, and how wide the step is."""


@lru_cache
def steps_of(table: Quantiles) -> Steps:
    """Return the steps of a table, from which a value is drawn without a subtraction."""
    return tuple((low, high - low) for low, high in pairwise(table))


class Stream:
    """Random bits for one purpose."""

    __slots__ = ("_random", "bits")

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.bits = self._random.getrandbits

    def begin_anew(self, seed: int) -> None:
        """Draw other bits from now on, also through references to `bits` that exist already."""
        self._random.seed(seed)

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1, each as likely as any."""
        assert bound > 0, "there must be something to draw from"
        width = bound.bit_length()
        while True:
            value = self.bits(width)
            if value < bound:
                return value

    def between(self, least: int, most: int) -> int:
        """A whole number from least to most, both included."""
        return least + self.below(most - least + 1)

    def chance(self, per_cent: int) -> bool:
        """True so many times in a hundred."""
        return self.below(100) < per_cent

    def draw(self, table: Quantiles) -> int:
        """A value from a table of quantiles."""
        bits = self.bits(16)
        at = bits >> 8
        low = table[at]
        return low + ((table[at + 1] - low) * (bits & 255) >> 8)

    def sampler(self, table: Quantiles) -> Callable[[], int]:
        """A function that draws from one table, for those who draw from it all the time."""
        bits, steps = self.bits, steps_of(table)

        def draw() -> int:
            drawn = bits(16)
            low, width = steps[drawn >> 8]
            return low + (width * (drawn & 255) >> 8)

        return draw

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in an order of chance."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]

    def hexadecimal(self, digits: int) -> str:
        """So many hexadecimal digits."""
        return f"{self.bits(4 * digits):0{digits}x}"


class Streams:
    """The streams of one run."""

    __slots__ = ("_open", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._open: dict[str, Stream] = {}

    def __call__(self, purpose: str) -> Stream:
        """The stream for a purpose; the same one each time."""
        stream = self._open.get(purpose)
        if stream is None:
            stream = self._open[purpose] = Stream(self._seed_of(purpose))
        return stream

    def _seed_of(self, purpose: str) -> int:
        digest = sha256(f"{self._seed}/{purpose}".encode()).digest()
        return int.from_bytes(digest[:8], "big")

    def begin_anew(self, seed: int) -> None:
        """Draw for every purpose, from now on, what a run with this seed draws first."""
        self._seed = seed
        for purpose, stream in self._open.items():
            stream.begin_anew(self._seed_of(purpose))
