"""Reading ahead: a sequential reader gets the next pages before it requests them.

A reader that starts at the beginning of a file, or where a read ended, is a *stream*. It has a
window, which starts small and doubles with each window that is read, up to a most. A read
elsewhere is a stream of its own without a window: it gets the pages it requests and no more.
So several consumers can read one file in order, each at its own place.
"""

from __future__ import annotations

from watchkeeper.model.delivery.interval_set import Interval

FIRST_PAGES = 4
"""The least of a first window, which is twice the first read."""
MOST_STREAMS = 32
"""How many streams of one file are remembered."""
LONGEST_PAGES = 256
"""A read that is longer than the most is one request up to here."""


class Stream:
    """A sequential reader of a file."""

    __slots__ = ("ahead", "mark", "next", "window")

    def __init__(self, end: int) -> None:
        self.next = end
        """Where its next read begins."""
        self.ahead = end
        """The page up to which pages were requested."""
        self.mark = end
        """A read beyond this is in the last window, so that the next is due."""
        self.window = 0


class Readahead:
    """The streams of one file."""

    __slots__ = ("_most", "_streams")

    def __init__(self, most_pages: int) -> None:
        self._most = most_pages
        self._streams: list[Stream] = []
        """The one that read last at the end."""

    @property
    def has_streams(self) -> bool:
        """Whether anything was read from the disk."""
        return bool(self._streams)

    def plan(self, begin: int, end: int, last: int, *, is_miss: bool) -> Interval:
        """Which pages to request, beyond those wanted, in a file of so many pages.

        `begin` and `end` are the pages that are wanted. An empty interval is nothing.
        """
        stream = self._of(begin)
        if stream is None:
            if not is_miss:
                return end, end
            stream = Stream(end)
            self._remember(stream)
            if begin:
                return end, end
        stream.next = end
        if stream.window and end <= stream.mark:
            return end, end
        most = max(self._most, min(end - begin, LONGEST_PAGES))
        first = max(FIRST_PAGES, 2 * (end - begin))
        stream.window = min(most, 2 * stream.window if stream.window else first)
        start = max(stream.ahead, end)
        stream.mark = start
        stream.ahead = max(min(start + stream.window, last), end)
        return start, max(stream.ahead, start)

    def _of(self, begin: int) -> Stream | None:
        """The stream that a read belongs to: it goes on where that ended, or in its last page."""
        for at in range(len(self._streams) - 1, -1, -1):
            stream = self._streams[at]
            if stream.next - 1 <= begin <= stream.next:
                self._streams.append(self._streams.pop(at))
                return stream
        return None

    def _remember(self, stream: Stream) -> None:
        self._streams.append(stream)
        del self._streams[:-MOST_STREAMS]
