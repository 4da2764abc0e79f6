"""Measures the disk under a folder, and the rates from a process to the disk and the network.

Everything happens in one file that is unlinked as soon as it is open, so nothing is left however
the measurement ends. Rates are medians of several rounds. Before the file is read from the disk,
its pages are dropped (`posix_fadvise`). Single pages bypass the pagecache (O_DIRECT) if the file
system can do that; otherwise the pages are dropped before each read, and each write is flushed.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median

from watchkeeper.model.calibration.disk import MIB, PAGE_BYTES, DiskSizes, MeasuredDisk
from watchkeeper.model.calibration.latency import distribution
from watchkeeper.real.calibration.loopback import copying_rate, sendfile_rate
from watchkeeper.real.calibration.machine import surroundings
from watchkeeper.real.errors import EnvironmentProblem

Progress = Callable[[str], None]
NS = 1_000_000_000


def measure_disk(folder: Path, sizes: DiskSizes, progress: Progress) -> MeasuredDisk:
    """Measure a disk; `progress` gets the name of each part. Raises EnvironmentProblem."""
    if not folder.is_dir():
        raise EnvironmentProblem(f"there is no folder {folder}; name one on the disk to measure")
    try:
        with _Bench(folder, sizes) as bench:
            return bench.measure(progress)
    except OSError as error:
        reason = error.strerror or str(error)
        raise EnvironmentProblem(
            f"the disk under {folder} cannot be measured: {reason}"
        ) from None


class _Bench:
    """The measured file and the measurements on it."""

    def __init__(self, folder: Path, sizes: DiskSizes) -> None:
        self.folder = folder
        self.sizes = sizes
        self.file_bytes = sizes.file_mib * MIB
        self.block = Random(0).randbytes(MIB)
        self.chance = Random(1)
        self.file = -1
        self.direct = -1

    def __enter__(self) -> _Bench:
        free = os.statvfs(self.folder)
        if free.f_bavail * free.f_frsize < 2 * self.file_bytes:
            raise EnvironmentProblem(
                f"{self.folder} has no room for the {2 * self.sizes.file_mib} MiB that are needed"
            )
        self.file, name = tempfile.mkstemp(dir=self.folder, prefix=".watchkeeper-disk-")
        try:
            self.direct = os.open(name, os.O_RDWR | os.O_DIRECT)
        except OSError:
            self.direct = -1  # tmpfs, for one, does not support O_DIRECT
        finally:
            os.unlink(name)
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self.file, self.direct):
            if file >= 0:
                os.close(file)

    def measure(self, progress: Progress) -> MeasuredDisk:
        """Run all measurements."""
        progress("the disk: writing")
        small, _ = self._appending(PAGE_BYTES)
        appends, backs = self._appending(MIB)
        overwrite = self._rate(self._overwrite)
        progress("the disk: reading")
        reading = self._rate(self._read_in_line)
        progress("the disk: at random")
        read = distribution(self._at_random(self._read_page), "a read")
        write = distribution(self._at_random(self._write_page), "a write")
        progress("the disk: flushing")
        sync = distribution(self._syncs(), "a flush")
        progress("the network")
        self._fill()
        return MeasuredDisk(
            is_direct=self.direct >= 0,
            file_bytes=self.file_bytes,
            call_ns=self._call_ns(),
            overwrite_bytes_per_s=overwrite,
            append_bytes_per_s=appends,
            small_append_bytes_per_s=small,
            write_back_bytes_per_s=backs,
            read_bytes_per_s=reading,
            sendfile_bytes_per_s=sendfile_rate(self.file, self.file_bytes, self.sizes.rounds),
            copying_bytes_per_s=copying_rate(self.file, self.file_bytes, self.sizes.rounds),
            read=read,
            write=write,
            sync=sync,
            surroundings=surroundings(self.folder),
        )

    # --- rates -------------------------------------------------------------------------

    def _rate(self, turn: Callable[[], int]) -> int:
        """Bytes per second, by the median of the rounds; `turn` returns its duration in ns."""
        return self._rate_of([turn() for _ in range(self.sizes.rounds)])

    def _rate_of(self, taken_ns: list[int]) -> int:
        return int(self.file_bytes * NS // max(median(taken_ns), 1))

    def _appending(self, each_bytes: int) -> tuple[int, int]:
        """Bytes per second of appends into the pagecache, and of flushes to the disk."""
        into: list[int] = []
        back: list[int] = []
        for _ in range(self.sizes.rounds):
            os.ftruncate(self.file, 0)
            with _timed(into):
                self._fill(each_bytes)
            with _timed(back):
                os.fsync(self.file)
        return self._rate_of(into), self._rate_of(back)

    def _fill(self, each_bytes: int = MIB) -> None:
        os.lseek(self.file, 0, os.SEEK_SET)
        each = self.block[:each_bytes]
        for _ in range(self.file_bytes // each_bytes):
            _write_whole(self.file, each)

    def _overwrite(self) -> int:
        taken: list[int] = []
        with _timed(taken):
            for at in range(0, self.file_bytes, MIB):
                os.pwrite(self.file, self.block, at)
        return taken[0]

    def _read_in_line(self) -> int:
        os.fsync(self.file)
        self._forget()
        taken: list[int] = []
        with _timed(taken):
            for at in range(0, self.file_bytes, MIB):
                os.pread(self.file, MIB, at)
        return taken[0]

    def _forget(self) -> None:
        """Drop the pages of the file from memory."""
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)

    def _call_ns(self) -> int:
        taken: list[int] = []
        with _timed(taken):
            for _ in range(self.sizes.calls):
                os.pread(self.file, 1, 0)
        return taken[0] // self.sizes.calls

    # --- single operations -----------------------------------------------------------------

    def _at_random(self, turn: Callable[[int, mmap.mmap], None]) -> Iterator[int]:
        """The duration of each operation at a random page, in µs."""
        with mmap.mmap(-1, PAGE_BYTES) as memory:
            memory.write(self.block[:PAGE_BYTES])
            for _ in range(self.sizes.places):
                at = self.chance.randrange(self.file_bytes // PAGE_BYTES) * PAGE_BYTES
                if self.direct < 0:
                    self._forget()
                begin = time.perf_counter_ns()
                turn(at, memory)
                yield (time.perf_counter_ns() - begin) // 1000

    def _read_page(self, at: int, memory: mmap.mmap) -> None:
        if self.direct >= 0:
            os.preadv(self.direct, [memory], at)
        else:
            os.pread(self.file, PAGE_BYTES, at)

    def _write_page(self, at: int, memory: mmap.mmap) -> None:
        if self.direct >= 0:
            os.pwritev(self.direct, [memory], at)
        else:
            os.pwrite(self.file, memory[:], at)
            os.fdatasync(self.file)

    def _syncs(self) -> Iterator[int]:
        """The duration of each flush after an append, in µs; the first ones do not count."""
        os.ftruncate(self.file, 0)
        os.lseek(self.file, 0, os.SEEK_SET)
        for _ in range(self.sizes.first_syncs):
            self._sync_us()
        for _ in range(self.sizes.syncs):
            yield self._sync_us()

    def _sync_us(self) -> int:
        _write_whole(self.file, self.block[:PAGE_BYTES])
        begin = time.perf_counter_ns()
        os.fsync(self.file)
        return (time.perf_counter_ns() - begin) // 1000


def _write_whole(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


@contextmanager
def _timed(taken_ns: list[int]) -> Iterator[None]:
    begin = time.perf_counter_ns()
    yield
    taken_ns.append(time.perf_counter_ns() - begin)
