"""The killers without a mutant: what each comes to, and which lines it executes.

Each runs in a fork of its own, since a cache that an earlier one has filled would hide lines.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

from bench.mutation.catalogue import Module
from bench.mutation.child_process import in_children
from bench.mutation.outcome import Base, Kind

KILLERS = "bench.mutation.killers"


@contextmanager
def lines_of(files: dict[str, str]) -> Iterator[dict[str, set[int]]]:
    """Collect the executed lines of some files, path -> module, while the block runs."""
    found: dict[str, set[int]] = {module: set() for module in files.values()}
    tracers = {path: _tracer(found[module]) for path, module in files.items()}

    def calls(frame: FrameType, event: str, argument: Any) -> Any:
        tracer = tracers.get(frame.f_code.co_filename)
        if tracer is not None:
            found[files[frame.f_code.co_filename]].add(frame.f_lineno)
        return tracer

    sys.settrace(calls)
    try:
        yield found
    finally:
        sys.settrace(None)


def _tracer(lines: set[int]) -> Callable[[FrameType, str, Any], Any]:
    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            lines.add(frame.f_lineno)
        return trace

    return trace


def files_of(modules: tuple[Module, ...]) -> dict[str, str]:
    """Return the file of each imported module as its code objects name it."""
    return {str(import_module(module.imported_as).__file__): module.name for module in modules}


def bases(
    modules: tuple[Module, ...], kinds: tuple[Kind, ...], jobs: int, names: str = ""
) -> list[Base]:
    """Return the killers in whose names an expression is found, the quickest first.

    Called in a child, which imports watchkeeper once for all of them.
    """
    files = files_of(modules)
    killers = {
        (killer.kind, killer.name): killer
        for killer in import_module(KILLERS).killers()
        if killer.kind in kinds and re.search(names, killer.name)
    }

    def base(key: tuple[Kind, str]) -> Base:
        with lines_of(files) as found:
            outcome = killers[key].outcome()
        lines = {module: frozenset(numbers) for module, numbers in found.items()}
        return Base(*key, outcome, lines)

    found = [result for _, result in in_children(base, list(killers), jobs) if result]
    ends = [base for base in found if base.outcome.judgement != "it does not end"]
    return sorted(ends, key=lambda base: base.outcome.cpu_s)
