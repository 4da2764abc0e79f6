"""Runs work ahead of its consumer, in a thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

AHEAD = 2
"""The most results that are computed or under way and not consumed yet."""


def prefetched(
    work: Callable[[Given], Made], given: Iterable[Given], jobs: int
) -> Iterator[Made]:
    """Yield the result of the work for each input, in order; with two jobs, computed ahead."""
    if jobs == 1:
        yield from map(work, given)
        return
    with ThreadPoolExecutor(1) as pool:
        under_way: deque[Future[Made]] = deque()
        try:
            for argument in given:
                under_way.append(pool.submit(work, argument))
                if len(under_way) > AHEAD:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()
