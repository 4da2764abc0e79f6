"""The bytecode of all tests, made once before the workers of a whole run start.

pytest rewrites each module of tests when it is imported first, which takes longer than all else
that a worker does before its first test. Workers start at the same moment, so each of them would
do it for all modules.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

from tests import HOME

LAST = HOME / "tests" / "watchkeeper" / "test_synopsis.py"
"""A module that only a collection of tests imports."""


def are_compiled() -> bool:
    """Whether tests have been collected here before."""
    cached = Path(cache_from_source(str(LAST)))
    return any(cached.parent.glob(f"{LAST.stem}.*"))


def compile_tests() -> None:
    """Let a process a core collect its share of the tests.

    What a process cannot collect is no matter here: the workers come to it again, and report it.
    """
    modules = sorted(str(path) for path in (HOME / "tests").rglob("test_*.py"))
    shares = os.cpu_count() or 1
    collecting = [
        subprocess.Popen(
            [sys.executable, "-m", "pytest", "-n0", "--collect-only", *modules[share::shares]],
            cwd=HOME,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for share in range(min(shares, len(modules)))
    ]
    for process in collecting:
        process.wait()
