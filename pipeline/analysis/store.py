"""The folder of an analysis: it is replaced as a whole, or left unchanged.

    analysis.json   the input and the result
    analyze.html    the same, as a page
    events/         the events of every run, as Parquet, a folder a run
    tables/         the results, as Parquet

All of it is written beside the folder, under another name, and replaces it when complete. A
command that is killed, or finds the disk full, leaves the former folder.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from watchkeeper.pipeline.errors import PipelineProblem

SUMMARY = "analysis.json"
EVENTS, TABLES, SCRATCH = "events", "tables", ".scratch"
HELD = ".under-way"


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of an analysis when all is well."""
    out = out.absolute()  # Spark may work in another folder than this process
    unfinished = out.with_name(f".{out.name}-unfinished")
    before = out.with_name(f".{out.name}-before")
    with _held(out, unfinished):
        try:
            _recover(out, before)
            _check_purpose(out)
            _empty(unfinished)
            yield unfinished
            _replace(out, unfinished, before)
        except BaseException as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            if isinstance(error, OSError):
                raise _cannot(out, error) from None
            raise


@contextmanager
def _held(out: Path, unfinished: Path) -> Iterator[None]:
    """Lock the folder that is to be filled against other processes.

    The lock is a file in it, and moves with the folder when that replaces the former one: a
    second process in between must not take a whole analysis for an unfinished one.
    """
    try:
        unfinished.mkdir(parents=True, exist_ok=True)
        held = (unfinished / HELD).open("wb")
    except OSError as error:
        raise _cannot(out, error) from None
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PipelineProblem(
                f"another analysis is under way for {out}; wait for it, or choose another "
                "folder with --out"
            ) from None
        yield


def _cannot(out: Path, error: OSError) -> PipelineProblem:
    return PipelineProblem(
        f"the folder {out} cannot be written ({error.strerror or error}); make room, or choose "
        "another with --out; what was there before is kept"
    )


def _recover(out: Path, before: Path) -> None:
    """Finish or undo what a killed process has started."""
    if out.exists():
        shutil.rmtree(before, ignore_errors=True)
    elif before.exists():
        before.rename(out)


def _check_purpose(out: Path) -> None:
    """Refuse a folder that holds anything but an analysis."""
    if not out.exists():
        return
    others = sorted(path.name for path in out.iterdir())
    if others and SUMMARY not in others:
        raise PipelineProblem(
            f"{out} is not the folder of an analysis, and not empty (it holds {others[0]}); "
            "choose another with --out"
        )


def _empty(unfinished: Path) -> None:
    """Remove the leftovers of a killed process."""
    for left in unfinished.iterdir():
        if left.name != HELD:
            shutil.rmtree(left) if left.is_dir() else left.unlink()


def _replace(out: Path, unfinished: Path, before: Path) -> None:
    """Replace the folder: nothing is removed before its successor exists."""
    with suppress(FileNotFoundError):
        out.rename(before)
    unfinished.rename(out)
    (out / HELD).unlink(missing_ok=True)
    shutil.rmtree(before, ignore_errors=True)


def write_summary(home: Path, summary: Mapping[str, Any]) -> None:
    """Write the result of an analysis, the last file of its folder."""
    (home / SUMMARY).write_text(f"{json.dumps(summary, indent=1)}\n")
