"""What is left of a log after a crash: as much as its last segment holds whole entries.

Only the last segment can be torn. The others were flushed before the one after them was
begun, and nothing has changed them since.

The file is read in pieces, since a segment is often larger than what one would like to
hold in memory. An entry that does not fit into a piece is checked piece by piece, too: its
size cannot be trusted before its CRC has been.
"""

from __future__ import annotations

from zlib import crc32

from model.log.contents import Contents, size_of
from model.log.entries import whole_entries
from model.log.message import AFTER_MAGIC_0, AFTER_MAGIC_1
from model.log.message_set import SIZE, SIZE_AND_MAGIC
from model.log.segments import Segment
from model.log.storage import Flush, Read, Truncate

PIECE_BYTES = 1024 * 1024


async def recover(segment: Segment) -> int:
    """Cut a segment off where it is not whole any more; answered with how much was cut.

    It is flushed afterwards. What is left may never have been: a process that crashed leaves
    its writes in the pagecache, and readers are shown all of a recovered segment.
    """
    whole_bytes = await whole_size(segment.path, segment.size_bytes)
    cut_bytes = segment.size_bytes - whole_bytes
    if cut_bytes:
        await Truncate(segment.path, whole_bytes)
    await Flush(segment.path)
    segment.cut(whole_bytes)
    return cut_bytes


async def whole_size(path: str, size_bytes: int, *, piece_bytes: int = PIECE_BYTES) -> int:
    """How much of a file, from its start, is whole entries with right CRCs."""
    at = 0
    while at < size_bytes:
        contents = await Read(path, at, piece_bytes)
        whole_bytes = whole_entries(contents)
        if not whole_bytes and at + size_of(contents) < size_bytes:
            whole_bytes = await _large_entry(path, at, size_bytes, contents)
        if not whole_bytes:
            break
        at += whole_bytes
    return at


async def _large_entry(path: str, at: int, size_bytes: int, piece: Contents) -> int:
    """How large the entry is of which this is the first piece; 0 if it is torn."""
    if not isinstance(piece, bytes):
        return whole_entries(await Read(path, at, size_bytes - at))
    message_bytes, magic = SIZE_AND_MAGIC.unpack_from(piece)
    end = at + SIZE.size + message_bytes
    if magic not in (0, 1) or not at + len(piece) < end <= size_bytes:
        return 0
    rest = AFTER_MAGIC_1 if magic else AFTER_MAGIC_0
    *_, stored = rest.unpack_from(piece, SIZE_AND_MAGIC.size)
    crc = crc32(piece[SIZE_AND_MAGIC.size + rest.size :])
    piece_bytes = len(piece)
    reached = at + piece_bytes
    while reached < end:
        piece = await Read(path, reached, min(piece_bytes, end - reached))
        if not isinstance(piece, bytes) or not piece:
            return 0
        crc = crc32(piece, crc)
        reached += len(piece)
    return end - at if crc == stored else 0
