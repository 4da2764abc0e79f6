"""The edges that a search keeps: for each state, where the moves lead that have to come."""

from __future__ import annotations

from collections.abc import Iterator
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

    def between(self, states: Array) -> Iterator[tuple[int, int]]:
        """The edges among these states, which are in order."""
        for block in self.blocks:
            yield from self._inner(block, states)

    def _inner(self, block: EdgeBlock, states: Array) -> Iterator[tuple[int, int]]:
        counts = np.diff(block.begins, append=len(block.targets))
        sources = np.repeat(block.sources, counts)
        is_inner = np.isin(sources, states) & np.isin(block.targets, states)
        yield from zip(sources[is_inner].tolist(), block.targets[is_inner].tolist(), strict=True)

    def has_loop(self, state: int) -> bool:
        """Whether a move leads from a state to itself."""
        return any(True for _ in self.between(np.array([state])))

    def is_fair(self, states: Array) -> bool:
        """Whether everybody who could move in each of these states does so among them."""
        for actor in sorted({block.actor for block in self.blocks}):
            blocks = [block for block in self.blocks if block.actor == actor]
            can = np.zeros(len(states), np.bool_)
            for block in blocks:
                can |= np.isin(states, block.sources)
            if can.all() and not any(
                True for block in blocks for _ in self._inner(block, states)
            ):
                return False
        return True
