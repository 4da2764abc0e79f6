"""Which lines are a program's own, and which are Python's."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from sysconfig import get_paths
from types import FrameType

PATHS = get_paths()
STANDARD = PATHS["stdlib"]
PACKAGES = (
    *(PATHS["purelib"], PATHS["platlib"]),
    # An environment may see the packages of another one, by a .pth file or as its base.
    *(entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")),
)
STAND_INS = f"{Path(__file__).parents[2] / 'virtual'}{os.sep}"
"""Where the functions are that stand for Python's own once a world in virtual time has run."""


def is_library(file: str) -> bool:
    """Whether a file is one of Python's own; what is made on the fly is held to be, too."""
    if file.startswith(("<", STAND_INS)):
        return True
    return file.startswith(STANDARD) and not package_of(file)


def package_of(file: str) -> str:
    """The folder of the installed package that a file belongs to; empty for none."""
    for folder in PACKAGES:
        if file.startswith(folder):
            return file.removeprefix(folder).lstrip("/\\").partition("/")[0]
    return ""


def own_frame(frame: FrameType) -> FrameType:
    """The innermost frame of the program's own, from here outwards."""
    own: FrameType | None = frame
    while own is not None and is_library(own.f_code.co_filename):
        own = own.f_back
    return own or frame


def own_line_of(error: BaseException) -> str:
    """The innermost line of the program's own in which an error was raised."""
    found = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not found or not is_library(file):
            found = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
