"""The folder of a table: its content, and its recovery after a kill.

    *.parquet       the table: a file for each part of a log, named after it
    _quarantine/    untrusted entries, in files of the same names
    _loading/RUN/   the files that a load is writing
    _lock           locked while a load runs

Readers of the folder as a table skip names that start with `_`.

A file is written in the folder of the run, flushed, and renamed into the table; that is the
commit. The quarantine file is renamed before it, and counts only beside it: the next load removes
one that a kill has left alone.

A task may outlive the load that started it: the killed process is not the one that works. So a
load starts by removing the folders of earlier runs. Nothing can be renamed out of them any more,
and only then is the table listed. Tasks never create the folder of their run again.
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

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.loading.commits import Commit, Held, LogKey, held, parsed

LOADING = "_loading"
QUARANTINE = "_quarantine"
LOCK = "_lock"
ENDS_WITH = b"PAR1"
"""The first and last bytes of a Parquet file."""


@dataclass(frozen=True, slots=True)
class Table:
    """The folder of a table, held by this process."""

    home: Path
    run: Path
    """Where the tasks of this load write."""

    def held(self) -> dict[LogKey, Held]:
        """The part of each log that the table holds."""
        return held(commits_in(self.home))


def commits_in(home: Path) -> list[Commit]:
    """The commits of the files of a table; PipelineProblem if it is no table, or incomplete."""
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
    """Whether a file ends as a Parquet file does, which is what is written last."""
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
        commits_in(home)  # checked first, so that no file is left in a folder of other data
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
    """End earlier loads, and make the folder of a run."""
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
    """Move a flushed file into a folder, and flush that folder."""
    file.rename(into / file.name)
    descriptor = os.open(into, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
