"""Does to files what the end of their host would have done, so that it can be tried out.

The kernel keeps what a process has written, however the process ends; only the end of the
host loses what was not synced. So a `WatchedStorage` writes down, beside the files, what
has been synced of each, and `end_host` then takes away from the files what has not:

  - of what was appended since the last sync some part is left, cut anywhere, some blocks of
    it with zeros in place of what was written;
  - of a name that was being made, or taken away, when the process ended, nobody knows
    whether it is there. Before a file is deleted or replaced, a second link to it is kept.

What is left is chosen by the random numbers that are passed in. `cut_back` leaves nothing to
chance: of every file there is what was synced, and no more, and nothing of it in the pagecache.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, NamedTuple

from model.log.storage import CreateFile, Delete, Flush, Rename, StorageFailure, Truncate
from real.pagecache import forget
from real.storage import FileStorage

BLOCK_BYTES = 512
"""What a disk writes wholly or not at all."""
ZEROS = 0.2
"""How often a block that was not synced is one of zeros."""
LINES = "lines"
KEPT = "kept"
"""What is in a diary: its lines, and the file that is about to lose its name."""


class WatchedStorage(FileStorage):
    """The files of one folder, and in another one a diary of what is on the disk of them."""

    def __init__(self, root: Path, diary: Path) -> None:
        super().__init__(root)
        if not (diary / LINES).exists():
            diary.mkdir(parents=True, exist_ok=True)
            _write_sizes(root, diary)
        self._diary = diary
        self._naming = Lock()
        """Names change one after the other: only one file is kept at a time."""
        self._lines = os.open(diary / LINES, os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC)

    def answer(self, ask: Any) -> Any:
        """Answer as files do, and write down what is on the disk because of it."""
        if isinstance(ask, Flush | Truncate):
            return self._answer_sync(ask)
        if isinstance(ask, CreateFile | Delete):
            with self._naming:
                return self._answer_name(ask)
        if isinstance(ask, Rename):
            raise TypeError(f"{ask.path}: a watched storage does not follow files to other names")
        return super().answer(ask)

    def close(self) -> None:
        """Close every file, and the diary."""
        super().close()
        os.close(self._lines)

    def _answer_sync(self, ask: Flush | Truncate) -> Any:
        place = Path(self.root) / ask.path
        before_bytes = place.stat().st_size if place.exists() else 0
        answer = super().answer(ask)
        if not isinstance(answer, StorageFailure):
            synced_bytes = ask.size_bytes if isinstance(ask, Truncate) else before_bytes
            self._took_down(ask, synced_bytes)
        return answer

    def _answer_name(self, ask: CreateFile | Delete) -> Any:
        place, kept = Path(self.root) / ask.path, self._diary / KEPT
        kept.unlink(missing_ok=True)
        if place.is_file():
            os.link(place, kept)
        self._write({"path": ask.path, "begun": type(ask).__name__})
        answer = super().answer(ask)
        if not isinstance(answer, StorageFailure):
            self._took_down(ask, 0)
        return answer

    def _took_down(self, ask: Flush | Truncate | CreateFile | Delete, synced_bytes: int) -> None:
        """Write down what has been done, and how much of the file is on the disk by that."""
        if isinstance(ask, Flush | Truncate):
            self._write({"path": ask.path, "synced": synced_bytes})
        else:
            self._write({"path": ask.path, "done": type(ask).__name__})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._lines, json.dumps(line).encode() + b"\n")


def end_host(root: Path, diary: Path, random: Random) -> int:
    """Lose what was not synced, as far as chance has it; how many bytes were lost or zeroed."""
    synced, begun = _read(diary)
    if begun and random.random() < 0.5:
        _undo(root / begun, diary / KEPT)
    lost_bytes = sum(_tear(root / path, synced.get(path, 0), random) for path in _files(root))
    _write_sizes(root, diary)
    return lost_bytes


class Cut(NamedTuple):
    """What was taken of a file."""

    path: str
    before_bytes: int
    after_bytes: int


def cut_back(root: Path, diary: Path) -> tuple[Cut, ...]:
    """Take of every file what was not synced, all of it; which files that were."""
    if not (diary / LINES).exists():
        return ()
    cuts = []
    for path, (before_bytes, after_bytes) in extents(root, diary).items():
        if after_bytes < before_bytes:
            os.truncate(root / path, after_bytes)
            cuts.append(Cut(path, before_bytes, after_bytes))
        _forget(root / path)
    _write_sizes(root, diary)
    return tuple(cuts)


def _forget(place: Path) -> None:
    """Let no page of a file be in memory, as after the start of a host."""
    with place.open("r+b") as file:
        forget(file.fileno())


class Extent(NamedTuple):
    """How long a file is, and up to where the disk has it."""

    size_bytes: int
    synced_bytes: int


def extents(root: Path, diary: Path) -> dict[str, Extent]:
    """Every file with what there is of it."""
    synced, _ = _read(diary)
    sizes = {path: (root / path).stat().st_size for path in _files(root)}
    return {path: Extent(size, min(synced.get(path, 0), size)) for path, size in sizes.items()}


def _read(diary: Path) -> tuple[dict[str, int], str]:
    """How much of each file has been synced, and the name that was being changed, if one was."""
    synced: dict[str, int] = {}
    begun = ""
    for text in (diary / LINES).read_bytes().splitlines():
        line = json.loads(text)
        path = line["path"]
        begun = path if "begun" in line else ""
        if "synced" in line:
            synced[path] = line["synced"]
        elif line.get("done") == CreateFile.__name__:
            synced[path] = 0
    return synced, begun


def _undo(place: Path, kept: Path) -> None:
    """Let a file be as it was before it was made, replaced or deleted."""
    place.unlink(missing_ok=True)
    if kept.exists():
        os.link(kept, place)


def _tear(place: Path, synced_bytes: int, random: Random) -> int:
    """Leave what was synced of a file, and some part of the rest."""
    size_bytes = place.stat().st_size
    if synced_bytes >= size_bytes:
        return 0
    left_bytes = random.randint(synced_bytes, size_bytes)
    lost_bytes = size_bytes - left_bytes
    os.truncate(place, left_bytes)
    with place.open("r+b") as file:
        for block in range(synced_bytes // BLOCK_BYTES * BLOCK_BYTES, left_bytes, BLOCK_BYTES):
            begin, end = max(block, synced_bytes), min(block + BLOCK_BYTES, left_bytes)
            if random.random() < ZEROS:
                file.seek(begin)
                file.write(bytes(end - begin))
                lost_bytes += end - begin
    return lost_bytes


def _files(root: Path) -> list[str]:
    """The files below a folder, in an order that is always the same."""
    return sorted(str(one.relative_to(root)) for one in root.rglob("*") if one.is_file())


def _write_sizes(root: Path, diary: Path) -> None:
    """Begin a diary in which all that there is has been synced."""
    sizes = [{"path": path, "synced": (root / path).stat().st_size} for path in _files(root)]
    (diary / LINES).write_text("".join(json.dumps(line) + "\n" for line in sizes))
