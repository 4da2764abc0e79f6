"""The ids and passwords of sessions, as Apache's servers make them.

A password follows from the id of its session, so every server can check it without having
kept it: also Apache's server on a data folder of ours, and ours on one of Apache's.
"""

from __future__ import annotations

from functools import lru_cache

SERVER_BITS, TIME_BITS = 56, 24
PASSWORD_SALT = 0xB3415C00
PASSWORD_BYTES = 16
NO_PASSWORD = bytes(PASSWORD_BYTES)

_MULTIPLIER, _INCREMENT, _MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1
"""The constants of `java.util.Random`."""


def first_session_id(server: int, wall_ms: int) -> int:
    """The first session id of a server that starts now: server, time, and room to count."""
    time_part = ((wall_ms << TIME_BITS) & (1 << 64) - 1) >> 8
    return _signed((time_part & (1 << SERVER_BITS) - 1) | server << SERVER_BITS)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


@lru_cache(maxsize=4096)
def password_of(session: int) -> bytes:
    """The password of a session: 16 bytes of Java's generator, seeded with its id."""
    state = ((session ^ PASSWORD_SALT) ^ _MULTIPLIER) & _MASK
    words = []
    for _ in range(PASSWORD_BYTES // 4):
        state = (state * _MULTIPLIER + _INCREMENT) & _MASK
        words.append((state >> 16).to_bytes(4, "little"))
    return b"".join(words)
