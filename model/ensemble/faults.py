"""The faults that a server injects into the traffic of its own clients.

A *loss* is aimed at the next request that fits. A lost request is not executed, or, as a late
request, executed after its connection is gone; a lost answer is that of an executed request.
Both end in a closed connection, as they do on a network. A delay line is one direction of a
slow connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from watchkeeper.model.ensemble.clock import Clock
from watchkeeper.model.ensemble.handlers import handle_late

if TYPE_CHECKING:
    from watchkeeper.model.ensemble.connection import Connection
    from watchkeeper.model.ensemble.server import Server
    from watchkeeper.model.wire.requests import Request

CountEffect = Callable[[str, int], object]
"""Counts an effect of a fault, in words."""


class Lost(StrEnum):
    """What is lost."""

    REQUEST = "request"
    ANSWER = "answer"


@dataclass(eq=False, slots=True)
class Loss:
    """A fault aimed at the next request that fits."""

    what: Lost
    fits: Callable[[Connection, Request], bool]
    count_effect: CountEffect
    lands_after_ms: float | None = None
    """When a lost request is executed after all; None for never."""

    def strike(self, connection: Connection, request: Request) -> None:
        """Have the effect on this request."""
        if self.what is Lost.ANSWER:
            connection.drop_answer(request, self)
            return
        self.count_effect("requests lost", 1)
        if self.lands_after_ms is not None:
            clock = connection.server.ensemble.clock
            clock.call_later(self.lands_after_ms, lambda: self._land(connection, request))
        connection.hang_up("the request was lost on purpose")

    def _land(self, connection: Connection, request: Request) -> None:
        self.count_effect("late requests executed", 1)
        handle_late(connection, request)


@dataclass(eq=False, slots=True)
class Refusal:
    """A fault that closes new connections until a moment."""

    until_ms: float
    count_effect: CountEffect
    session: int | None = None
    """The session whose connections are closed; None for every connection."""


@dataclass(slots=True)
class Faults:
    """The faults of an ensemble's connections that are armed or last."""

    losses: list[Loss] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def loss_of(self, connection: Connection, request: Request) -> Loss | None:
        """The loss that strikes this request, which is used up."""
        for loss in self.losses:
            if loss.fits(connection, request):
                self.losses.remove(loss)
                return loss
        return None

    def refuse(
        self, until_ms: float, count_effect: CountEffect, *, session: int | None = None
    ) -> Refusal:
        """Close every new connection until then, or every one that continues a session."""
        refusal = Refusal(until_ms, count_effect, session)
        self.refusals.append(refusal)
        return refusal

    def accept(self, refusal: Refusal) -> None:
        """End a refusal, unless it has ended."""
        if refusal in self.refusals:
            self.refusals.remove(refusal)

    def refuses(self, server: Server, *, session: int | None = None) -> bool:
        """Whether a new connection, or this session, is refused now; counts it."""
        if not self.refusals:
            return False
        now_ms = server.ensemble.clock.now_ms()
        self.refusals = [refusal for refusal in self.refusals if refusal.until_ms > now_ms]
        refusals = [refusal for refusal in self.refusals if refusal.session == session]
        for refusal in refusals:
            refusal.count_effect("connections refused", 1)
        return bool(refusals)


class DelayLine:
    """Makes each call `delay_ms` later, and none before an earlier one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_ms = 0.0
        self._calls: deque[Callable[[], object]] = deque()
        self.delay_ms = 0.0

    def send(self, call: Callable[[], object]) -> None:
        """Make a call after the delay."""
        now_ms = self._clock.now_ms()
        self._due_ms = max(now_ms + self.delay_ms, self._due_ms)
        if self._due_ms <= now_ms and not self._calls:
            call()
        else:
            # A clock need not keep the order of calls that are due at one moment: each timer
            # delivers the oldest call, whichever it was set for.
            self._calls.append(call)
            self._clock.call_later(self._due_ms - now_ms, self._deliver)

    def hurry(self) -> None:
        """Make at once every call that waits."""
        self._due_ms = 0.0
        while self._calls:
            self._deliver()

    def _deliver(self) -> None:
        if self._calls:  # else it was made in a hurry
            self._calls.popleft()()
