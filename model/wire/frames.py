"""Frames: each is a length of four bytes, and so many bytes of payload."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.wire.fields import INT32, Malformed

HEADER_BYTES = INT32.size


class FrameDecoder:
    """Cuts a stream of bytes into payloads.

    What has come of an incomplete frame is kept, and looked at again when the frame is whole:
    a peer that sends byte after byte costs no more than the bytes.
    """

    __slots__ = ("_kept", "_most_bytes", "_needed")

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes` is the largest payload that is taken."""
        self._most_bytes = most_bytes
        self._kept = bytearray()
        self._needed = HEADER_BYTES
        """How many bytes make the frame whole, or its length known."""

    @property
    def kept(self) -> bytes:
        """What has come of an incomplete frame; after Malformed, all from the wrong length on."""
        return bytes(self._kept)

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes and return the payloads that are complete.

        Raises Malformed for a length that is negative or too large, after which the stream
        makes no sense; the payloads before it are lost with it.
        """
        return list(self.each(data))

    def each(self, data: bytes) -> Iterator[bytes]:
        """The same one by one, so that what comes before a wrong length is not lost."""
        if self._kept:
            self._kept += data
            if len(self._kept) < self._needed:
                return
            data = bytes(self._kept)
            self._kept.clear()
        at, end = 0, len(data)
        while end - at >= HEADER_BYTES:
            (length,) = INT32.unpack_from(data, at)
            begin = at + HEADER_BYTES
            if not 0 <= length <= self._most_bytes:
                self._keep(data[at:], HEADER_BYTES)
                raise Malformed(
                    f"a frame of {length:,} bytes; from 0 to {self._most_bytes:,} are taken"
                )
            if end - begin < length:
                self._keep(data[at:], HEADER_BYTES + length)
                return
            at = begin + length
            yield data[begin:at]
        if at < end:
            self._keep(data[at:], HEADER_BYTES)

    def _keep(self, rest: bytes, needed: int) -> None:
        self._kept += rest
        self._needed = needed


def frame(payload: bytes) -> bytes:
    """A payload with its length before it."""
    return INT32.pack(len(payload)) + payload
