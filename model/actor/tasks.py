"""The effects of the tasks of one process: queues, random numbers, and other tasks.

A process is a program, and beside it *tasks*: coroutines that its clients start, such as one
that sends to each broker, one that fetches from each, and those of the application.

What a process guarantees to its tasks
  - A task runs alone from an answer to its next effect. So tasks may share memory: a task
    that reads and changes something without an effect in between is not disturbed.
  - A queue exists from the first use of its name. It holds items of total size `bound`; an
    item that is larger goes in alone. Items leave in the order in which they came, and
    waiting tasks are served in order: none overtakes, not even with a smaller item.
  - A time-out of 0 tries at once, None waits without limit.
  - A connection to a broker (`rpc`) belongs to the task that calls.
  - Tasks, queues and connections end with their process. An error that a task does not catch
    is a fault of the program, and the process reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from watchkeeper.model.actor.events import Notification
from watchkeeper.model.actor.operations import Effect

UNBOUNDED = 1 << 30
"""The bound of a queue that takes whatever comes."""

TaskFunction = Callable[[], Coroutine[Any, Any, None]]
"""Makes the coroutine of a task."""


class Put(Effect[bool], frozen=True):
    """Put an item into a queue as soon as there is room; False if there was none in time."""

    queue: str
    item: Any
    bound: int
    size: int = 1
    timeout_ms: int | None = None


class Take(Effect[Any], frozen=True):
    """Take the oldest item of a queue as soon as there is one; None if none came in time."""

    queue: str
    timeout_ms: int | None = None


class Drain(Effect[tuple[Any, ...]], frozen=True):
    """Take everything that a queue holds; then the tasks that wait for room go on."""

    queue: str


class Draw(Effect[int], frozen=True):
    """Draw so many random bits: a number from 0 to 2**bits - 1, each as likely as any."""

    bits: int


class Compress(Effect[int], frozen=True):
    """Compress messages of a simulation, which have only sizes.

    The world takes the time, and answers with the size of the compressed payload. Real messages
    need no effect: the codec compresses them.
    """

    codec: int
    messages: int
    plain_bytes: int


class Decompress(Effect[None], frozen=True):
    """Decompress messages of a simulation: the world takes the time."""

    codec: int
    plain_bytes: int


class Start(Effect[None], frozen=True):
    """Start a task of this process. It first runs when the current task waits."""

    name: str
    thread: TaskFunction


class Post(Effect[None], frozen=True):
    """Publish a value under a name to the tasks of this process, in place of the one before."""

    name: str
    value: Any


class Posted(Effect[Any], frozen=True):
    """Return the last value posted under a name; None if there is none."""

    name: str


class Remind(Effect[None], frozen=True):
    """Put a notification into the inbox of this process, as its operator would."""

    notification: Notification


def put(
    queue: str, item: Any, bound: int, *, size: int = 1, timeout_ms: int | None = None
) -> Put:
    """Put an item into a queue that is to hold no more than `bound`."""
    assert item is not None, "None means that nothing came"
    return Put(queue, item, bound, size, timeout_ms)


def take(queue: str, *, timeout_ms: int | None = None) -> Take:
    """Take the oldest item of a queue."""
    return Take(queue, timeout_ms)


async def below(bound: int) -> int:
    """Draw a whole number from 0 to bound - 1, each as likely as any."""
    assert bound > 0, "there must be something to draw from"
    bits = (bound - 1).bit_length()
    while bits:
        number = await Draw(bits)
        if number < bound:
            return number
    return 0
