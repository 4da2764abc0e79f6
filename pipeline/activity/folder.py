"""The folder in which jobs write tables: ownership, and recovery after a kill.

    OUT/TABLE/                    a table, as Parquet; a stream's files are named after batches
    OUT/TABLE/_made.json          how it was made, so that no other folder is taken for a table
    OUT/_checkpoints/TABLE/       the progress of its stream
    OUT/_checkpoints/TABLE.begun  exists while a stream runs
    OUT/_new/TABLE/, OUT/_old/    a table that is being written, and its predecessor
    OUT/_lock                     locked while a job runs

Readers of a folder as a table skip names that start with `_`.

The JVM holds the lock too, since it outlives a killed process for a moment: its last writes
would otherwise mix with the batches of the next job.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from watchkeeper.pipeline.activity.jobs import Job, Table
from watchkeeper.pipeline.activity.settings import Rules
from watchkeeper.pipeline.errors import PipelineProblem

MADE = "_made.json"
NEW, OLD, CHECKPOINTS, LOCK = "_new", "_old", "_checkpoints", "_lock"
LOCK_S = 30.0
"""How long the JVM of a job that was killed may take to end."""


class Made(Struct, frozen=True):
    """How a table was made."""

    as_stream: bool
    logs: str
    rules: dict[str, Any]
    """Those that its rows depend on, and that cannot change in the middle of a stream."""


def made_of(table: Table, logs: str, rules: Rules, *, is_stream: bool) -> Made:
    """How a job is about to make a table."""
    return Made(
        is_stream, logs, {name: msgspec.to_builtins(getattr(rules, name)) for name in table.rules}
    )


class Place(NamedTuple):
    """Where a table is, and all that belongs to it."""

    out: Path
    name: str

    @property
    def home(self) -> Path:
        """The table."""
        return self.out / self.name

    @property
    def new(self) -> Path:
        """Where it is written."""
        return self.out / NEW / self.name

    @property
    def old(self) -> Path:
        """Where it is while another takes its place."""
        return self.out / OLD / self.name

    @property
    def checkpoint(self) -> Path:
        """The progress of a stream."""
        return self.out / CHECKPOINTS / self.name

    @property
    def begun(self) -> Path:
        """Exists while a stream runs."""
        return self.out / CHECKPOINTS / f"{self.name}.begun"

    def made(self) -> Made | None:
        """How it was made; None if it does not exist, PipelineProblem if no job made it."""
        try:
            return msgspec.json.decode((self.home / MADE).read_bytes(), type=Made)
        except (FileNotFoundError, NotADirectoryError):
            found = self.home if self.home.is_file() else next(self.home.glob("*"), None)
        except msgspec.MsgspecError:
            found = self.home / MADE
        if found is None:
            return None
        raise PipelineProblem(f"{found} was written by no job of this kind; name another folder")


def stamp(folder: Path, made: Made) -> None:
    """Record in a folder how its table is made."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MADE).write_bytes(msgspec.json.encode(made))


# --- one job at a time -----------------------------------------------------------------


@contextmanager
def held(out: Path, job: Job) -> Iterator[int]:
    """Lock the folder for a job while the returned file is open in any process."""
    for table in job.tables:
        # checked first, so that no file is left in a folder of other data
        Place(out, table.name).made()
    out.mkdir(parents=True, exist_ok=True)
    with (out / LOCK).open("wb") as lock:
        _locked(lock.fileno(), out)
        for table in job.tables:
            place = Place(out, table.name)
            if place.old.exists() and not place.home.exists():
                place.old.rename(place.home)  # the process was killed between two renames
        yield lock.fileno()


def _locked(lock: int, out: Path) -> None:
    until = monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if monotonic() > until:
                raise PipelineProblem(
                    f"another job into {out} is under way; wait until it has ended, or name "
                    "another folder"
                ) from None
            sleep(0.1)


def clear(out: Path) -> None:
    """Remove what is needed only while tables are written."""
    for left in (NEW, OLD):
        shutil.rmtree(out / left, ignore_errors=True)


# --- going on --------------------------------------------------------------------------


def check(place: Place, made: Made) -> None:
    """Check that a table can be made in this way; PipelineProblem if not."""
    there = place.made()
    if there is None:
        if made.as_stream and list(batches(place.checkpoint / "commits")):
            raise PipelineProblem(
                f"{place.checkpoint} is left of a table that is gone; remove it, too, and the "
                "stream begins anew"
            )
    elif there.as_stream != made.as_stream:
        raise PipelineProblem(
            f"{place.home} is made by a stream; go on with --stream, or name another folder"
            if there.as_stream
            else f"{place.home} was not made by a stream; name another folder, or leave out "
            "--stream to make it anew"
        )
    elif made.as_stream:
        _check_going_on(place, there, made)


def _check_going_on(place: Place, there: Made, made: Made) -> None:
    """Check that a stream continues with the settings that it started with."""
    if there.logs != made.logs:
        raise PipelineProblem(
            f"{place.home} is a stream of {there.logs}, not of {made.logs}; name another folder, "
            f"or if the logs were moved say so in {place.home / MADE}"
        )
    if there.rules != made.rules:
        changed = next(name for name in made.rules if there.rules.get(name) != made.rules[name])
        raise PipelineProblem(
            f"{place.home} was begun with {changed} {_text(there.rules.get(changed))}, not "
            f"{_text(made.rules[changed])}; go on with that rule, or name another folder"
        )
    if any(place.home.rglob("*.parquet")) and not place.checkpoint.exists():
        raise PipelineProblem(
            f"{place.home} is there, but not {place.checkpoint}, which says how far it has come; "
            f"put that back, or remove {place.home} to begin anew"
        )


def _text(rule: Any) -> str:
    return msgspec.json.encode(rule).decode()


def batches(folder: Path) -> Iterator[int]:
    """The batches recorded in a folder of a checkpoint."""
    names = os.listdir(folder) if folder.exists() else []
    return (int(name) for name in names if name.isdecimal())


def rewind(place: Place) -> None:
    """Make a stream that did not end repeat its last finished batch.

    Spark closes windows in a batch of their own, after the one that has moved the watermark. If
    it is ended between the two, it would not start that batch before new input arrives.
    """
    if not place.begun.exists():
        return
    finished = max(batches(place.checkpoint / "commits"), default=-1)
    if finished >= 0 and finished == max(batches(place.checkpoint / "offsets")):
        for name in (f"{finished}", f".{finished}.crc"):
            (place.checkpoint / "commits" / name).unlink(missing_ok=True)
