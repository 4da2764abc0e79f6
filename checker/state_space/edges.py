"""The edges of the state graph that come from free moves: those that have to come."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class EdgeBlock(NamedTuple):
    """The edges of one actor's moves from a range of states."""

    actor: int
    first: int
    states: Array
    """The states that have edges, in order, counted from `first`."""
    begins: Array
    """Where the targets of each of these begin."""
    targets: Array

    @property
    def sources(self) -> Array:
        """The numbers of the states that have edges."""
        numbers: Array = self.states.astype(np.int64) + self.first
        return numbers


class Edges:
    """Edges, in a block for each actor and range of states."""

    def __init__(self) -> None:
        self.blocks: list[EdgeBlock] = []

    def add(self, actor: int, first: int, source: Array, targets: Array) -> None:
        """Add edges; `source` is sorted and counted from `first`."""
        if not len(source):
            return
        begins = np.flatnonzero(np.diff(source, prepend=-1))
        self.blocks.append(
            EdgeBlock(
                actor,
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
        """The size in bytes."""
        return sum(
            block.states.nbytes + block.begins.nbytes + block.targets.nbytes
            for block in self.blocks
        )

    def reaching(self, good: Array) -> Array:
        """Return a flag for each state: whether a path leads from it to a good state.

        This is a backward fixed point. Breadth first, edges mostly lead to later states, so
        going through the blocks from the last to the first converges in few passes.
        """
        reaches: Array = good.copy()
        grew = True
        while grew:
            grew = False
            for block in reversed(self.blocks):
                can = np.logical_or.reduceat(reaches[block.targets], block.begins)
                at = block.sources
                new = can & ~reaches[at]
                if new.any():
                    reaches[at[new]] = True
                    grew = True
        return reaches

    def leading_to(self, good: Array) -> Array:
        """Return a flag for each state: whether every path from it leads to a good state."""
        leads: Array = good.copy()
        moves = np.zeros(len(good), np.bool_)
        for block in self.blocks:
            moves[block.sources] = True
        grew = True
        while grew:
            fails = np.zeros(len(good), np.bool_)
            for block in reversed(self.blocks):
                all_lead = np.logical_and.reduceat(leads[block.targets], block.begins)
                fails[block.sources[~all_lead]] = True
            new = moves & ~fails & ~leads
            leads |= new
            grew = bool(new.any())
        return leads

    def between(self, states: Array) -> tuple[Array, Array, Array]:
        """Return the edges among these sorted states: sources, targets and actors."""
        is_one = np.zeros(int(states[-1]) + 1, np.bool_)
        is_one[states] = True
        none = np.zeros(0, np.int64)
        found: list[tuple[Array, Array, Array]] = [(none, none, none.astype(np.uint64))]
        for block in self.blocks:
            counts = np.diff(block.begins, append=len(block.targets))
            sources = np.repeat(block.sources, counts)
            near = (
                np.minimum(sources, len(is_one) - 1),
                np.minimum(block.targets, len(is_one) - 1),
            )
            inner = (near[0] == sources) & (near[1] == block.targets)
            inner &= is_one[near[0]] & is_one[near[1]]
            actors = np.full(int(inner.sum()), block.actor, np.uint64)
            found.append((sources[inner], block.targets[inner].astype(np.int64), actors))
        return (
            np.concatenate([block[0] for block in found]),
            np.concatenate([block[1] for block in found]),
            np.concatenate([block[2] for block in found]),
        )

    def movers(self, states: int) -> Array:
        """Return for each state a bit for each actor that has an edge from it."""
        movers = np.zeros(states, np.uint64)
        for block in self.blocks:
            sources = block.sources
            movers[sources[sources < states]] |= np.uint64(1 << block.actor)
        return movers
