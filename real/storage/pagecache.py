"""Which pages of a file are in memory, as the kernel says when it is asked.

Linux since 6.5 tells by `cachestat` how many pages of a range are in memory and how many of
them the disk does not have yet, at the price of one system call. Before, `mincore` tells of
each page of a mapping whether it is there, and nothing about the disk. Neither brings a page
in, which a read that is not to block (`RWF_NOWAIT`) may do, and neither copies one.

Where neither is to be had nobody knows, and nobody guesses.
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
"""The number of the system call, which the C library does not know everywhere."""
TO_THE_END = 0
FAILED = ctypes.c_void_p(-1).value


class Pages(NamedTuple):
    """What is in memory of a range of a file."""

    cached: int
    unwritten: int | None
    """How many of them the disk does not have; None where that is not told."""


Look = Callable[[int, int, int], Pages]
"""Look at a range of an open file: its descriptor, the place, how many bytes."""


class _Range(ctypes.Structure):
    _fields_ = (("at", ctypes.c_uint64), ("size", ctypes.c_uint64))


class _Found(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writing", "evicted", "lately")
    )


def by_cachestat(descriptor: int, at: int, size_bytes: int) -> Pages:
    """Ask for counts; a size of `TO_THE_END` is all there is."""
    wanted, found = _Range(at, size_bytes), _Found()
    number, flags = ctypes.c_long(CACHESTAT), ctypes.c_uint(0)
    places = (ctypes.byref(wanted), ctypes.byref(found))
    if _LIBRARY.syscall(number, ctypes.c_int(descriptor), *places, flags):
        raise _error()
    return Pages(found.cached, found.dirty + found.writing)


def by_mincore(descriptor: int, at: int, size_bytes: int) -> Pages:
    """Map the range, ask of each page whether it is there, and let go of it."""
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
    return Pages(sum(one & 1 for one in answers), None)


def way_to_look(descriptor: int) -> Look | None:
    """The best way that this system has, tried on a file; None if there is none."""
    if sys.platform != "linux":
        return None
    for look in (by_cachestat, by_mincore):
        try:
            look(descriptor, 0, PAGE_BYTES)
        except OSError:
            continue
        return look
    return None


def missed_bytes(at: int, size_bytes: int, cached: int) -> int:
    """How much of a range was not in memory if so many of its pages were; to a page."""
    pages = (at + size_bytes - 1) // PAGE_BYTES - at // PAGE_BYTES + 1
    return min(max(pages - cached, 0) * PAGE_BYTES, size_bytes)


def forget(descriptor: int) -> None:
    """Let the pages of a file go that are on the disk, where the system can do that."""
    if hasattr(os, "posix_fadvise"):
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LIBRARY.mmap.restype = ctypes.c_void_p
