"""A disk in memory whose machine can stop at any operation, and then loses what was not synced.

A write is in the cache until its file is synced, and a name until the names are. When the
machine stops, each of them is on the disk or is not, independently of the others: of a file
some blocks may be zeros, and its end may be anywhere.
"""

from __future__ import annotations

import errno
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Literal

Loss = Literal["none", "all", "some", "torn"]
LOSSES: tuple[Loss, ...] = ("none", "all", "some", "torn")
BLOCK_BYTES = 64
"""Small, so that a record has several."""


class Killed(BaseException):
    """The process is killed; nothing in it may catch that."""


@dataclass(slots=True)
class Stop:
    """The operation at which something happens, and what."""

    at: int
    is_error: bool = False
    """Whether the disk is full, instead of that the process is killed."""
    part: float = 1.0
    """How much of the operation is still done."""


@dataclass(slots=True)
class Contents:
    """A file: what was written, and how much of it is durable."""

    data: bytearray = field(default_factory=bytearray)
    durable: int = 0


class SimulatedDisk:
    """The files of one folder."""

    def __init__(
        self, stop: Stop | None = None, *, ignores: frozenset[str] = frozenset()
    ) -> None:
        """`ignores` are operations that a defective disk claims to have done."""
        self.stop = stop
        self.done: Counter[str] = Counter()
        self.last = ""
        """The operation that it was stopped at."""
        self._ignores = ignores
        self._names: dict[str, Contents] = {}
        self._durable_names: dict[str, Contents] = {}
        self._pending: list[tuple[str | None, str | None, Contents]] = []
        """Names that were taken away and given, not durably so far."""

    # --- operations --------------------------------------------------------------------

    def _operation(self, kind: str) -> float:
        """Count an operation, and return how much of it is to be done."""
        self.done[kind] += 1
        if self.stop is None or self.done.total() < self.stop.at:
            return 1.0
        self.last = kind
        return self.stop.part

    def _after(self) -> None:
        if self.stop is None or self.done.total() < self.stop.at:
            return
        if self.stop.is_error:
            raise OSError(errno.ENOSPC, "No space left on device")
        raise Killed

    def names(self) -> list[str]:
        return list(self._names)

    def read(self, name: str) -> bytes:
        return bytes(self._names[name].data)

    def make(self, name: str) -> SimulatedFile:
        contents = Contents()
        if self._operation("make") == 1.0:
            self._rename(None, name, contents)
        self._after()
        return SimulatedFile(self, contents)

    def cut(self, name: str, length: int) -> None:
        contents = self._names[name]
        if self._operation("cut") == 1.0:
            del contents.data[length:]
            contents.durable = len(contents.data)
        self._after()

    def rename(self, name: str, to: str) -> None:
        if self._operation("rename") == 1.0:
            self._rename(name, to, self._names[name])
        self._after()

    def remove(self, name: str) -> None:
        if self._operation("remove") == 1.0:
            self._rename(name, None, self._names[name])
        self._after()

    def sync_names(self) -> None:
        if self._operation("sync_names") == 1.0 and "sync_names" not in self._ignores:
            self._durable_names = dict(self._names)
            self._pending.clear()
        self._after()

    def close(self) -> None:
        """The disk itself goes on."""

    def _rename(self, name: str | None, to: str | None, contents: Contents) -> None:
        self._pending.append((name, to, contents))
        _rename_in(self._names, name, to, contents)

    def write(self, contents: Contents, data: bytes) -> None:
        """Append to a file."""
        part = self._operation("write")
        contents.data += data[: int(part * len(data))]
        self._after()

    def sync(self, contents: Contents) -> None:
        """Make a file's bytes durable."""
        if self._operation("sync") == 1.0 and "sync" not in self._ignores:
            contents.durable = len(contents.data)
        self._after()

    # --- the stop ----------------------------------------------------------------------

    def after_stop(self, random: Random, loss: Loss) -> SimulatedDisk:
        """The disk when the machine has started again; with loss `none` it never stopped."""
        disk = SimulatedDisk(ignores=self._ignores)
        names = dict(self._names if loss == "none" else self._durable_names)
        if loss in ("some", "torn"):
            for name, to, contents in self._pending:
                if random.random() < 0.5:
                    _rename_in(names, name, to, contents)
        kept: dict[int, Contents] = {}
        for name, contents in names.items():
            if id(contents) not in kept:
                data = bytearray(_kept(contents, random, loss))
                kept[id(contents)] = Contents(data, len(data))
            disk._names[name] = kept[id(contents)]
        disk._durable_names = dict(disk._names)
        return disk


class SimulatedFile:
    """A file that is being written."""

    def __init__(self, disk: SimulatedDisk, contents: Contents) -> None:
        self._disk = disk
        self._contents = contents

    def write(self, data: bytes) -> None:
        self._disk.write(self._contents, data)

    def sync(self) -> None:
        self._disk.sync(self._contents)

    def close(self) -> None:
        """What is not synced may still be lost."""


def _rename_in(
    names: dict[str, Contents], name: str | None, to: str | None, contents: Contents
) -> None:
    if name is not None and names.get(name) is contents:
        del names[name]
    if to is not None:
        names[to] = contents


def _kept(contents: Contents, random: Random, loss: Loss) -> bytes:
    """What is left of a file."""
    data, durable = bytes(contents.data), contents.durable
    if loss == "none":
        return data
    if loss == "all":
        return data[:durable]
    cached = data[durable:]
    if loss == "torn":
        return data[:durable] + cached[: random.randint(0, len(cached))]
    blocks = [cached[at : at + BLOCK_BYTES] for at in range(0, len(cached), BLOCK_BYTES)]
    left = [block if random.random() < 0.6 else bytes(len(block)) for block in blocks]
    return data[:durable] + b"".join(left)[: random.randint(0, len(cached))]
