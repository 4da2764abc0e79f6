"""The edges that a search keeps: for each state, where the moves lead that have to come."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class EdgeBlock(NamedTuple):
    """The edges that one actor gives to a run of states."""

    first: int
    states: Array
    """Which of the states have any, in order, counted from `first`."""
    begins: Array
    """Where the edges of each of these begin."""
    targets: Array


class Edges:
    """Edges, a block for each actor and run of states."""

    def __init__(self) -> None:
        self.blocks: list[EdgeBlock] = []

    def add(self, first: int, states: int, source: Array, targets: Array) -> None:
        """Keep edges; `source` is in order and counted from `first`."""
        if not len(source):
            return
        begins = np.flatnonzero(np.diff(source, prepend=-1))
        self.blocks.append(
            EdgeBlock(
                first,
                source[begins].astype(np.uint32),
                begins.astype(np.uint32),
                targets.astype(np.uint32),
            )
        )

    def __len__(self) -> int:
        return sum(len(block.targets) for block in self.blocks)

    @property
    def nbytes(self) -> int:
        """What they take of the memory."""
        return sum(
            block.states.nbytes + block.begins.nbytes + block.targets.nbytes
            for block in self.blocks
        )

    def reaching(self, good: Array) -> Array:
        """Which states can reach a good one along these edges.

        Edges mostly lead away from the beginning, so the blocks are taken from the last to
        the first, again and again until nothing is added.
        """
        reaches: Array = good.copy()
        grew = True
        while grew:
            grew = False
            for block in reversed(self.blocks):
                can = np.logical_or.reduceat(reaches[block.targets], block.begins)
                at = block.first + block.states.astype(np.int64)
                new = can & ~reaches[at]
                if new.any():
                    reaches[at[new]] = True
                    grew = True
        return reaches
