"""The workers of a session: that there are some, and that they have what they need."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from pipeline import shipping
from pipeline.bounded import what_failed, within
from pipeline.problems import PipelineProblem

if TYPE_CHECKING:
    from pyspark import SparkContext


def ship(context: SparkContext, scratch: Path) -> None:
    """Hand the code to the workers, unless they have it."""
    scratch.mkdir(parents=True, exist_ok=True)
    archive = shipping.packed(scratch)
    if not any(one.endswith(f"/{archive.name}") for one in context.listFiles):
        context.addPyFile(str(archive))


def await_workers(context: SparkContext, master: str, core_s: float) -> None:
    """See that there are workers, and that they have what they need."""
    late = (
        f"{master} gave no core within {core_s:.0f} s; see whether it has "
        "workers, and whether others have taken them"
    )
    try:
        missing = within(
            core_s,
            lambda: context.parallelize([0], 1).map(shipping.lacking).collect()[0],
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
    """Wait while more and more workers come, which they do one after the other."""
    until, known = monotonic() + 2.0, number()
    while monotonic() < until:
        sleep(0.2)
        if number() != known:
            until, known = monotonic() + 2.0, number()


def _first_words(error: Exception, master: str) -> str:
    said = str(error)
    if "PYTHON_VERSION_MISMATCH" in said:
        here = ".".join(map(str, sys.version_info[:2]))
        return (
            f"the workers of {master} run another Python than {here}, which runs here; "
            "name one of the same version that they have in PYSPARK_PYTHON"
        )
    return f"the workers of {master} cannot work: {what_failed(said)}"
