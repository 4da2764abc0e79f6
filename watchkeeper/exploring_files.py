"""The folder of a search: what it found, and its counterexample in forms to go on with."""

from __future__ import annotations

from pathlib import Path

from watchkeeper import exploring, folder
from watchkeeper.endings import USAGE, Stop
from watchkeeper.exploring import Explored


def write(explored: Explored, out: Path) -> list[str]:
    """Fill the folder of a search; the paths of its files."""
    name = f"{explored.plan.name}-{explored.plan.variant}-explore"
    try:
        home = folder.prepare(out, name)
        folder.clear(home)
        files = [str(home / folder.VERDICT)]
        folder.write_verdict(home, exploring.to_json(explored, files))
        return files
    except folder.CannotWrite as error:
        raise Stop(USAGE, str(error)) from None
