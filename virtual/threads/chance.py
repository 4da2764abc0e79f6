"""`random`, `secrets`, `uuid` and `os.urandom` from the chance of a process."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Callable
from random import Random
from typing import Any

from watchkeeper.virtual.threads.current import current_scheduler, current_task, here

_shared: Random = random._inst
_seed = Random.seed
_urandom = os.urandom
_uuid1 = uuid.uuid1
_getnode = uuid.getnode
UUID_EPOCH_100NS = 0x01B21DD213814000
"""From the begin of the Gregorian calendar to 1970."""

NAMES = tuple(
    name for name in random.__all__ if getattr(getattr(random, name), "__self__", None) is _shared
)
"""The functions of `random` that draw from its one hidden generator."""


def _chance() -> Random | None:
    """The generator of the process that runs, or the world's; None outside of a world."""
    task = current_task()
    if task is not None:
        return task.process.random
    scheduler = current_scheduler()
    return None if scheduler is None else scheduler.random


def drawing(name: str) -> Callable[..., Any]:
    """A function of `random` that draws from the process that runs."""
    real = getattr(_shared, name)
    method = getattr(Random, name)

    def draw(*args: Any, **kwargs: Any) -> Any:
        scheduler = here.scheduler
        if scheduler is None:
            return real(*args, **kwargs)
        task = scheduler.running
        chance = scheduler.random if task is None else task.process.random
        return method(chance, *args, **kwargs)

    draw.__name__ = name
    return draw


def _drawing_whole_numbers() -> Callable[[int, int], int]:
    """`random.randint`, which kazoo calls before each poll: the same draw in fewer calls."""
    real = drawing("randint")

    def randint(a: int, b: int) -> int:
        task = current_task()
        if task is None or type(a) is not int or type(b) is not int or b < a:
            return int(real(a, b))
        # What `Random` does below it: bits until they are a number of the range.
        choices = b - a + 1
        bits = choices.bit_length()
        draw = task.process.random.getrandbits
        number = draw(bits)
        while number >= choices:
            number = draw(bits)
        return a + number

    return randint


REPLACEMENTS: dict[str, Callable[..., Any]] = {
    **{name: drawing(name) for name in NAMES},
    "randint": _drawing_whole_numbers(),
}
"""Names of `random` -> what stands for them."""


def seed(self: Random, a: Any = None, version: int = 2) -> None:
    """Seed a generator; without a seed, from the chance of the process that runs."""
    if a is None:
        chance = _chance()
        if chance is not None:
            a = chance.getrandbits(128)
    _seed(self, a, version)


def urandom(size: int, /) -> bytes:
    """Random bytes."""
    chance = _chance()
    if chance is None:
        return _urandom(size)
    if size < 0:
        raise ValueError("negative argument not allowed")
    return chance.getrandbits(size * 8).to_bytes(size, "big") if size else b""


def uuid1(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
    """An id of the moment and of the host."""
    scheduler = current_scheduler()
    chance = _chance()
    if scheduler is None or chance is None:
        return _uuid1(node, clock_seq)
    moment = (scheduler.read_clock_ns() + scheduler.wall_ns()) // 100 + UUID_EPOCH_100NS
    sequence = chance.getrandbits(14) if clock_seq is None else clock_seq
    return uuid.UUID(
        fields=(
            moment & 0xFFFFFFFF,
            (moment >> 32) & 0xFFFF,
            (moment >> 48) & 0x0FFF,
            (sequence >> 8) & 0x3F,
            sequence & 0xFF,
            getnode() if node is None else node,
        ),
        version=1,
    )


def getnode() -> int:
    """The hardware address of the host."""
    task = current_task()
    return _getnode() if task is None else 0x020000000000 + task.process.pid
