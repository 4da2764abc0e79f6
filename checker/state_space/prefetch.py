"""Does work ahead of whoever takes what comes of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

AHEAD = 2
"""How many pieces are done or under way that nobody has taken yet."""


def done(work: Callable[[Given], Made], given: Iterable[Given], jobs: int) -> Iterator[Made]:
    """What the work makes of each, in order; with more than one job, in a thread ahead."""
    if jobs == 1:
        yield from map(work, given)
        return
    with ThreadPoolExecutor(1) as pool:
        under_way: deque[Future[Made]] = deque()
        try:
            for one in given:
                under_way.append(pool.submit(work, one))
                if len(under_way) > AHEAD:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()
