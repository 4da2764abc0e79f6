"""The folder of a sweep: its content, and its recovery after a kill.

    sweep.json      the grid, and how it is cut into chunks; written first
    runs/           a table for each chunk: part-00000.parquet, ...
    self-test/      the table of the self-test
    traces/         a folder for each run whose trace is kept
    scenarios/, smallest/, summary.json, sweep.html

A file is written under another name, flushed, and renamed; then the folder is flushed. So a table
is there and complete, or it is not there. A chunk is finished when its table is there, and
nothing else records it. The next process lists the tables. One process at a time has the folder:
it holds a lock that ends with it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.sweeps.rows import RunRow, schema, table

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "sweep.json"
RUNS, SELF_TEST, TRACES = "runs", "self-test", "traces"
TRACE = "trace.jsonl"
HELD = ".under-way"
SCRATCH = ".scratch"
"""Spark's temporary files."""
FORMAT = 1
SWEEP = b"watchkeeper.sweep"
SECONDS = b"watchkeeper.seconds"
"""Keys in the metadata of a table: its sweep, and its CPU seconds."""

_PART = re.compile(r"part-(\d{5,})\.parquet")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a sweep in its folder."""

    pinned: Mapping[str, Any]
    """The grid: a command that would sweep anything else is refused."""
    chunk_runs: int
    run_seconds: float
    """Seconds of a run, measured when the sweep started."""

    @property
    def digest(self) -> str:
        """A short name of the grid."""
        return str(self.pinned["digest"])


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of a sweep, held by this process."""

    home: Path

    # --- what is swept -----------------------------------------------------------------

    def manifest(self) -> Manifest | None:
        """The description in the folder; None if it is new."""
        path = self.home / MANIFEST
        try:
            manifest = json.loads(path.read_text())
            if manifest["format"] != FORMAT:
                raise ValueError(f"it is of format {manifest['format']}, not {FORMAT}")
            return Manifest(
                manifest["pinned"], int(manifest["chunk_runs"]), float(manifest["run_seconds"])
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PipelineProblem(
                f"{path} is no manifest of a sweep ({error}); choose another folder with --out, "
                "or remove this one"
            ) from None

    def begin(self, manifest: Manifest) -> None:
        """Write the description, before anything else."""
        document = {
            "watchkeeper": "sweep",
            "format": FORMAT,
            "pinned": manifest.pinned,
            "chunk_runs": manifest.chunk_runs,
            "run_seconds": manifest.run_seconds,
        }
        self.write(self.home / MANIFEST, f"{json.dumps(document, indent=1)}\n".encode())

    # --- results -----------------------------------------------------------------------

    def part(self, number: int) -> Path:
        """Where the table of a chunk is."""
        return self.home / RUNS / f"part-{number:05d}.parquet"

    def finished(self) -> set[int]:
        """The chunks whose tables are there."""
        found = (_PART.fullmatch(path.name) for path in (self.home / RUNS).glob("*.parquet"))
        return {int(match[1]) for match in found if match is not None}

    def commit(
        self, path: Path, rows: tuple[RunRow, ...], manifest: Manifest, seconds: float
    ) -> None:
        """Write a table atomically."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        about = {SWEEP: manifest.digest.encode(), SECONDS: repr(seconds).encode()}
        made = table(rows)
        made = made.replace_schema_metadata({**(made.schema.metadata or {}), **about})
        sink = pa.BufferOutputStream()
        pq.write_table(made, sink, compression="zstd")
        self.write(path, sink.getvalue().to_pybytes())

    def read(self, path: Path, manifest: Manifest, columns: list[str] | None = None) -> pa.Table:
        """A table of this sweep; PipelineProblem if it is not one."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            file = pq.ParquetFile(path)
            about = file.schema_arrow.metadata or {}
            if about.get(SWEEP) != manifest.digest.encode():
                raise ValueError("it is of another sweep")
            if file.schema_arrow.names != schema().names:
                raise ValueError("it has other columns")
            return file.read(columns=columns).replace_schema_metadata(about)
        except (OSError, ValueError, pa.ArrowException) as error:
            message = str(error).partition("\n")[0]
            raise PipelineProblem(
                f"{path} cannot be read ({message}); remove that file, and the same command "
                "makes it again"
            ) from None

    def tables(self, manifest: Manifest, columns: list[str]) -> Iterator[pa.Table]:
        """The tables of all chunks that are finished, in their order."""
        for number in sorted(self.finished()):
            yield self.read(self.part(number), manifest, columns)

    # --- traces ------------------------------------------------------------------------

    def keep_trace(self, run_id: str, lines: bytes, beside: Mapping[str, bytes]) -> None:
        """Write the trace of a run, and before it the files that it is judged with."""
        for name, content in beside.items():
            self.write(self.home / TRACES / run_id / name, content)
        self.write(self.trace(run_id), lines)

    def trace(self, run_id: str) -> Path:
        """Where the trace of a run is, or would be."""
        return self.home / TRACES / run_id / TRACE

    # --- files -------------------------------------------------------------------------

    def write(self, path: Path, content: bytes) -> None:
        """Write a file atomically."""
        unfinished = path.with_name(f".{path.name}-unfinished")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            _to_disk(path.parent)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise PipelineProblem(
                f"{path} cannot be written: {error.strerror or error}; what was finished before "
                "is kept, and the same command goes on when that is mended"
            ) from None

    def tidy(self) -> None:
        """Remove the leftovers of a killed process."""
        for left in self.home.rglob(".*-unfinished"):
            left.unlink(missing_ok=True)
        shutil.rmtree(self.home / SCRATCH, ignore_errors=True)


def _to_disk(folder: Path) -> None:
    """Bring a folder to the disk: without it a file that was renamed may lose its name."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def opened(home: Path) -> Iterator[Store]:
    """Hold the folder of a sweep, new or begun; PipelineProblem where that cannot be."""
    with _hold(home):
        store = Store(home)
        store.tidy()
        yield store


def _hold(home: Path) -> BinaryIO:
    """The lock of a folder, as a file that is locked while it is open."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        _check_purpose(home)
        held = (home / HELD).open("wb")
    except FileExistsError:
        raise PipelineProblem(
            f"{home} is a file, and no folder; choose another with --out"
        ) from None
    except OSError as error:
        raise PipelineProblem(
            f"the folder {home} cannot be written: {error.strerror or error}; choose another "
            "with --out"
        ) from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        raise PipelineProblem(
            f"another sweep is under way in {home}; wait for it, or choose another folder with "
            "--out"
        ) from None
    return held


def _check_purpose(home: Path) -> None:
    """Refuse a folder that holds anything but a sweep."""
    others = sorted(path.name for path in home.iterdir() if not path.name.startswith("."))
    if others and MANIFEST not in others:
        raise PipelineProblem(
            f"{home} is not the folder of a sweep, and not empty (it holds {others[0]}); choose "
            "another with --out"
        )
