"""Linux's settings of memory, dirty pages and a disk."""

from __future__ import annotations

import os
from pathlib import Path

from watchkeeper.model.calibration.disk import Surroundings

USUAL = {
    "dirty_background_ratio": 10,
    "dirty_ratio": 20,
    "dirty_expire_centisecs": 3000,
    "dirty_writeback_centisecs": 500,
}
"""The defaults of the kernel, used where the system does not report a value."""
USUAL_READAHEAD_KIB = 128


def surroundings(folder: Path) -> Surroundings:
    """The machine and the disk around a folder."""
    values = {name: _number(Path("/proc/sys/vm") / name, usual) for name, usual in USUAL.items()}
    return Surroundings(
        cores=os.cpu_count() or 1,
        memory_bytes=_memory_bytes(),
        readahead_bytes=_readahead_kib(folder) << 10,
        background_percent=values["dirty_background_ratio"],
        dirty_percent=values["dirty_ratio"],
        expire_us=values["dirty_expire_centisecs"] * 10_000,
        wake_us=max(values["dirty_writeback_centisecs"], 1) * 10_000,
    )


def _number(path: Path, usual: int) -> int:
    """The number in a file; `usual` if there is none or if it is 0 (a limit in bytes)."""
    try:
        return int(path.read_text()) or usual
    except (OSError, ValueError):
        return usual


def _memory_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kib = {
            name: value.split()[0] for name, _, value in (line.partition(":") for line in lines)
        }
        return int(kib["MemAvailable"]) << 10
    except (OSError, KeyError, ValueError, IndexError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _readahead_kib(folder: Path) -> int:
    device = os.stat(folder).st_dev
    there = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for place in (there / "queue", there / ".." / "queue"):
        found = _number(place / "read_ahead_kb", 0)
        if found:
            return found
    return USUAL_READAHEAD_KIB
