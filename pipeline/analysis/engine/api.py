"""What definitions are written in: functions, windows and tables of the engine in use.

A definition imports these names from here, and from no engine. For a checker of types they are
PySpark's; when a definition runs, each is looked up in the engine that `using` has set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column as Column
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import Window as Window
    from pyspark.sql import functions

    sql = functions
    from pyspark.sql.window import WindowSpec as WindowSpec


@dataclass(frozen=True, slots=True)
class Language:
    """The functions and windows of an engine."""

    sql: Any
    window: Any


_IN_USE: ContextVar[Language] = ContextVar("the language of the engine in use")


@contextmanager
def using(language: Language) -> Iterator[None]:
    """Let definitions speak the language of an engine."""
    token = _IN_USE.set(language)
    try:
        yield
    finally:
        _IN_USE.reset(token)


class _Functions:
    """The functions of the engine in use."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_IN_USE.get().sql, name)


class _Windows:
    """The windows of the engine in use."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_IN_USE.get().window, name)


if not TYPE_CHECKING:
    sql = _Functions()
    Window = _Windows()
    Column = DataFrame = WindowSpec = Any
