"""The workers of a session: their presence, and their libraries."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from watchkeeper.pipeline import ship_code
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.timeouts import what_failed, within

if TYPE_CHECKING:
    from pyspark import SparkContext


def ship(context: SparkContext, scratch: Path) -> None:
    """Ship the code to the workers, unless they have it."""
    scratch.mkdir(parents=True, exist_ok=True)
    archive = ship_code.packed(scratch)
    if not any(name.endswith(f"/{archive.name}") for name in context.listFiles):
        context.addPyFile(str(archive))


def await_workers(
    context: SparkContext, master: str, core_s: float, libraries: tuple[str, ...]
) -> None:
    """Wait until there are workers with all libraries, ours and these."""
    late = (
        f"{master} gave no core within {core_s:.0f} s; see whether it has "
        "workers, and whether others have taken them"
    )
    try:
        missing = within(
            core_s,
            lambda: context.parallelize([libraries], 1).map(ship_code.lacking).collect()[0],
            late,
        )
    except PipelineProblem:
        context.cancelAllJobs()
        raise
    except Exception as error:
        raise PipelineProblem(_first_words(error, master)) from None
    if missing:
        raise PipelineProblem(
            f"the workers of {master} lack {', '.join(missing)}; install them there, for "
            "example with pip install watchkeeper"
        )


def await_calm(number: Callable[[], int]) -> None:
    """Wait while the number of workers grows."""
    until, known = monotonic() + 2.0, number()
    while monotonic() < until:
        sleep(0.2)
        if number() != known:
            until, known = monotonic() + 2.0, number()


def _first_words(error: Exception, master: str) -> str:
    message = str(error)
    if "PYTHON_VERSION_MISMATCH" in message:
        here = ".".join(map(str, sys.version_info[:2]))
        return (
            f"the workers of {master} run another Python than {here}, which runs here; "
            "name one of the same version that they have in PYSPARK_PYTHON"
        )
    return f"the workers of {master} cannot work: {what_failed(message)}"
