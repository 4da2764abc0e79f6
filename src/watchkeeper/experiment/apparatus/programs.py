"""What the programs of several experiments do."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from watchkeeper.experiment.apparatus.host import Host, run
from watchkeeper.model.log.format.contents import (
    Contents,
    Series,
    SeriesRange,
    size_of,
    whole_series,
)
from watchkeeper.model.log.storage import Append, CreateFile, Flush, Read

MB = 1_000_000
PAYLOAD_BYTES = 190
"""With what an entry adds, messages of 200 bytes."""
ENTRY_BYTES = 200


def messages(size_bytes: int, first: int = 0) -> tuple[SeriesRange, ...]:
    """Messages that take so many bytes, or somewhat less."""
    return whole_series(Series("producer", first, size_bytes // ENTRY_BYTES, PAYLOAD_BYTES))


async def append_all(path: str, total_bytes: int, each: Contents) -> None:
    """Append the same again and again, until it is so much."""
    await CreateFile(path)
    for _ in range(total_bytes // size_of(each)):
        await Append(path, each)


async def read_all(path: str, total_bytes: int, each_bytes: int, begin: int = 0) -> None:
    """Read a file in order."""
    for at in range(begin, begin + total_bytes, each_bytes):
        await Read(path, at, each_bytes)


async def flushed(path: str, body: Coroutine[Any, Any, Any]) -> None:
    """Do something to a file, and have it on the disk."""
    await body
    await Flush(path)


def took_s(host: Host, *bodies: Coroutine[Any, Any, Any]) -> float:
    """Let threads of one process do something; how long that takes."""
    process, begin = host.process(), host.kernel.now_us
    run(host, [host.start(process, body) for body in bodies])
    return max(host.kernel.now_us - begin, 1) / 1e6
