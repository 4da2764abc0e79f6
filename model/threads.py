"""What the threads of one process ask of it: queues between them, chance, and one another.

A process is a program, and beside it *threads*: coroutines that its clients start, one that
sends to each broker, one that fetches from each, those of the application.

What a process promises to its threads
  - A thread runs alone from an answer to its next ask. So threads may share memory: whoever
    looks at something and changes it without asking in between is not disturbed.
  - A queue is there when it is first named, and holds items of a size each, at most `bound`
    in all; an item that is larger than the bound goes in alone. Items leave in the order in
    which they came. Whoever waits for room, or for an item, waits in line: nobody overtakes,
    not even with a smaller item.
  - A time-out of 0 asks whether it can be done at once, None waits for ever.
  - A connection to a broker (`model.calls`) belongs to the thread that calls.
  - Threads, queues and connections end with their process. An error that a thread does not
    catch is a fault of the program, and the process says so.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from model.answers import Note
from model.operations import Ask

Thread = Callable[[], Coroutine[Any, Any, None]]
"""What makes the coroutine that a thread runs."""


class Put(Ask[bool], frozen=True):
    """Put an item into a queue as soon as there is room; False if there was none in time."""

    queue: str
    item: Any
    bound: int
    size: int = 1
    timeout_ms: int | None = None


class Take(Ask[Any], frozen=True):
    """Take the oldest item of a queue as soon as there is one; None if none came in time."""

    queue: str
    timeout_ms: int | None = None


class Drain(Ask[tuple[Any, ...]], frozen=True):
    """Take everything that a queue holds, at once; then whoever waits for room gets it."""

    queue: str


class Draw(Ask[int], frozen=True):
    """Draw so many random bits: a number from 0 to 2**bits - 1, each as likely as any."""

    bits: int


class Start(Ask[None], frozen=True):
    """Start a thread of this process. It first runs when whoever asks waits for something."""

    name: str
    thread: Thread


class Post(Ask[None], frozen=True):
    """Let the threads of this process know a value by a name, in place of any before it."""

    name: str
    value: Any


class Posted(Ask[Any], frozen=True):
    """The value that was posted last by this name; None if there was none."""

    name: str


class Remind(Ask[None], frozen=True):
    """Put a note into the inbox of this process, as its operator would."""

    note: Note


def put(
    queue: str, item: Any, bound: int, *, size: int = 1, timeout_ms: int | None = None
) -> Put:
    """Put an item into a queue that is to hold no more than `bound`."""
    assert item is not None, "None says that nothing came"
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
