"""Chance, from a seed: whole numbers, and ranks as Zipf's law has them.

Each purpose has bits of its own, so that one more draw for one of them leaves the others as
they were. Weights are whole numbers: what is drawn does not depend on how a machine adds up
fractions.
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
        """A whole number from 0 to bound - 1, each as likely as any."""
        width = bound.bit_length()
        while True:
            value = self._bits(width)
            if value < bound:
                return value

    def per_cent(self, chance: int) -> bool:
        """True so many times in a hundred."""
        return self.below(100) < chance


class Weighted:
    """Draws places of a list, each with its weight."""

    def __init__(self, weights: Sequence[int]) -> None:
        self._sums = list(accumulate(weights))

    def draw(self, chance: Chance) -> int:
        """A place, from 0 on."""
        return bisect_right(self._sums, chance.below(self._sums[-1]))


def zipf(count: int, exponent: float) -> Weighted:
    """Draws one of so many, of which the k-th has a share like k ** -exponent."""
    return Weighted([max(round(SCALE * rank**-exponent), 1) for rank in range(1, count + 1)])
