"""Makes rows of messages from whole entries, many at once.

An uncompressed message is a row. Compressed ones are taken out of their wrappers, and those of
many wrappers are concatenated and read together: a numpy call costs as much for a few as for
many. A wrapper that differs from the others, because it is damaged or holds wrappers again, is
left to `watchkeeper.model.log`, which returns its content or the error.

An entry that cannot be trusted becomes a row as well, with `crc_ok` false; the caller decides
what to do with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from watchkeeper.model.log.format import message_08, message_set_07
from watchkeeper.model.log.format.codecs import decompress
from watchkeeper.model.log.format.errors import LogError, UnknownCodec
from watchkeeper.pipeline.kafkalog.scan.checksums import are_right
from watchkeeper.pipeline.kafkalog.scan.entry_scan import chain
from watchkeeper.pipeline.kafkalog.scan.formats import Flags, Format, Heads, Places
from watchkeeper.pipeline.kafkalog.scan.valid_runs import Whole

GROUP_BYTES = 4 << 20
"""How much is decompressed before it is made into rows."""
LIMIT_BYTES = 100 << 20
"""How much a wrapper may hold."""


class Rows(NamedTuple):
    """Some messages, in the order of the log."""

    offset: Places
    next_offset: Places
    key: pa.Array | None
    payload: pa.Array
    codec: int | None
    """The compression of the messages; None for bytes that are no entry."""
    crc_ok: Flags | None
    """None if all are right."""
    reason: str = ""
    """Of an untrusted entry: its error."""


class Entries(NamedTuple):
    """Consecutive entries of a message set."""

    data: bytes
    begins: Places
    ends: Places
    heads: Heads
    offset: Places
    next_offset: Places
    ok: Flags | None
    """Which of them can be trusted; None if all can."""

    def part(self, begin: int, end: int) -> Entries:
        """The entries from one index up to another."""
        cut = slice(begin, end)
        heads = self.heads.part(cut)
        return Entries(
            self.data,
            self.begins[cut],
            self.ends[cut],
            heads,
            self.offset[cut],
            self.next_offset[cut],
            None if self.ok is None else self.ok[cut],
        )


def entries_of(run: Whole, form: Format, start: int, limit: int | None) -> Entries:
    """The entries of a run within the segment that starts at offset `start`."""
    begins, ends = run.bounds[:-1], run.bounds[1:]
    heads = form.heads(run.data, begins, ends)
    ok = _trusted(run.data, heads, ends)
    if heads.offset is None:
        first = start + run.at
        return Entries(run.data, begins, ends, heads, first + begins, first + ends, ok)
    belongs = heads.offset >= start
    if limit is not None:
        belongs &= heads.offset < limit
    if not belongs.all():
        ok = belongs if ok is None else ok & belongs
    return Entries(run.data, begins, ends, heads, heads.offset, heads.offset + 1, ok)


def rows_of(entries: Entries, form: Format, where: str) -> Iterator[Rows]:
    """The messages in these entries; `where` begins the sentence of an error."""
    codec = entries.heads.codec
    borders = np.flatnonzero(codec[1:] != codec[:-1]) + 1
    for begin, end in zip([0, *borders], [*borders, len(codec)], strict=True):
        part = entries.part(int(begin), int(end))
        if codec[begin]:
            yield from _Unwrapping(part, form, where).rows()
        else:
            yield _plain(part, None, part.offset, part.next_offset)


def _plain(entries: Entries, codec: int | None, offset: Places, next_offset: Places) -> Rows:
    """Entries as rows, one for one."""
    heads = entries.heads
    payload = cut_out(entries.data, heads.value_at, entries.ends, heads.has_value)
    key = None
    if heads.has_key.any():
        key = cut_out(entries.data, heads.key_at, heads.key_end, heads.has_key)
    return Rows(offset, next_offset, key, payload, codec or 0, entries.ok)


def cut_out(data: bytes, begins: Places, ends: Places, is_there: Flags) -> pa.Array:
    """The bytes between two places, null where there is no value.

    To Arrow the data is an array of wanted bytes and the bytes between them; the former are
    selected without a loop.
    """
    count = len(begins)
    if not count:
        return pa.array([], pa.binary())
    places = np.empty(2 * count, np.int32)
    places[0::2] = begins
    places[1::2] = ends
    both = pa.Array.from_buffers(
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(places), pa.py_buffer(data)]
    )
    wanted = both.filter(pa.array(np.arange(2 * count - 1) % 2 == 0))
    if is_there.all():
        return wanted
    valid = pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), count, [valid, *wanted.buffers()[1:]])


def _trusted(data: bytes, heads: Heads, ends: Places) -> Flags | None:
    """Which entries have right CRCs and consistent lengths; None if all do."""
    covered = cut_out(data, heads.checked_at, ends, np.ones(len(ends), bool))
    _, places, values = covered.buffers()
    offsets = np.frombuffer(places, np.int32)[: len(covered) + 1].astype(np.int64)
    right = are_right(memoryview(values)[: offsets[-1]], offsets, heads.crc)
    if heads.fits.all():
        return right
    return heads.fits if right is None else right & heads.fits


def _are_in(some: Places, many: Places) -> bool:
    """Whether some places are among many, both sorted."""
    return bool((many[np.searchsorted(many, some)] == some).all())


# --- wrappers --------------------------------------------------------------------------


class _Wrapper(NamedTuple):
    """A wrapper, decompressed."""

    at: int
    """Which of the entries it is."""
    inner: bytes


class _Unwrapping:
    """Takes messages out of wrappers with one compression."""

    def __init__(self, entries: Entries, form: Format, where: str) -> None:
        self.entries = entries
        self.form = form
        self.where = where
        self.codec = int(entries.heads.codec[0])

    def rows(self) -> Iterator[Rows]:
        """The messages, with those wrappers between them that cannot be opened."""
        group: list[_Wrapper] = []
        size_bytes = 0
        for at in range(len(self.entries.begins)):
            opened = self._opened(at)
            if isinstance(opened, _Wrapper):
                group.append(opened)
                size_bytes += len(opened.inner)
            if isinstance(opened, Rows) or size_bytes >= GROUP_BYTES:
                yield from self._grouped(group)
                group, size_bytes = [], 0
            if isinstance(opened, Rows):
                yield opened
        yield from self._grouped(group)

    def _opened(self, at: int) -> _Wrapper | Rows:
        """A wrapper, decompressed; a row that cannot be trusted if that is not possible."""
        entries = self.entries
        if entries.ok is not None and not entries.ok[at]:
            return self._untrusted(at, "its CRC is wrong")
        begin, end = int(entries.heads.value_at[at]), int(entries.ends[at])
        where = f"{self.where}, offset {entries.offset[at]}"
        try:
            inner = decompress(
                self.codec,
                entries.data[begin:end],
                limit_bytes=LIMIT_BYTES,
                where=where,
                known=self.form.codecs,
            )
        except UnknownCodec as error:
            return self._untrusted(at, f"{error.meaning} ({error.detail})")
        except LogError as error:
            return self._untrusted(at, error.meaning)
        return _Wrapper(at, inner)

    def _untrusted(self, at: int, reason: str) -> Rows:
        entry = _plain(self.entries.part(at, at + 1), self.codec, *self._range(at))
        return entry._replace(crc_ok=np.zeros(1, bool), reason=reason)

    def _range(self, at: int) -> tuple[Places, Places]:
        return self.entries.offset[at : at + 1], self.entries.next_offset[at : at + 1]

    def _grouped(self, group: list[_Wrapper]) -> Iterator[Rows]:
        """The messages of some wrappers; each by itself, if they are irregular."""
        data = b"".join(member.inner for member in group)
        if not data:
            return
        sizes = np.fromiter((len(member.inner) for member in group), np.int64, len(group))
        borders = np.concatenate([[0], np.cumsum(sizes)])
        bounds = chain(data, self.form)
        if bounds[-1] == len(data) and _are_in(borders, bounds):
            begins, ends = bounds[:-1], bounds[1:]
            heads = self.form.heads(data, begins, ends)
            wrapper = np.searchsorted(borders, begins, "right") - 1
            if not heads.codec.any() and self._are_numbered(group, heads, wrapper):
                yield self._together(group, data, begins, ends, heads, wrapper)
                return
        for member in group:
            yield self._alone(member.at)

    def _are_numbered(self, group: list[_Wrapper], heads: Heads, wrapper: Places) -> bool:
        """Whether the last message in each wrapper of 0.8 has the offset of the wrapper."""
        if heads.offset is None:
            return True
        last = np.flatnonzero(np.append(wrapper[1:] != wrapper[:-1], True))
        at = np.fromiter((member.at for member in group), np.int64, len(group))[wrapper[last]]
        return bool((heads.offset[last] == self.entries.offset[at]).all())

    def _together(
        self,
        group: list[_Wrapper],
        data: bytes,
        begins: Places,
        ends: Places,
        heads: Heads,
        wrapper: Places,
    ) -> Rows:
        """The messages, with the wrapper of each."""
        ok = _trusted(data, heads, ends)
        if heads.offset is not None:
            offset, next_offset = heads.offset, heads.offset + 1
        else:
            at = np.fromiter((member.at for member in group), np.int64, len(group))[wrapper]
            offset = self.entries.offset[at]
            is_last = np.append(wrapper[1:] != wrapper[:-1], True)
            next_offset = np.where(is_last, self.entries.next_offset[at], offset)
        inner = Entries(data, begins, ends, heads, offset, next_offset, ok)
        return _plain(inner, self.codec, offset, next_offset)

    def _alone(self, at: int) -> Rows:
        """One wrapper, read by `watchkeeper.model.log`."""
        entry = self.entries.data[int(self.entries.begins[at]) : int(self.entries.ends[at])]
        try:
            if self.form.name == "0.7":
                return self._listed_07(
                    at, message_set_07.payloads(entry, limit_bytes=LIMIT_BYTES)
                )
            records = list(message_08.records(entry, limit_bytes=LIMIT_BYTES))
        except LogError as error:
            return self._untrusted(at, error.meaning)
        if records and records[-1].offset != self.entries.offset[at]:
            return self._untrusted(at, "its offset is not that of the last message in it")
        return self._listed_08(records)

    def _listed_07(self, at: int, payloads: list[bytes]) -> Rows:
        offset, next_offset = self._range(at)
        offsets = np.repeat(offset, len(payloads))
        following = offsets.copy()
        following[-1:] = next_offset[0]
        return Rows(offsets, following, None, pa.array(payloads, pa.binary()), self.codec, None)

    def _listed_08(self, records: list[message_08.Record]) -> Rows:
        offsets = np.array([record.offset for record in records], np.int64)
        key = pa.array([record.key for record in records], pa.binary())
        payload = pa.array([record.value for record in records], pa.binary())
        return Rows(offsets, offsets + 1, key, payload, self.codec, None)
