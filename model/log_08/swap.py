"""The replacement of segments by one that was made of them, which a crash may interrupt anywhere.

    <first offset>.log.cleaned    the new segment, while it is written; of no account
    <first offset>.log.swap       it is whole, and replaces the segments whose offsets it has

The new segment takes the name of the first that it replaces. Until the others are deleted the
name `.swap` says that they are not to be read: a start that finds it completes the replacement.
It knows the others by their offsets. One whose offsets are all behind the last of the new segment
stays: the new one has none of its messages because each is older than another of its key.

Kafka 0.8.2.2: Log.loadSegments, Log.replaceSegments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from watchkeeper.model.log.segments import segment_start
from watchkeeper.model.log.storage import Delete, File, ListFolder, Read, Rename
from watchkeeper.model.log_08.index import SUFFIX as INDEX_SUFFIX
from watchkeeper.model.log_08.segments import BYTES_ONLY, CHUNK_BYTES, SUFFIX, heads

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"
"""Of files that Kafka deletes a minute later."""


def cleaned_path(path: str) -> str:
    """Return the path of the new segment while it is written."""
    return path + CLEANED_SUFFIX


async def swap_in(paths: Sequence[str]) -> None:
    """Replace segments by the new one, which is on the disk under its first name."""
    await Rename(cleaned_path(paths[0]), paths[0] + SWAP_SUFFIX)
    await _complete(paths)


async def complete_swaps(folder: str, files: Iterable[File]) -> tuple[File, ...]:
    """Complete what a crash has interrupted; return the files of the folder then."""
    files = tuple(files)
    endings = (CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX)
    unfinished = [file for file in files if file.name.endswith(endings)]
    if not unfinished:
        return files
    starts = _starts(files)
    for file in unfinished:
        path = f"{folder}/{file.name}"
        name = file.name.removesuffix(SWAP_SUFFIX)
        start = None if name == file.name else segment_start(name, SUFFIX)
        if start is None:
            await Delete(path)
            continue
        last = await _last_offset(path, file.size_bytes)
        replaced = sorted(each for each in starts if start < each <= last)
        await _complete([f"{folder}/{name}", *(f"{folder}/{starts[each]}" for each in replaced)])
    return await ListFolder(folder)


def _starts(files: Iterable[File]) -> dict[int, str]:
    """First offset -> name of the segment."""
    named = ((segment_start(file.name, SUFFIX), file.name) for file in files)
    return {start: name for start, name in named if start is not None}


async def _complete(paths: Sequence[str]) -> None:
    """Delete all segments but the first, and give its name to the new one."""
    folder = paths[0].rpartition("/")[0]
    present = {f"{folder}/{file.name}" for file in await ListFolder(folder)}
    for path in paths[1:]:
        if path in present:
            await Delete(path)
        await _delete_index(path, present)
    # An index of the old file would send readers of the new one to wrong positions.
    await _delete_index(paths[0], present)
    await Rename(paths[0] + SWAP_SUFFIX, paths[0])


async def _delete_index(path: str, present: set[str]) -> None:
    index_path = path.removesuffix(SUFFIX) + INDEX_SUFFIX
    if index_path in present:
        await Delete(index_path)


async def _last_offset(path: str, size_bytes: int) -> int:
    """Return the last offset in a file of whole entries; -1 if there is none."""
    last, position, chunk_bytes = -1, 0, CHUNK_BYTES
    while position < size_bytes:
        data = await Read(path, position, chunk_bytes)
        assert isinstance(data, bytes), BYTES_ONLY
        whole = 0
        for offset, _, end in heads(data):
            if end > len(data):
                break
            last, whole = offset, end
        if not whole and chunk_bytes >= size_bytes - position:
            break
        position += whole
        chunk_bytes = CHUNK_BYTES if whole else chunk_bytes * 2
    return last
