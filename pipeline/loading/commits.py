"""The part of a log that a file of a table holds: its name states it, and nothing else does.

    0-3.clicks.v07.00000000000000000000-00000000000001234500.parquet

holds partition 3 of clicks on broker 0, from offset 0 up to 1234500. So the rows and the offset
reached are one file, which exists or does not. A table holds of a log the sum of its files; its
progress is where the first gap starts.

In 0.8 an offset means the same message on every broker with the partition, so there the broker is
no part of a log's identity.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from watchkeeper.model.log.folder_names import MAX_FOLDER_NAME_BYTES
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.logs import Log
from watchkeeper.pipeline.kafkalog.scan.splits import LogRange

SUFFIX = ".parquet"
RELEASES = {"07": "0.7", "08": "0.8"}
_NAME = re.compile(
    r"(\d+)-(\d+)\.(.+)\.v(07|08)\.(\d{20})-(\d{20})\.parquet", re.ASCII | re.DOTALL
)
_UNSAFE = re.compile(r"[^\w.\-]")
_QUOTED = re.compile(r"(?:~[0-9A-F]{2})+")


class LogKey(NamedTuple):
    """The identity of a log: in 0.8 without the broker."""

    topic: str
    broker: int | None
    partition: int

    def __str__(self) -> str:
        where = "" if self.broker is None else f" of broker {self.broker}"
        return f"{self.topic}-{self.partition}{where}"


class Commit(Struct, frozen=True, order=True):
    """The content of one file of a table."""

    topic: str
    broker: int
    partition: int
    format: str
    from_offset: int
    to_offset: int

    @property
    def key(self) -> LogKey:
        """Of which log."""
        return key_of(self)

    @property
    def name(self) -> str:
        """The name of the file; PipelineProblem if no file can have that name."""
        release = self.format.replace(".", "")
        name = (
            f"{self.broker}-{self.partition}.{_quoted(self.topic)}.v{release}."
            f"{self.from_offset:020d}-{self.to_offset:020d}{SUFFIX}"
        )
        if len(name.encode()) > MAX_FOLDER_NAME_BYTES:
            raise PipelineProblem(
                f"the topic {self.topic[:40]}... has too long a name for a file that is named "
                f"after it, of at most {MAX_FOLDER_NAME_BYTES} bytes; read it with "
                'spark.read.format("kafkalog") instead'
            )
        return name


def key_of(source: Commit | Log | LogRange) -> LogKey:
    """Of which log something is."""
    return LogKey(
        source.topic, source.broker if source.format == "0.7" else None, source.partition
    )


def commit_of(split: LogRange) -> Commit:
    """The commit of a split."""
    return Commit(
        split.topic,
        split.broker,
        split.partition,
        split.format,
        split.from_offset,
        split.to_offset,
    )


def parsed(name: str) -> Commit | None:
    """The commit in a file's name; None if it is not a file of a table."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    broker, partition, topic, release, begin, end = found.groups()
    return Commit(
        _unquoted(topic), int(broker), int(partition), RELEASES[release], int(begin), int(end)
    )


def _quoted(topic: str) -> str:
    """The name of a topic without characters that file systems, shells or Hadoop interpret."""
    return _UNSAFE.sub(lambda found: "".join(f"~{byte:02X}" for byte in found[0].encode()), topic)


def _unquoted(text: str) -> str:
    return _QUOTED.sub(
        lambda found: bytes.fromhex(found[0].replace("~", "")).decode(errors="replace"), text
    )


# --- what there is of a log ------------------------------------------------------------


class Held(NamedTuple):
    """The part of a log that a table holds."""

    format: str
    commits: list[Commit]
    """Sorted; none overlaps another."""

    @property
    def reached(self) -> int:
        """The offset up to which everything is there."""
        reached = self.commits[0].from_offset
        for commit in self.commits:
            if commit.from_offset > reached:
                break
            reached = commit.to_offset
        return reached

    def holes(self, start: int) -> list[tuple[int, int | None]]:
        """The missing parts from an offset on: start and end, the last without end."""
        found: list[tuple[int, int | None]] = []
        low = min(start, self.commits[0].from_offset)
        for commit in self.commits:
            if low < commit.from_offset:
                found.append((low, commit.from_offset))
            low = commit.to_offset
        return [*found, (low, None)]


def held(commits: Iterable[Commit]) -> dict[LogKey, Held]:
    """The commits of each log; PipelineProblem if a part is there twice."""
    grouped: dict[LogKey, list[Commit]] = defaultdict(list)
    for commit in commits:
        grouped[commit.key].append(commit)
    found = {}
    for key, some in sorted(grouped.items(), key=lambda item: (item[0].topic, item[1][0])):
        some.sort(key=lambda commit: (commit.from_offset, commit.to_offset))
        for before, after in pairwise(some):
            if after.from_offset < before.to_offset:
                raise PipelineProblem(
                    f"{before.name} and {after.name} hold the same messages; remove one of them"
                )
        found[key] = Held(some[0].format, some)
    return found
