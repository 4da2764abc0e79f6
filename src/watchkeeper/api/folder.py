"""The folder of a run: what is in it, and how it is written.

A run's folder is named by scenario, variant, world and seed. It holds what is needed to judge the
run again, wherever it is read: the trace, whose header has variant, seed and version, the
scenario as it was run, and the latency profile if there was one. A file is written under
another name first and renamed when it is whole, so a file of the folder is whole or missing,
also after a kill.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import Any

from watchkeeper.console.exit import USAGE, Stop, cannot_write
from watchkeeper.model.trace.trace import BadTrace, Trace, parse

TRACE = "trace.jsonl"
VERDICT = "verdict.json"
SCENARIO = "scenario.yaml"
INDEX = "index.html"
"""The page to begin with; it is there where figures and pages are."""
PROFILE = "profile.yaml"
JUDGED = (SCENARIO, PROFILE, TRACE)
"""What a run is judged from."""
PROBE = "probe"
LATEST = "latest"
"""A link in the folder of runs, to the one that ended last."""
HELD = ".under-way"
"""Locked while a live run fills the folder."""
ABORT = "ABORT"
"""A live run ends as soon as this file exists."""
OTHER_FOLDER = "choose another with --out DIR"
PICTURES = (
    *("ownership.png", "ownership.html", "spacetime.html", "connections.png"),
    *("messages.png", "messages.html"),
    *("leaders.png", "reassignment.png"),
)
"""The figures and pages; those of messages only where brokers store them, that of leaders only
where brokers elect a controller, and that of reassignments only where partitions were moved."""


def prepare(out: Path, run_id: str) -> Path:
    """Make the folder of a run, and check that files can be written there.

    Raises Stop, before the run, where they cannot.
    """
    return prepare_home(out / run_id)


def prepare_home(folder: Path) -> Path:
    """Make this folder for a run as `prepare` does."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{PROBE}-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise cannot_write(f"the output folder {folder}", error, OTHER_FOLDER) from None
    return folder


def clear(folder: Path, files: tuple[str, ...] = (*JUDGED, INDEX, *PICTURES)) -> None:
    """Remove the files of an earlier run of the same name: its verdict may be another."""
    try:
        for name in (VERDICT, *files):
            (folder / name).unlink(missing_ok=True)
        for name in (PROBE, VERDICT, *files):
            for left in folder.glob(f".{name}-*"):
                if not _is_alive(left.name.rpartition("-")[2]):
                    left.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise Stop(USAGE, f"{folder} cannot be cleared: {reason}; {OTHER_FOLDER}") from None


def forget_abort(folder: Path) -> None:
    """Remove the file that ended an earlier run."""
    try:
        (folder / ABORT).unlink(missing_ok=True)
    except OSError as error:
        raise Stop(USAGE, f"{folder / ABORT} cannot be removed: {error.strerror}") from None


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a second live run out of a folder: unlike simulated runs, no two are the same."""
    with (folder / HELD).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Stop(
                USAGE, f"another live run is under way in {folder}; {OTHER_FOLDER}"
            ) from None
        yield


def _is_alive(process: str) -> bool:
    """Whether the process still runs that began to write a file."""
    try:
        os.kill(int(process), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def write_trace(folder: Path, trace: Trace) -> str:
    """Write a trace."""
    return _write(folder / TRACE, trace.lines())


def write_verdict(folder: Path, verdict: dict[str, Any]) -> str:
    """Write the verdict of a run, as `--json` prints it."""
    text = json.dumps(verdict, indent=2) + "\n"
    return _write(folder / VERDICT, [text.encode()])


def write_json(path: Path, value: Any) -> str:
    """Write a value as JSON."""
    return _write(path, [f"{json.dumps(value, indent=1)}\n".encode()])


def write_text(path: Path, text: str) -> str:
    """Write a text file."""
    return _write(path, [text.encode()])


def _write(path: Path, lines: Iterable[bytes]) -> str:
    unfinished = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.writelines(lines)
        unfinished.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return path.name


def read_verdict(home: Path) -> dict[str, Any] | None:
    """Read the verdict of a run; None if its folder has none that can be read."""
    try:
        found = json.loads((home / VERDICT).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def latest(out: Path) -> Path:
    """Return the folder of the run that ended last; raise Stop where there is none.

    A link, such as `latest`, is no run of its own.
    """
    if out.is_file():
        raise Stop(USAGE, f"{out} is a file; expected a folder with runs, or of a run")
    found = (path.parent for path in out.glob(f"*/{VERDICT}"))
    runs = [run for run in found if not run.is_symlink()]
    if not runs:
        raise Stop(USAGE, f"{out} has no run; expected a folder with runs, or of a run")
    return max(runs, key=lambda run: (run / VERDICT).stat().st_mtime_ns)


def point_to_latest(home: Path) -> None:
    """Let the link `latest` beside the folder of a run lead there.

    What has that name and is no link stays; where no link can be made there is none.
    """
    link = home.parent / LATEST
    unfinished = link.with_name(f".{LATEST}-{os.getpid()}")
    if link.exists() and not link.is_symlink():
        return
    with suppress(OSError):
        unfinished.unlink(missing_ok=True)
        unfinished.symlink_to(home.name, target_is_directory=True)
        unfinished.replace(link)


def read_trace(place: Path) -> Trace:
    """Read the trace of a run: its folder, or the file itself; Stop where there is none."""
    path = place / TRACE if os.path.isdir(place) else place
    try:
        if not S_ISREG(path.stat().st_mode):
            raise OSError("it is no regular file")
        with path.open("rb") as file:
            return parse(file, name=str(path))
    except BadTrace as error:
        raise Stop(USAGE, str(error)) from None
    except OSError as error:
        raise Stop(
            USAGE,
            f"{place} is not the folder of a run: {path.name} cannot be read "
            f"({error.strerror or error})",
        ) from None
