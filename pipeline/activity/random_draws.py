"""Random draws from a seed: integers, and ranks by Zipf's law.

Each purpose has its own bits, so that one more draw for one of them leaves the others
unchanged. Weights are integers: a draw does not depend on a machine's floating point.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from hashlib import sha256
from itertools import accumulate
from random import Random

SCALE = 1 << 40


class Chance:
    """Random numbers for one purpose."""

    def __init__(self, seed: int, purpose: str) -> None:
        digest = sha256(f"{seed} {purpose}".encode()).digest()
        self._bits = Random(int.from_bytes(digest[:8], "big")).getrandbits

    def below(self, bound: int) -> int:
        """An integer from 0 to bound - 1, uniformly."""
        width = bound.bit_length()
        while True:
            value = self._bits(width)
            if value < bound:
                return value

    def per_cent(self, chance: int) -> bool:
        """True with a chance in per cent."""
        return self.below(100) < chance


class Weighted:
    """Draws places of a list, each with its weight."""

    def __init__(self, weights: Sequence[int]) -> None:
        self._sums = list(accumulate(weights))

    def draw(self, chance: Chance) -> int:
        """A place, from 0 on."""
        return bisect_right(self._sums, chance.below(self._sums[-1]))


def zipf(count: int, exponent: float) -> Weighted:
    """A draw among `count` items, of which the k-th has a share like k ** -exponent."""
    return Weighted([max(round(SCALE * rank**-exponent), 1) for rank in range(1, count + 1)])
