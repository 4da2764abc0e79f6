"""What a broker that was killed had stored, and had no time to tell.

Between an append and the line in the diary that tells of it a process may be killed. What it
has appended is in its files all the same; so the next process of that broker, which knows
from the diaries how much was told, tells the rest when it has opened its logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from model.clients.identities import lots_in
from model.delivery import Lot
from model.log.log import Log

Told = dict[tuple[str, str], int]
"""Topic and partition -> up to which offset it was told what lies in that log."""


def diaries_of(path: Path) -> list[Path]:
    """The diaries of all processes of one name, in the order in which they lived."""
    name, _, _ = path.stem.rpartition(".")
    return sorted(path.parent.glob(f"{name}.*{path.suffix}"), key=_life)


def _life(path: Path) -> int:
    return int(path.stem.rpartition(".")[2])


def told_in(diaries: Iterable[Path]) -> Told:
    """How much of each log was told of; a line that was cut short tells nothing."""
    told: Told = {}
    for diary in diaries:
        for line in diary.read_bytes().splitlines():
            try:
                _, _, kind, _, _, topic, partition, _, detail = msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue
            end = _end(kind, detail)
            if end is not None:
                told[topic, partition] = end
    return told


def _end(kind: str, detail: dict[str, Any]) -> int | None:
    if kind == "opened":
        return int(detail["end"])
    return Lot(*detail["lots"][-1]).to if kind == "stored" and detail["lots"] else None


def untold(log: Log, root: Path, told: int) -> Iterator[Lot]:
    """The messages of a log that lie behind what was told."""
    at = max(told, log.start)
    while at < log.end:
        view = log.view(at, log.end - at)
        with (root / view.path).open("rb") as file:
            file.seek(view.at)
            yield from lots_in(file.read(view.size_bytes), at)
        at += view.size_bytes
