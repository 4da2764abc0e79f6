"""The logs in a folder: of one broker, of several, or a single log.

    LOGS/clicks-0/00000000000000000000.kafka      the logs of a broker
    LOGS/2/clicks-0/...                           those of brokers, a folder each
    LOGS/broker-2/clicks-0/...                    the same
    clicks-0/00000000000000000000.kafka           one log

The broker is the one that the caller names; else the one in the file `meta.properties` beside the
logs, which later brokers write; else in the name of the folder; else broker 0.

In 0.7 each broker has messages of its own. In 0.8 the logs of one partition on several brokers
are replicas with the same messages, so one of them is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum, auto
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from watchkeeper.model.log.folder_names import partition_of
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.scan.formats import FORMATS

BROKER = re.compile(r"(?:broker[-_]?)?(\d+)")
BROKER_ID = re.compile(r"^broker\.id=(\d+)\s*$", re.MULTILINE)
PROPERTIES = "meta.properties"
SEGMENT = re.compile(r"(\d+)(\.\w+)", re.ASCII)
SUFFIXES = {form.suffix: form.name for form in FORMATS.values()}
"""Suffix of segment files -> the release."""

Replicas = Literal["first", "all"]
Gaps = Literal["fail", "allow"]


class Segment(Struct, frozen=True):
    """A file of a log, from offset `start` on."""

    path: str
    start: int
    size_bytes: int


class IdFrom(Enum):
    """Where the id of a broker comes from."""

    CALLER = auto()
    PROPERTIES = auto()
    FOLDER = auto()
    NOTHING = auto()


class BrokerId(NamedTuple):
    """The id of a broker, and where it comes from."""

    number: int
    id_from: IdFrom


class LogFolder(Struct, frozen=True):
    """The log of one partition, as its folder lists it."""

    topic: str
    broker: int
    partition: int
    format: str
    segments: tuple[Segment, ...]
    id_from: IdFrom

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} of broker {self.broker}"

    @property
    def name(self) -> str:
        """Its unique name within a folder."""
        return f"{self.broker}/{self.topic}-{self.partition}"

    @property
    def home(self) -> Path:
        """The folder of its broker's logs."""
        return Path(self.segments[0].path).parent.parent

    @property
    def size_bytes(self) -> int:
        """How much there is of it."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def start(self) -> int:
        """The first offset that it has."""
        return self.segments[0].start


def logs_in(
    folder: str | Path,
    *,
    broker: int | None = None,
    replicas: Replicas = "first",
    gaps: Gaps = "fail",
) -> list[LogFolder]:
    """The logs in a folder, sorted; PipelineProblem where it is no folder of logs."""
    home = Path(folder)
    try:
        found = list(_found(home, broker))
    except OSError as error:
        where = error.filename or home
        raise PipelineProblem(f"{where} cannot be read: {error.strerror or error}") from None
    if not found:
        raise PipelineProblem(
            f"there is no log in {home}; expected folders TOPIC-PARTITION with segments in them, "
            "*.kafka (0.7) or *.log (0.8), or a folder of these for each broker"
        )
    _check_one_format(found)
    _check_once(found)
    if gaps == "fail":
        for log in found:
            _check_adjoining(log)
    found.sort(key=lambda log: (log.topic, log.partition, log.broker))
    if replicas == "first" and found[0].format == "0.8":
        return list({(log.topic, log.partition): log for log in reversed(found)}.values())[::-1]
    return found


def _found(home: Path, broker: int | None) -> Iterator[LogFolder]:
    if partition_of(home.name) is not None and _files(home):
        yield from _logs([home], _broker_of(home.parent, broker))
        return
    folders = sorted(path for path in home.iterdir() if path.is_dir())
    found = list(_logs(folders, _broker_of(home, broker)))
    yield from found
    taken = {Path(log.segments[0].path).parent for log in found}
    for folder in folders:
        if folder not in taken and BROKER.fullmatch(folder.name):
            inner = [log for log in folder.iterdir() if log.is_dir()]
            yield from _logs(inner, _broker_of(folder, broker))


def _broker_of(home: Path, given: int | None) -> BrokerId:
    if given is not None:
        return BrokerId(given, IdFrom.CALLER)
    properties = home / PROPERTIES
    if properties.is_file():
        found = BROKER_ID.search(properties.read_text(errors="replace"))
        if found is not None:
            return BrokerId(int(found[1]), IdFrom.PROPERTIES)
    if named := BROKER.fullmatch(home.name):
        return BrokerId(int(named[1]), IdFrom.FOLDER)
    return BrokerId(0, IdFrom.NOTHING)


def _logs(folders: Iterable[Path], broker: BrokerId) -> Iterator[LogFolder]:
    for folder in folders:
        named = partition_of(folder.name)
        files = _files(folder) if named is not None else []
        if named is None or not files:
            continue
        formats = {form for form, _ in files}
        if len(formats) > 1:
            raise PipelineProblem(
                f"{folder} holds segments of 0.7 (*.kafka) and of 0.8 (*.log); move the ones "
                "that do not belong there to a folder of their own"
            )
        segments = tuple(
            sorted((segment for _, segment in files), key=lambda segment: segment.start)
        )
        topic, partition = named
        form = formats.pop()
        yield LogFolder(topic, broker.number, partition, form, segments, broker.id_from)


def _files(folder: Path) -> list[tuple[str, Segment]]:
    """The segments in a folder, each with the release that names its files so.

    Sizes are read after all names are known. A segment with a successor does not grow any more;
    read earlier, it might still have been the last.
    """
    found = []
    for name in os.listdir(folder):
        named = SEGMENT.fullmatch(name)
        if named is None or named[2] not in SUFFIXES:
            continue
        path = folder / name
        with suppress(FileNotFoundError):  # its broker has just deleted it
            segment = Segment(str(path), int(named[1]), path.stat().st_size)
            found.append((SUFFIXES[named[2]], segment))
    return found


# --- what must not be ------------------------------------------------------------------


def _check_one_format(found: list[LogFolder]) -> None:
    for log in found[1:]:
        if log.format != found[0].format:
            raise PipelineProblem(
                f"{found[0]} is of Kafka {found[0].format} and {log} of {log.format}; an offset "
                "means a byte in one and a message in the other: load them one by one"
            )


def _check_once(found: list[LogFolder]) -> None:
    places: dict[str, LogFolder] = {}
    for log in found:
        other = places.setdefault(log.name, log)
        if other is not log:
            raise PipelineProblem(
                f"{log} is there twice, in {Path(other.segments[0].path).parent} and in "
                f"{Path(log.segments[0].path).parent}; name the folder of one broker alone"
            )


def _check_adjoining(log: LogFolder) -> None:
    """Check that in 0.7 each segment ends at the offset at which the next one starts."""
    for before, after in pairwise(log.segments):
        end = before.start + before.size_bytes
        if log.format == "0.7" and end != after.start:
            raise PipelineProblem(missing(log.name, before.path, end, after.path, after.start))
        if before.start == after.start:
            raise PipelineProblem(
                f"{before.path} and {after.path} begin at the same offset; move one of them away"
            )


def missing(log: str, path: str, end: int, next_path: str, next_start: int) -> str:
    """The sentence for a segment that does not continue where the one before it ends."""
    return (
        f"{log}: {path} ends at {end} and the next segment, {next_path}, begins at {next_start}: "
        "a segment is missing or was changed; put it back, or read what is there by allowing gaps"
    )


def deleted_unread(log: object, reached: int, start: int) -> str:
    """The sentence for a log that begins after the offset at which reading should continue."""
    return (
        f"{log} was read up to {reached}, and now begins at {start}: what was between "
        "them has been deleted unread; go on behind it by allowing gaps"
    )
