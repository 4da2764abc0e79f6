"""The names of kazoo's modules that virtual time replaces.

kazoo keeps listeners and watchers in sets of functions. A set is ordered by hashes, and the hash
of a function is its address, so two runs of one seed would call them in different orders. The
modules of kazoo get a `set` that remembers.

kazoo polls its sockets by a function of its own, `selector_select`, which makes a selector for
each poll, some five for each request. The selector that it would get here looks at the sockets
and forgets them, so in a world the function looks at them at once: same sockets, same switch
point, same wait. Whatever is not a list of different open sockets goes the long way.
"""

from __future__ import annotations

import importlib
import selectors
from collections.abc import Iterable, Iterator, MutableSet
from functools import cache, wraps
from typing import Any

from kazoo.protocol.connection import ConnectionDropped, ConnectionHandler

from watchkeeper.virtual.network.polling import can_write, read_or_wait, select_sockets
from watchkeeper.virtual.network.socket import VirtualSocket

POLLING = ("kazoo.handlers.utils", "kazoo.handlers.threading")
"""The modules that have `selector_select`."""
WITH_SETS = ("kazoo.client", "kazoo.recipe.cache", "kazoo.recipe.lock", "kazoo.recipe.queue")


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


class SocketErrors:
    """`ConnectionHandler._socket_error_handling`, without a generator for each read and write."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing begins."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """An error of a socket is a dropped connection."""
        if isinstance(error, OSError):
            reason = getattr(error, "strerror", error)
            raise ConnectionDropped(f"socket connection error: {reason}")


SOCKET_ERRORS = SocketErrors()
KNOWN_HANDLING = (
    (None, "strerror", "socket connection error: "),
    ("socket", "error", "select", "getattr", "ConnectionDropped"),
)
"""The constants and the names of the method that `SocketErrors` stands for."""


def _handling(handler: object) -> SocketErrors:
    """`ConnectionHandler._socket_error_handling`."""
    return SOCKET_ERRORS


@cache
def put() -> None:
    """Replace the names; a second time does nothing."""
    for name in WITH_SETS:
        space = vars(importlib.import_module(name))
        space.setdefault("set", OrderedSet)
        space.setdefault("frozenset", OrderedSet)
    for name in POLLING:
        module: Any = importlib.import_module(name)
        module.selector_select = _polling(module.selector_select)
    handling: Any = ConnectionHandler._socket_error_handling
    code = handling.__wrapped__.__code__
    if (code.co_consts, code.co_names) == KNOWN_HANDLING:
        ConnectionHandler._socket_error_handling = wraps(handling)(_handling)


def _polling(original: Any) -> Any:
    @wraps(original)
    def selector_select(
        rlist: Any,
        wlist: Any,
        xlist: Any,
        timeout: float | None = None,
        selectors_module: Any = selectors,
    ) -> Any:
        if selectors_module is selectors:
            if type(timeout) is float and timeout >= 0:  # as kazoo's own always is
                if rlist:
                    if not wlist and type(rlist) is list and type(rlist[0]) is VirtualSocket:
                        ready = read_or_wait(rlist, timeout)
                        if ready is not None:
                            return ready, [], []
                elif type(wlist) is list and len(wlist) == 1:
                    sock = wlist[0]
                    if type(sock) is VirtualSocket and can_write(sock):
                        return [], [sock], []
            found = select_sockets(rlist, wlist, timeout)
            if found is not None:
                return found
        return original(rlist, wlist, xlist, timeout, selectors_module)

    return selector_select
