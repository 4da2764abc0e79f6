"""Which pages of a file are in memory, according to the kernel.

Since Linux 6.5 one system call, `cachestat`, returns how many pages of a range are cached and
how many of them are dirty. Before, `mincore` returns for each page of a mapping whether it is
cached, and nothing about the disk. Neither call loads a page (a non-blocking read, `RWF_NOWAIT`,
may) nor copies one.

If neither call is available, the value is unknown.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

PAGE_BYTES = mmap.PAGESIZE
CACHESTAT = 451
"""The number of the system call, which not every C library defines."""
TO_THE_END = 0
FAILED = ctypes.c_void_p(-1).value


class Pages(NamedTuple):
    """The cached pages of a range of a file."""

    cached: int
    unwritten: int | None
    """How many of them are not on the disk yet; None if unknown."""


PageCounter = Callable[[int, int, int], Pages]
"""Counts the cached pages of a range: descriptor, offset, size."""


class _Range(ctypes.Structure):
    _fields_ = (("at", ctypes.c_uint64), ("size", ctypes.c_uint64))


class _Found(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writing", "evicted", "lately")
    )


def by_cachestat(descriptor: int, at: int, size_bytes: int) -> Pages:
    """Count with `cachestat`; the size `TO_THE_END` means the rest of the file."""
    wanted, found = _Range(at, size_bytes), _Found()
    number, flags = ctypes.c_long(CACHESTAT), ctypes.c_uint(0)
    places = (ctypes.byref(wanted), ctypes.byref(found))
    if _LIBRARY.syscall(number, ctypes.c_int(descriptor), *places, flags):
        raise _error()
    return Pages(found.cached, found.dirty + found.writing)


def by_mincore(descriptor: int, at: int, size_bytes: int) -> Pages:
    """Map the range, count its resident pages with `mincore`, and unmap it."""
    begin = at // PAGE_BYTES * PAGE_BYTES
    end = os.fstat(descriptor).st_size if size_bytes == TO_THE_END else at + size_bytes
    length = ctypes.c_size_t(end - begin)
    if end <= begin:
        return Pages(0, None)
    answers = (ctypes.c_ubyte * (-(-(end - begin) // PAGE_BYTES)))()
    how = (mmap.PROT_READ, mmap.MAP_SHARED, descriptor, ctypes.c_long(begin))
    place = ctypes.c_void_p(_LIBRARY.mmap(None, length, *how))
    if place.value == FAILED:
        raise _error()
    try:
        if _LIBRARY.mincore(place, length, answers):
            raise _error()
    finally:
        _LIBRARY.munmap(place, length)
    return Pages(sum(answer & 1 for answer in answers), None)


def page_counter(descriptor: int) -> PageCounter | None:
    """The best method of this system, tried on a file; None if there is none."""
    if sys.platform != "linux":
        return None
    for count_pages in (by_cachestat, by_mincore):
        try:
            count_pages(descriptor, 0, PAGE_BYTES)
        except OSError:
            continue
        return count_pages
    return None


def missed_bytes(at: int, size_bytes: int, cached: int) -> int:
    """How many bytes of a range were not cached, given its cached pages; in whole pages."""
    pages = (at + size_bytes - 1) // PAGE_BYTES - at // PAGE_BYTES + 1
    return min(max(pages - cached, 0) * PAGE_BYTES, size_bytes)


def forget(descriptor: int) -> None:
    """Drop the synced pages of a file from memory, if the system can do that."""
    if hasattr(os, "posix_fadvise"):
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LIBRARY.mmap.restype = ctypes.c_void_p
