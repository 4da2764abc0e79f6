"""Names the extra to install when an optional library is missing.

`needing` guards an import, `check_installed` looks for a library that is imported later. Both
raise `MissingExtra`, which the command line prints as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

EXTRAS = {
    "kazoo": "live",
    "pyspark": "spark",
    "pyarrow": "arrow",
    "duckdb": "analysis",
    "greenlet": "virtual",
    "hypothesis": "pytest",
}
"""Library -> the extra that installs it."""


class MissingExtra(ImportError):
    """A library that only a part of watchkeeper needs is not installed."""


@contextmanager
def needing(feature: str) -> Iterator[None]:
    """Raise MissingExtra if the imports of a feature need a library that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        raise _missing(feature, library) from None


def check_installed(feature: str, library: str) -> None:
    """Raise MissingExtra if a library that a feature needs is not installed."""
    if find_spec(library) is None:
        raise _missing(feature, library)


def _missing(feature: str, library: str) -> MissingExtra:
    extra = EXTRAS[library]
    return MissingExtra(
        f"{feature} needs {library}, which is not installed; install the extra {extra!r}, for "
        f"example with pip install 'watchkeeper[{extra}]'",
        name=library,
    )
