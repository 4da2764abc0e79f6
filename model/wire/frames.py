"""Frames: each is a length of four bytes, and so many bytes of payload."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.wire.fields import INT32, Malformed

HEADER_BYTES = INT32.size


class FrameDecoder:
    """Cuts a stream of bytes into payloads."""

    __slots__ = ("_kept", "_most_bytes")

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes` is the largest payload that is taken."""
        self._most_bytes = most_bytes
        self._kept = b""

    @property
    def kept_bytes(self) -> int:
        """How many bytes of an incomplete frame are kept."""
        return len(self._kept)

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes and return the payloads that are complete.

        Raises Malformed for a length that is negative or too large, after which the stream
        makes no sense; the payloads before it are lost with it.
        """
        return list(self.each(data))

    def each(self, data: bytes) -> Iterator[bytes]:
        """The same one by one, so that what comes before a wrong length is not lost."""
        if self._kept:
            data = self._kept + data
            self._kept = b""
        at, end = 0, len(data)
        while end - at >= HEADER_BYTES:
            (length,) = INT32.unpack_from(data, at)
            if not 0 <= length <= self._most_bytes:
                raise Malformed(
                    f"a frame of {length:,} bytes; from 0 to {self._most_bytes:,} are taken"
                )
            begin = at + HEADER_BYTES
            if end - begin < length:
                break
            at = begin + length
            yield data[begin:at]
        self._kept = data[at:]


def frame(payload: bytes) -> bytes:
    """A payload with its length before it."""
    return INT32.pack(len(payload)) + payload
