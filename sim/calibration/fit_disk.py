"""Finds the machine under which the simulated storage takes as long as what was measured.

Theory of operation
  Each figure of a `MachineProfile` is what is left of a measurement when what is known is
  taken away. A long append less a short one gives a new page with what is copied into it; a
  short append less that page and the call, what a file system spends on a write; an overwrite
  less both, a copy; and a new page less the copy, the page itself. A
  flush is a sync less the two writes, of the data and of the journal, that it waits for. A
  file that is read in line comes as fast as the disk reads, since the system reads ahead.

  The disk counts as one without moving parts. A rotating one behaves like that as long as it
  is read and written the way it was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from watchkeeper.model.calibration.disk import MIB, PAGE_BYTES, MeasuredDisk
from watchkeeper.model.calibration.latency import LEVELS
from watchkeeper.sim.disk.host_costs import MACHINES, MachineProfile
from watchkeeper.sim.disk.models import NS, Device
from watchkeeper.sim.engine.random_streams import quantiles

PAGES = MIB // PAGE_BYTES
Anchors = tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class FittedDisk:
    """What follows from a measurement for the simulation."""

    call_ns: int
    write_ns: int
    copy_bytes_per_s: int
    page_ns: int
    network_bytes_per_s: int
    read_bytes_per_s: int
    write_bytes_per_s: int
    read_us: int
    write_us: int
    flush: Anchors
    cores: int
    memory_bytes: int
    readahead_bytes: int
    background_percent: int
    dirty_percent: int
    expire_us: int
    wake_us: int


def fit_disk(measured: MeasuredDisk) -> FittedDisk:
    """Find the figures."""
    around = measured.surroundings
    small_ns = _took_ns(measured.small_append_bytes_per_s, PAGE_BYTES)
    large_ns = _took_ns(measured.append_bytes_per_s, MIB)
    fresh_ns = _left(large_ns, small_ns) // (PAGES - 1)
    write_ns = max(small_ns - fresh_ns - measured.call_ns, 0)
    copy_ns = _left(_took_ns(measured.overwrite_bytes_per_s, MIB), measured.call_ns + write_ns)
    read_us = _latency_us(measured.read.median, measured.read_bytes_per_s)
    write_us = _latency_us(measured.write.median, measured.write_back_bytes_per_s)
    journal = MACHINES["modern"].journal_bytes
    moving = (PAGE_BYTES + journal) * NS // measured.write_back_bytes_per_s
    known_us = 2 * write_us + moving // 1000
    return FittedDisk(
        call_ns=measured.call_ns,
        write_ns=write_ns,
        copy_bytes_per_s=MIB * NS // copy_ns,
        page_ns=_left(fresh_ns, copy_ns // PAGES),
        network_bytes_per_s=measured.sendfile_bytes_per_s,
        read_bytes_per_s=measured.read_bytes_per_s,
        write_bytes_per_s=measured.write_back_bytes_per_s,
        read_us=read_us,
        write_us=write_us,
        flush=tuple(
            (level, max(us - known_us, 0))
            for level, us in zip(LEVELS, measured.sync.values_us, strict=True)
        ),
        cores=around.cores,
        memory_bytes=around.memory_bytes,
        readahead_bytes=around.readahead_bytes,
        background_percent=around.background_percent,
        dirty_percent=around.dirty_percent,
        expire_us=around.expire_us,
        wake_us=around.wake_us,
    )


def _took_ns(bytes_per_s: int, size_bytes: int) -> int:
    """What so much takes at such a rate."""
    return size_bytes * NS // bytes_per_s


def _latency_us(took_us: int, bytes_per_s: int) -> int:
    """What a page takes beside its data."""
    return _left(took_us * 1000, _took_ns(bytes_per_s, PAGE_BYTES)) // 1000


def _left(took_ns: int, known_ns: int) -> int:
    """What is left when the known is taken away; a tenth at least, since both are measured."""
    return max(took_ns - known_ns, took_ns // 10, 1)


NO_FIGURES = {"name", "about", "device", "arm", "members", "chunk_bytes"}
OF_DEVICE = {field.name for field in fields(Device)} - NO_FIGURES
OF_MACHINE = {field.name for field in fields(MachineProfile)} - NO_FIGURES
"""The figures that can be given."""


def machine_with(
    given: Mapping[str, Any], name: str, *, usual: MachineProfile = MACHINES["modern"]
) -> MachineProfile:
    """A machine, by default one of today, with these figures in place of its own."""
    figures: dict[str, Any] = {
        figure: quantiles(value) if isinstance(value, tuple) else value
        for figure, value in given.items()
    }
    unknown = set(figures) - OF_DEVICE - OF_MACHINE
    assert not unknown, f"no machine has {unknown}"
    about = "as measured, or as written down"
    device = replace(
        usual.device,
        name=name,
        about=about,
        **{figure: value for figure, value in figures.items() if figure in OF_DEVICE},
    )
    return replace(
        usual,
        name=name,
        about=about,
        device=device,
        **{figure: value for figure, value in figures.items() if figure in OF_MACHINE},
    )
