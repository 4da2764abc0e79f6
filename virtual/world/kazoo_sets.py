"""Sets of kazoo that keep the order of insertion.

kazoo keeps listeners and watchers in sets of functions. A set is ordered by hashes, and the hash
of a function is its address, so two runs of one seed would call them in different orders. The
modules of kazoo get a `set` that remembers.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator, MutableSet
from types import ModuleType
from typing import Any

MODULES = ("kazoo.client", "kazoo.recipe.cache", "kazoo.recipe.lock", "kazoo.recipe.queue")


class OrderedSet(MutableSet[Any]):
    """A set that iterates in the order in which its elements were added."""

    __slots__ = ("_elements",)

    def __init__(self, elements: Iterable[Any] = ()) -> None:
        self._elements: dict[Any, None] = dict.fromkeys(elements)

    def __contains__(self, element: object) -> bool:
        return element in self._elements

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __hash__(self) -> int:
        return hash(frozenset(self._elements))

    def __repr__(self) -> str:
        return f"OrderedSet({list(self._elements)!r})"

    def add(self, element: Any) -> None:
        """Add an element, at the end unless it is there."""
        self._elements[element] = None

    def discard(self, element: Any) -> None:
        """Remove an element if it is there."""
        self._elements.pop(element, None)

    def copy(self) -> OrderedSet:
        """Another set with the same elements."""
        return OrderedSet(self._elements)

    def update(self, *others: Iterable[Any]) -> None:
        """Add the elements of all others."""
        for other in others:
            self._elements.update(dict.fromkeys(other))

    def union(self, *others: Iterable[Any]) -> OrderedSet:
        """A set with the elements of all."""
        both = self.copy()
        both.update(*others)
        return both

    def difference(self, *others: Iterable[Any]) -> OrderedSet:
        """A set with the elements that no other has."""
        gone = {element for other in others for element in other}
        return OrderedSet(element for element in self if element not in gone)


def put() -> None:
    """Give every module of kazoo that is loaded ordered sets; a second time does nothing."""
    for name in MODULES:
        module = importlib.import_module(name)
        _give(module)


def _give(module: ModuleType) -> None:
    space: dict[str, Any] = vars(sys.modules[module.__name__])
    space.setdefault("set", OrderedSet)
    space.setdefault("frozenset", OrderedSet)
