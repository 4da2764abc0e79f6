"""The folder of a run: what is in it, and how it is written.

A run's folder is named by scenario, variant, world and seed. A file is written under
another name first and renamed when it is whole, so that whoever looks into the folder,
or kills the run, finds files that are whole or none.
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

from model.trace import BadTrace, Trace, parse

TRACE = "trace.jsonl"
VERDICT = "verdict.json"
PROBE = "probe"
HELD = ".under-way"
"""Locked while a live run fills the folder."""
ABORT = "ABORT"
"""Whoever creates this file ends a live run."""
PICTURES = (
    *("ownership.png", "ownership.html", "spacetime.html", "connections.png"),
    *("messages.png", "messages.html"),
)
"""What there may be; of messages only where brokers store them."""


class CannotWrite(OSError):
    """The folder for a run cannot be written."""


class CannotRead(OSError):
    """The folder of a run cannot be read."""


def prepare(out: Path, run_id: str) -> Path:
    """Make the folder of a run, and see that files can be written there.

    Raises CannotWrite, before the run, where they cannot.
    """
    folder = out / run_id
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{PROBE}-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise CannotWrite(
            f"the output folder {folder} cannot be written: {error.strerror or error}; choose "
            "another with --out DIR"
        ) from None
    return folder


def clear(folder: Path, files: tuple[str, ...] = (TRACE, *PICTURES)) -> None:
    """Remove what an earlier run of the same name has left: it may be of another mind."""
    try:
        for name in (VERDICT, *files):
            (folder / name).unlink(missing_ok=True)
        for name in (PROBE, VERDICT, *files):
            for left in folder.glob(f".{name}-*"):
                if not _is_alive(left.name.rpartition("-")[2]):
                    left.unlink(missing_ok=True)
    except OSError as error:
        said = f"{folder} cannot be cleared: {error.strerror or error}"
        raise CannotWrite(f"{said}; choose another with --out DIR") from None


def forget_abort(folder: Path) -> None:
    """Remove the file that ended an earlier run."""
    try:
        (folder / ABORT).unlink(missing_ok=True)
    except OSError as error:
        raise CannotWrite(f"{folder / ABORT} cannot be removed: {error.strerror}") from None


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep a second live run out of a folder: unlike simulated ones, no two are the same."""
    with (folder / HELD).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotWrite(
                f"another live run is under way in {folder}; choose another with --out DIR"
            ) from None
        yield


def _is_alive(process: str) -> bool:
    """Whether the process still runs that began to write a file."""
    try:
        os.kill(int(process), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def write_trace(folder: Path, trace: Trace) -> str:
    """Write a trace."""
    return _write(folder / TRACE, trace.lines())


def write_verdict(folder: Path, verdict: dict[str, Any]) -> str:
    """Write what `--json` prints."""
    text = json.dumps(verdict, indent=2) + "\n"
    return _write(folder / VERDICT, [text.encode()])


def write_json(path: Path, value: Any) -> str:
    """Write a value as JSON."""
    return _write(path, [f"{json.dumps(value, indent=1)}\n".encode()])


def write_text(path: Path, text: str) -> str:
    """Write a file of words."""
    return _write(path, [text.encode()])


def _write(path: Path, lines: Iterable[bytes]) -> str:
    unfinished = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.writelines(lines)
        unfinished.replace(path)
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return path.name


def read_trace(place: Path) -> Trace:
    """Read the trace of a run: its folder, or the file itself; CannotRead where there is none."""
    path = place / TRACE if os.path.isdir(place) else place
    try:
        if not S_ISREG(path.stat().st_mode):
            raise OSError("it is no regular file")
        with path.open("rb") as file:
            return parse(file, name=str(path))
    except BadTrace as error:
        raise CannotRead(str(error)) from None
    except OSError as error:
        raise CannotRead(
            f"{place} is not the folder of a run: {path.name} cannot be read "
            f"({error.strerror or error})"
        ) from None
