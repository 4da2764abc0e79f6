"""`threading.local` with values for each virtual thread.

asyncio and others derive from it, so it is a class; a subclass's `__init__` runs once for each
thread that touches an instance, with the arguments of its construction.
"""

from __future__ import annotations

import _thread
import itertools
from typing import Any

from watchkeeper.virtual.threads.current import current_task

_RealLocal = _thread._local
_numbers = itertools.count(1)
_HIDDEN = ("_local_number", "_local_arguments", "_local_outside")


class Local:
    """Attributes that each thread has for itself."""

    __slots__ = ("__dict__", "__weakref__", *_HIDDEN)

    def __new__(cls, /, *args: Any, **kwargs: Any) -> Any:
        """An instance without values; raises TypeError for arguments without an `__init__`."""
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise TypeError("Initialization arguments are not supported")
        self = object.__new__(cls)
        set_hidden = object.__setattr__
        set_hidden(self, "_local_number", next(_numbers))
        set_hidden(self, "_local_arguments", (args, kwargs))
        set_hidden(self, "_local_outside", _RealLocal())
        # The construction itself calls `__init__`, for the thread that constructs it.
        object.__getattribute__(self, "_local_outside").values = None
        _values_of(self, initialise=False)
        return self

    def __getattribute__(self, name: str) -> Any:
        if name in _HIDDEN:
            return object.__getattribute__(self, name)
        values = _values_of(self)
        if name == "__dict__":
            return values
        object.__setattr__(self, "__dict__", values)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, "__dict__", _values_of(self))
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__setattr__(self, "__dict__", _values_of(self))
        object.__delattr__(self, name)


def _values_of(local: Local, *, initialise: bool = True) -> dict[str, Any]:
    number = object.__getattribute__(local, "_local_number")
    task = current_task()
    if task is not None:
        values = task.local_values.get(number)
        if values is not None:
            return values
        values = task.local_values[number] = {}
    else:
        outside = object.__getattribute__(local, "_local_outside")
        values = getattr(outside, "values", None)
        if values is not None:
            return values  # type: ignore[no-any-return]
        values = outside.values = {}
    if initialise:
        args, kwargs = object.__getattribute__(local, "_local_arguments")
        type(local).__init__(local, *args, **kwargs)
    return values
