"""How a command ends: its exit code, and what is said of an error."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

HOLDS, VIOLATED, UNKNOWN, NOT_DETERMINISTIC, USAGE = range(5)

TRACEBACK = "WATCHKEEPER_TRACEBACK"
"""The variable of the environment that asks for the traceback of a defect."""
LONGEST = 300


class Stop(Exception):
    """A command ends here with this exit code; what it has to say goes to standard error."""

    def __init__(self, code: int, said: str, problems: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(said)
        self.code = code
        self.problems = list(problems)
        """Of a file: what is wrong with it, and where."""

    def to_json(self) -> dict[str, Any]:
        """What `--json` prints of it."""
        said = {"code": self.code, "said": str(self), "problems": self.problems}
        return {"error": said}


def print_json(value: Any) -> None:
    """Print the one value that `--json` prints, in letters that every terminal has."""
    print(json.dumps(value, indent=2))


def tell(stop: Stop, *, as_json: bool) -> int:
    """Say why a command ends; its exit code."""
    print(stop, file=sys.stderr)
    if as_json:
        print_json(stop.to_json())
    return stop.code


def defect(error: Exception) -> Stop:
    """What is said of an error that nobody has foreseen."""
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        return Stop(USAGE, "there is not enough memory for this; make the scenario smaller")
    what = f"{type(error).__name__}: {error}".partition("\n")[0][:LONGEST].rstrip(": ")
    return Stop(
        USAGE,
        f"the command failed ({what}): this is a defect of watchkeeper; please report it with "
        f"the command and what it prints with {TRACEBACK}=1 in the environment",
    )
