"""A disk in memory that stops at any call, and then loses what was not synced.

How it works
  Every change is under way until a sync: of a file for its bytes, of the folder for its names.
  `stop_in` names a kind of call and `stop_at` counts them down; the call at which the disk stops
  is under way too, and raises Stopped, as does every call after it. `after_power_loss` makes the
  disk that the next life finds, by what was lost:

    nothing   the process was killed; the machine went on, and everything under way is there
    all       nothing of what was under way is there
    tail      a part of it is there, from its begin: bytes up to any place, names in order
    holes     sectors that never reached the disk are zeros, in the middle too; any of the names
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Literal

Loss = Literal["nothing", "all", "tail", "holes"]
LOSSES: tuple[Loss, ...] = ("nothing", "all", "tail", "holes")
CALLS = ("make", "write", "sync", "rename", "sync names", "remove", "cut")
SECTOR = 512


class Stopped(Exception):
    """The machine has stopped at this call."""


@dataclass(slots=True, eq=False)
class Inode:
    """The bytes of a file: those that are durable, and those that it has."""

    durable: bytes = b""
    now: bytes = b""

    def left(self, loss: Loss, random: Random) -> bytes:
        """What is left of it after a power loss."""
        if loss == "nothing":
            return self.now
        if loss == "all":
            return self.durable
        if not self.now.startswith(self.durable):  # it was cut: before or after that
            return random.choice((self.durable, self.now))
        length = random.randint(len(self.durable), len(self.now))
        if loss == "tail":
            return self.now[:length]
        return self.durable + _with_holes(self.now, len(self.durable), random)


def _with_holes(data: bytes, start: int, random: Random) -> bytes:
    """The bytes from `start` on, of which whole sectors are zeros."""
    parts = []
    while start < len(data):
        end = (start // SECTOR + 1) * SECTOR
        part = data[start:end]
        parts.append(part if random.random() < 0.5 else bytes(len(part)))
        start = end
    return b"".join(parts)


Names = dict[str, Inode]
Step = Callable[[Names], None]


@dataclass(slots=True)
class LossyDisk:
    """One folder of files, as `real.zookeeper_data` uses a disk."""

    files: Names = field(default_factory=dict)
    stop_in: str = ""
    """The kind of call that it stops in; every kind counts if it is empty."""
    stop_at: int = 0
    """How many such calls until it stops; 0 for never."""
    stopped_in: str = ""
    forgets: str = ""
    """A kind of call that does nothing, which a bench has to find out."""
    _durable: Names = field(default_factory=dict)
    _steps: list[Step] = field(default_factory=list)
    """The changes of names that are under way."""

    def __post_init__(self) -> None:
        self._durable = dict(self.files)

    def counts(self, call: str) -> bool:
        """Whether the disk stops in this call."""
        if self.stopped_in:
            raise Stopped
        if self.stop_at and self.stop_in in ("", call):
            self.stop_at -= 1
            if not self.stop_at:
                self.stopped_in = call
        return bool(self.stopped_in)

    def count(self, call: str) -> None:
        """A call that changes nothing: it stops before or after it."""
        if self.counts(call):
            raise Stopped

    def change(self, call: str, step: Step) -> None:
        """Change the names; under way until `sync_names`."""
        stops = self.counts(call)
        step(self.files)
        self._steps.append(step)
        if stops:
            raise Stopped

    # --- the calls ---------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of the files."""
        return sorted(self.files)

    def read(self, name: str) -> bytes:
        """The contents of a file."""
        return self.files[name].now

    def make(self, name: str) -> LossyFile:
        """Make a file, or empty one that is there."""
        there = self.files.get(name)
        if there is not None:
            self.count("make")
            there.now = b""
            return LossyFile(self, there)
        inode = Inode()
        self.change("make", lambda names: names.__setitem__(name, inode))
        return LossyFile(self, inode)

    def cut(self, name: str, length: int) -> None:
        """Shorten a file, durably."""
        inode = self.files[name]
        stops = self.counts("cut")
        inode.now = inode.now[:length]
        if stops:
            raise Stopped
        inode.durable = inode.now

    def rename(self, name: str, to: str) -> None:
        """Rename a file, in place of another one."""

        def step(names: Names) -> None:
            if name in names:
                names[to] = names.pop(name)

        self.change("rename", step)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self.change("remove", lambda names: names.pop(name, None) and None)

    def sync_names(self) -> None:
        """Return when every name is durable."""
        self.count("sync names")
        if self.forgets != "sync names":
            self._durable = dict(self.files)
            self._steps = []

    def close(self) -> None:
        """Let others use the folder."""

    # --- what is left ------------------------------------------------------------------------

    def after_power_loss(self, loss: Loss, random: Random) -> LossyDisk:
        """The disk that the next life finds."""
        names = dict(self._durable)
        for step in self._kept(loss, random):
            step(names)
        left = {}
        for name, inode in names.items():
            data = inode.left(loss, random)
            left[name] = Inode(data, data)
        return LossyDisk(left, forgets=self.forgets)

    def _kept(self, loss: Loss, random: Random) -> list[Step]:
        if loss == "nothing":
            return self._steps
        if loss == "all":
            return []
        if loss == "tail":
            return self._steps[: random.randint(0, len(self._steps))]
        return [step for step in self._steps if random.random() < 0.5]


@dataclass(slots=True)
class LossyFile:
    """A file that is being written."""

    disk: LossyDisk
    inode: Inode

    def write(self, data: bytes) -> None:
        """Append these bytes."""
        stops = self.disk.counts("write")
        self.inode.now += data
        if stops:
            raise Stopped

    def sync(self) -> None:
        """Return when everything that was written is durable."""
        self.disk.count("sync")
        if self.disk.forgets != "sync":
            self.inode.durable = self.inode.now

    def close(self) -> None:
        """Write no more."""
