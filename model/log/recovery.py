"""Recovery after a crash: the log is truncated after its last intact entry.

Only the last segment can be torn. The others were flushed before the next one was begun, and
have not changed since.

The file is read in chunks, because a segment may be larger than the memory to spare. An entry
larger than a chunk is checked chunk by chunk as well: its size is not trustworthy before its
CRC has been checked, so no buffer of that size is allocated.
"""

from __future__ import annotations

from zlib import crc32

from watchkeeper.model.log.format.contents import Contents, size_of
from watchkeeper.model.log.format.entries import intact_size
from watchkeeper.model.log.format.message_07 import AFTER_MAGIC_0, AFTER_MAGIC_1
from watchkeeper.model.log.format.message_set_07 import SIZE, SIZE_AND_MAGIC
from watchkeeper.model.log.segments import Segment
from watchkeeper.model.log.storage import Flush, Read, Truncate

CHUNK_BYTES = 1024 * 1024


async def recover(segment: Segment) -> int:
    """Truncate a segment after its last intact entry; return the number of bytes removed."""
    intact_bytes = await intact_size_of_file(segment.path, segment.size_bytes)
    cut_bytes = segment.size_bytes - intact_bytes
    if cut_bytes:
        await Truncate(segment.path, intact_bytes)
    # The rest may be in the pagecache only, if the process crashed and the host did not.
    # All of a recovered segment can be read, so it has to be on the disk first.
    await Flush(segment.path)
    segment.cut(intact_bytes)
    return cut_bytes


async def intact_size_of_file(
    path: str, size_bytes: int, *, chunk_bytes: int = CHUNK_BYTES
) -> int:
    """Return the number of bytes of a file, from its start, that are intact entries."""
    at = 0
    while at < size_bytes:
        contents = await Read(path, at, chunk_bytes)
        intact_bytes = intact_size(contents)
        if not intact_bytes and at + size_of(contents) < size_bytes:
            intact_bytes = await _large_entry(path, at, size_bytes, contents)
        if not intact_bytes:
            break
        at += intact_bytes
    return at


async def _large_entry(path: str, at: int, size_bytes: int, chunk: Contents) -> int:
    """Return the size of the entry that begins with this chunk; 0 if it is torn."""
    if not isinstance(chunk, bytes):
        return intact_size(await Read(path, at, size_bytes - at))
    message_bytes, magic = SIZE_AND_MAGIC.unpack_from(chunk)
    end = at + SIZE.size + message_bytes
    if magic not in (0, 1) or not at + len(chunk) < end <= size_bytes:
        return 0
    rest = AFTER_MAGIC_1 if magic else AFTER_MAGIC_0
    *_, stored = rest.unpack_from(chunk, SIZE_AND_MAGIC.size)
    crc = crc32(chunk[SIZE_AND_MAGIC.size + rest.size :])
    chunk_bytes = len(chunk)
    position = at + chunk_bytes
    while position < end:
        chunk = await Read(path, position, min(chunk_bytes, end - position))
        if not isinstance(chunk, bytes) or not chunk:
            return 0
        crc = crc32(chunk, crc)
        position += len(chunk)
    return end - at if crc == stored else 0
