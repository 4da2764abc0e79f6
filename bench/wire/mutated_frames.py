"""Frames as a broken or hostile client sends them, and what a server owes to each.

A frame is drawn from requests that are right, and then changed: cut, with a length, a count or a
number that is wrong, bytes that are turned, a path of ten thousand names, an xid that was used
before. What a server owes to a piece of bytes follows from its framing alone: an answer to each
frame that is whole, the end of the connection for a length that cannot be, and patience with a
frame whose end has not come.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from bench.wire import jute
from bench.wire.jute import OPEN, Op
from bench.wire.steps import Burst, Request, Steps

MOST_BYTES = 0xFFFFF
"""The longest frame that a server takes (`jute.maxbuffer`)."""
NUMBERS = (0, -1, -2, 1, 127, 0x7FFF, 0xFFFF, 0x7FFFFFFF, -0x80000000, MOST_BYTES, MOST_BYTES + 1)
XIDS = (-1, -2, -4, -8, 0, 1, 1, 1, 0x7FFFFFFF, -0x80000000)
DEEP = "/a" * 10_000

Ending = Literal["whole", "bad length", "not whole"]


@dataclass(frozen=True, slots=True)
class Owed:
    """What a server owes to some bytes."""

    answers: int
    """Whole frames, but for those whose xid is that of events: their answers look like events."""
    ending: Ending
    """How the bytes end: with a whole frame, a length that cannot be, or part of a frame."""


def owed_to(data: bytes) -> Owed:
    """Cut bytes into frames as a server does."""
    at = answers = 0
    while at < len(data):
        if len(data) - at < 4:
            return Owed(answers, "not whole")
        length = int(jute.INT.unpack_from(data, at)[0])
        if not 0 <= length <= MOST_BYTES:
            return Owed(answers, "bad length")
        if len(data) - at - 4 < length:
            return Owed(answers, "not whole")
        is_like_event = length >= 4 and jute.INT.unpack_from(data, at + 4)[0] == jute.EVENT_XID
        answers += not is_like_event
        at += 4 + length
    return Owed(answers, "whole")


class MutatedFrames:
    """Draws frames by a seed."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._steps = Steps(chance, "/hostile", slots=1, servers=1)

    def frame(self) -> bytes:
        """One frame, or what is left of one."""
        chance = self._chance
        kind = chance.choices(tuple(_MUTATIONS), _WEIGHTS)[0]
        request = self._request()
        xid = chance.choice(XIDS) if chance.random() < 0.2 else chance.randrange(1, 1_000)
        payload = jute.HEAD.pack(xid, request.opcode) + request.body
        return _MUTATIONS[kind](self, payload)

    def first_frame(self) -> bytes:
        """A connect request that is wrong: its session, its password, or its form."""
        chance = self._chance
        session = chance.choice((0, 1, -1, 0x100000000000001, chance.getrandbits(63)))
        password = chance.randbytes(chance.choice((0, 1, 15, 16, 16, 17, 300)))
        timeout_ms = chance.choice((0, -1, 1_000, 0x7FFFFFFF))
        zxid = chance.choice((0, 0, 0, -1, 1 << 62))
        read_only = chance.choice((None, True, False))
        data = jute.connect_request(session, password, timeout_ms, zxid, read_only=read_only)
        if chance.random() < 0.5:
            return data
        return _MUTATIONS[chance.choice(tuple(_MUTATIONS))](self, data[4:])

    def _request(self) -> Request:
        if self._chance.random() < 0.03:
            return Request(Op.CREATE, jute.create(DEEP, b"", OPEN, 0))
        if self._chance.random() < 0.05:
            lists = b"".join(jute.vector([jute.buffer("/hostile")]) for _ in range(3))
            return Request(Op.SET_WATCHES, jute.LONG.pack(0) + lists)
        while True:
            step = self._steps.step()
            if isinstance(step, Burst):
                return step.requests[0]

    # --- mutations ---------------------------------------------------------------------

    def _as_it_is(self, payload: bytes) -> bytes:
        return jute.framed(payload)

    def _cut(self, payload: bytes) -> bytes:
        """A whole frame whose request ends early."""
        return jute.framed(payload[: self._chance.randrange(len(payload) + 1)])

    def _longer(self, payload: bytes) -> bytes:
        return jute.framed(payload + self._chance.randbytes(self._chance.choice((1, 4, 100))))

    def _turned(self, payload: bytes) -> bytes:
        """Some bytes are others."""
        data = bytearray(payload)
        for _ in range(self._chance.choice((1, 1, 2, 8))):
            data[self._chance.randrange(len(data))] = self._chance.randrange(256)
        return jute.framed(bytes(data))

    def _another_number(self, payload: bytes) -> bytes:
        """Some four bytes are a number at the edge: a length, a count, a version, an opcode."""
        at = self._chance.randrange(0, max(1, len(payload) - 3))
        number = jute.INT.pack(self._chance.choice(NUMBERS))
        return jute.framed(payload[:at] + number + payload[at + 4 :])

    def _another_opcode(self, payload: bytes) -> bytes:
        known = tuple(map(int, Op))
        opcode = self._chance.choice((*known, *known, *NUMBERS, 10, -10, 50))
        return jute.framed(payload[:4] + jute.INT.pack(opcode) + payload[8:])

    def _another_length(self, payload: bytes) -> bytes:
        """A frame whose length is wrong: what follows is read as something else."""
        return jute.INT.pack(self._chance.choice(NUMBERS)) + payload

    def _noise(self, payload: bytes) -> bytes:
        return jute.framed(self._chance.randbytes(len(payload)))

    def _most(self, payload: bytes) -> bytes:
        """A frame of nearly the longest length, seldom: it is a megabyte."""
        if self._chance.random() < 0.98:
            return self._turned(payload)
        return jute.framed(payload + bytes(MOST_BYTES - len(payload)))


_MUTATIONS = {
    "as it is": MutatedFrames._as_it_is,
    "cut": MutatedFrames._cut,
    "longer": MutatedFrames._longer,
    "bytes turned": MutatedFrames._turned,
    "another number": MutatedFrames._another_number,
    "another opcode": MutatedFrames._another_opcode,
    "another length": MutatedFrames._another_length,
    "noise": MutatedFrames._noise,
    "longest": MutatedFrames._most,
}
_WEIGHTS = (1, 3, 2, 4, 6, 2, 1, 1, 1)
"""How often: seldom what ends the connection, since no later frame of it is looked at."""
