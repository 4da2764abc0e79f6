"""How the files of reports are written."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, content: bytes) -> str:
    """Write a file atomically, and return its name.

    It is written under another name and then renamed, so that a reader never finds half a
    picture.
    """
    unfinished = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    return path.name
