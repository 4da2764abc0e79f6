"""The folder of a table: what is in it, and why it bears to be killed.

    *.parquet       the table: a file for each part of a log, named after what it holds
    _quarantine/    what could not be trusted, in files of the same names
    _loading/RUN/   what a load is writing
    _lock           locked while a load is under way

Names that begin with `_` are passed over by whoever reads the folder as a table.

A file is written in the folder of the run, brought to the disk, and renamed into the table;
that is the commit. What was put in quarantine is renamed before it, and counts only beside
it: what a kill has left there alone is removed by the next load.

A task may outlive the load that began it: the process that was killed is not the one that
works. So a load begins by taking away the folders of earlier runs. Nothing can be renamed
out of them any more, and only then is looked at what the table has. Tasks never make the
folder of their run anew.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from pipeline.loading.commits import Commit, Held, LogKey, held, parsed
from pipeline.problems import PipelineProblem

LOADING = "_loading"
QUARANTINE = "_quarantine"
LOCK = "_lock"
ENDS_WITH = b"PAR1"
"""How a file of Parquet begins and ends."""


@dataclass(frozen=True, slots=True)
class Table:
    """The folder of a table, held by this process."""

    home: Path
    run: Path
    """Where the tasks of this load write."""

    def held(self) -> dict[LogKey, Held]:
        """What the table has of each log."""
        return held(commits_in(self.home))


def commits_in(home: Path) -> list[Commit]:
    """What the files of a table hold; PipelineProblem where it is no table, or not whole."""
    try:
        names = sorted(path.name for path in home.iterdir() if path.name[0] not in "._")
    except OSError as error:
        raise PipelineProblem(f"{home} cannot be read: {error.strerror or error}") from None
    found = []
    for name in names:
        commit = parsed(name)
        if commit is None:
            raise PipelineProblem(
                f"{home} holds {name}, which no load has written; name a folder that is empty, "
                "or that of a table of logs"
            )
        if not _is_whole(home / name):
            raise PipelineProblem(
                f"{home / name} is no whole file of Parquet; remove it, and the next load writes "
                "it again"
            )
        found.append(commit)
    return found


def _is_whole(path: Path) -> bool:
    """Whether a file ends as one of Parquet does, which is what is written last."""
    try:
        with path.open("rb") as file:
            begin = file.read(len(ENDS_WITH))
            file.seek(-len(ENDS_WITH), os.SEEK_END)
            return begin == file.read() == ENDS_WITH
    except OSError:
        return False


@contextmanager
def opened(home: Path) -> Iterator[Table]:
    """Hold the folder of a table, new or begun; PipelineProblem where that cannot be."""
    home = home.absolute()
    if home.is_dir():
        commits_in(home)  # or this would leave its traces in somebody's folder
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = (home / LOCK).open("wb")
    except OSError as error:
        raise PipelineProblem(
            f"{home} cannot be written: {error.strerror or error}; name another folder"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PipelineProblem(
                f"another load into {home} is under way; wait until it has ended"
            ) from None
        try:
            run = _begun(home)
        except OSError as error:
            raise PipelineProblem(
                f"{home} cannot be written: {error.strerror or error}; the table is as it was"
            ) from None
        try:
            yield Table(home, run)
        finally:
            shutil.rmtree(home / LOADING, ignore_errors=True)


def _begun(home: Path) -> Path:
    """End what earlier loads have left, and make the folder of a run."""
    loading = home / LOADING
    if loading.exists():
        ended = home / f"{LOADING}-ended-{uuid4().hex}"
        loading.rename(ended)
    for left in home.glob(f"{LOADING}-ended-*"):
        shutil.rmtree(left, ignore_errors=True)
    for left in (home / QUARANTINE).glob("*"):
        if not (home / left.name).exists():
            left.unlink()
    run = loading / uuid4().hex
    run.mkdir(parents=True)
    return run


def put(file: Path, into: Path) -> None:
    """Move a file that is whole and on the disk into a folder, and bring that to the disk."""
    file.rename(into / file.name)
    descriptor = os.open(into, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
