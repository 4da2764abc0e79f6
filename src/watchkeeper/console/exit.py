"""The end of a command: its exit code, and the message of an error."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

HOLDS, VIOLATED, UNKNOWN, NOT_DETERMINISTIC, USAGE = range(5)

TRACEBACK = "WATCHKEEPER_TRACEBACK"
"""The environment variable that turns on the traceback of a defect."""
LONGEST = 300


class Stop(Exception):
    """The end of a command, with an exit code and a message for standard error."""

    def __init__(self, code: int, message: str, problems: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.problems = list(problems)
        """The errors in a file: file, line, field and message of each."""

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        error = {"code": self.code, "message": str(self), "problems": self.problems}
        return {"error": error}


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII."""
    print(json.dumps(value, indent=2))


def cannot_write(place: object, error: OSError, advice: str = "") -> Stop:
    """Return the end of a command that cannot write a file or folder."""
    text = f"{place} cannot be written: {reason_of(error)}"
    return Stop(USAGE, f"{text}; {advice}" if advice else text)


def reason_of(error: OSError) -> str:
    """Return why a file or folder cannot be used; one that is the other kind is said to be."""
    if isinstance(error, NotADirectoryError | FileExistsError):
        return "a part of that path is a file, and no folder"
    if isinstance(error, IsADirectoryError):
        return "it is a folder, and no file"
    return error.strerror or str(error)


def report_stop(stop: Stop, *, as_json: bool) -> int:
    """Print why a command ends, and return its exit code."""
    print(stop, file=sys.stderr)
    if as_json:
        print_json(stop.to_json())
    return stop.code


def defect(error: Exception) -> Stop:
    """Return the end of a command that fails with an unforeseen error."""
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
