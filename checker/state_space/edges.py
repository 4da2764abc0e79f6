"""The edges that a search keeps: for each state, where the moves lead that have to come."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class EdgeBlock(NamedTuple):
    """The edges that one actor gives to a run of states."""

    actor: int
    first: int
    states: Array
    """Which of the states have any, in order, counted from `first`."""
    begins: Array
    """Where the edges of each of these begin."""
    targets: Array

    @property
    def sources(self) -> Array:
        """The states that have any, by their numbers."""
        numbers: Array = self.states.astype(np.int64) + self.first
        return numbers


class Edges:
    """Edges, a block for each actor and run of states."""

    def __init__(self) -> None:
        self.blocks: list[EdgeBlock] = []

    def add(self, actor: int, first: int, source: Array, targets: Array) -> None:
        """Keep edges; `source` is in order and counted from `first`."""
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
                at = block.sources
                new = can & ~reaches[at]
                if new.any():
                    reaches[at[new]] = True
                    grew = True
        return reaches

    def leading_to(self, good: Array) -> Array:
        """Which states come to a good one whatever moves are made."""
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
        """The edges among these states, which are in order: sources, targets, actors."""
        is_one = np.zeros(int(states[-1]) + 1, np.bool_)
        is_one[states] = True
        found: list[tuple[Array, Array, Array]] = []
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
            np.concatenate([one[0] for one in found]),
            np.concatenate([one[1] for one in found]),
            np.concatenate([one[2] for one in found]),
        )

    def movers(self, states: int) -> Array:
        """For each of so many states, a bit for each actor that can move."""
        movers = np.zeros(states, np.uint64)
        for block in self.blocks:
            sources = block.sources
            movers[sources[sources < states]] |= np.uint64(1 << block.actor)
        return movers
