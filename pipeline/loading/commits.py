"""Which part of a log a file of a table holds: its name says it, and nothing else does.

    0-3.clicks.v07.00000000000000000000-00000000000001234500.parquet

holds what broker 0 had of partition 3 of clicks, from offset 0 up to 1234500. So the rows
and the offset that was reached are one file, and it is there or not there. What a table has
of a log is the sum of its files; how far it has come is where the first gap in it begins.

In 0.8 an offset means the same message on every broker that has the partition, so there the
broker does not tell logs apart.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from model.log.folders import LONGEST_NAME_BYTES
from pipeline.kafkalog.folders import LogFolder
from pipeline.kafkalog.splits import Split
from pipeline.problems import PipelineProblem

SUFFIX = ".parquet"
RELEASES = {"07": "0.7", "08": "0.8"}
_NAME = re.compile(
    r"(\d+)-(\d+)\.(.+)\.v(07|08)\.(\d{20})-(\d{20})\.parquet", re.ASCII | re.DOTALL
)
_UNSAFE = re.compile(r"[^\w.\-]")
_QUOTED = re.compile(r"(?:~[0-9A-F]{2})+")


class LogKey(NamedTuple):
    """What tells logs apart: in 0.8 the broker does not."""

    topic: str
    broker: int | None
    partition: int

    def __str__(self) -> str:
        where = "" if self.broker is None else f" of broker {self.broker}"
        return f"{self.topic}-{self.partition}{where}"


class Commit(Struct, frozen=True, order=True):
    """What one file of a table holds."""

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
        """The name of the file; PipelineProblem if no file can be named so."""
        release = self.format.replace(".", "")
        name = (
            f"{self.broker}-{self.partition}.{_quoted(self.topic)}.v{release}."
            f"{self.from_offset:020d}-{self.to_offset:020d}{SUFFIX}"
        )
        if len(name.encode()) > LONGEST_NAME_BYTES:
            raise PipelineProblem(
                f"the topic {self.topic[:40]}... has too long a name for a file that is named "
                f"after it, of at most {LONGEST_NAME_BYTES} bytes; read it with "
                'spark.read.format("kafkalog") instead'
            )
        return name


def key_of(one: Commit | LogFolder | Split) -> LogKey:
    """Of which log something is."""
    return LogKey(one.topic, one.broker if one.format == "0.7" else None, one.partition)


def commit_of(split: Split) -> Commit:
    """What the file of a split is to hold."""
    return Commit(
        split.topic,
        split.broker,
        split.partition,
        split.format,
        split.from_offset,
        split.to_offset,
    )


def parsed(name: str) -> Commit | None:
    """What a file holds by its name; None if it is no file of a table."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    broker, partition, topic, release, begin, end = found.groups()
    return Commit(
        _unquoted(topic), int(broker), int(partition), RELEASES[release], int(begin), int(end)
    )


def _quoted(topic: str) -> str:
    """The name of a topic without what file systems, shells and Hadoop take for something."""
    return _UNSAFE.sub(lambda found: "".join(f"~{one:02X}" for one in found[0].encode()), topic)


def _unquoted(text: str) -> str:
    return _QUOTED.sub(
        lambda found: bytes.fromhex(found[0].replace("~", "")).decode(errors="replace"), text
    )


# --- what there is of a log ------------------------------------------------------------


class Held(NamedTuple):
    """What a table has of a log."""

    format: str
    commits: list[Commit]
    """Sorted; none overlaps another."""

    @property
    def reached(self) -> int:
        """The offset up to which everything is there."""
        reached = self.commits[0].from_offset
        for one in self.commits:
            if one.from_offset > reached:
                break
            reached = one.to_offset
        return reached

    def holes(self, start: int) -> list[tuple[int, int | None]]:
        """What is not there from an offset on: from where up to where, the last without end."""
        found: list[tuple[int, int | None]] = []
        low = min(start, self.commits[0].from_offset)
        for one in self.commits:
            if low < one.from_offset:
                found.append((low, one.from_offset))
            low = one.to_offset
        return [*found, (low, None)]


def held(commits: Iterable[Commit]) -> dict[LogKey, Held]:
    """What there is, log by log; PipelineProblem if something is there twice."""
    grouped: dict[LogKey, list[Commit]] = defaultdict(list)
    for one in commits:
        grouped[one.key].append(one)
    found = {}
    for key, some in sorted(grouped.items(), key=lambda item: (item[0].topic, item[1][0])):
        some.sort(key=lambda one: (one.from_offset, one.to_offset))
        for before, after in pairwise(some):
            if after.from_offset < before.to_offset:
                raise PipelineProblem(
                    f"{before.name} and {after.name} hold the same messages; remove one of them"
                )
        found[key] = Held(some[0].format, some)
    return found
