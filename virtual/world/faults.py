"""The faults that a campaign draws, and the plan of one run.

A `Fault` says what may strike; a `Strike` is one blow with everything drawn: when, for how long,
at which process. A plan is a list of strikes, so a failing run is shrunk by leaving some out, and
is written down as it is.

A strike comes with the n-th request that the clients send, or a moment after it. Coordination
code works in bursts of milliseconds and waits for seconds in between: a moment that is drawn
evenly would fall into the waiting. How many requests there are is known from a run without
faults.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from random import Random
from typing import Any

LONGEST_WAIT_S = 0.02
"""How long after its request a strike comes at most."""


class FaultKind(StrEnum):
    """What may strike."""

    LOST_REPLY = "lost reply"
    LOST_REQUEST = "lost request"
    LATE_REQUEST = "late request"
    EXPIRE = "expire"
    DISCONNECT = "disconnect"
    CUT = "cut"
    DELAY = "delay"
    PAUSE = "pause"
    CRASH = "crash"
    CLOCK_SKEW = "clock skew"
    LAG = "lag"
    LEADER_LOSS = "leader loss"
    QUORUM_LOSS = "quorum loss"


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault, with its bounds."""

    kind: FaultKind
    most: int = 1
    """How many times it strikes in one run at most."""
    shortest_s: float = 0.0
    longest_s: float = 0.0
    """For how long it lasts."""
    operation: str | None = None
    """The operation that it is aimed at, as `create`; None for any."""
    path: str | None = None
    """The path that it is aimed at, with `*` for any text; None for any."""
    victims: tuple[str, ...] = ()
    """The processes that it may strike; empty for all."""
    one_way: bool = False
    restarts: bool = False

    @property
    def needs_servers(self) -> bool:
        """Whether it strikes an ensemble of several servers."""
        return self.kind in (FaultKind.LAG, FaultKind.LEADER_LOSS)

    @property
    def is_aimed(self) -> bool:
        """Whether it strikes a request."""
        return self.kind in AIMED


AIMED = (FaultKind.LOST_REPLY, FaultKind.LOST_REQUEST, FaultKind.LATE_REQUEST)


def lost_reply(*, operation: str | None = None, path: str | None = None, most: int = 1) -> Fault:
    """A request takes effect, and its reply is lost together with the connection."""
    return Fault(FaultKind.LOST_REPLY, most, operation=operation, path=path)


def lost_request(
    *, operation: str | None = None, path: str | None = None, most: int = 1
) -> Fault:
    """A request is lost together with the connection."""
    return Fault(FaultKind.LOST_REQUEST, most, operation=operation, path=path)


def late_request(
    *,
    operation: str | None = None,
    path: str | None = None,
    longest_s: float = 2.0,
    most: int = 1,
) -> Fault:
    """The connection breaks, and the request takes effect some time later all the same."""
    return Fault(FaultKind.LATE_REQUEST, most, 0.001, longest_s, operation=operation, path=path)


def expire(*, victims: tuple[str, ...] = (), most: int = 1) -> Fault:
    """The server ends the session of a process; its client learns it afterwards."""
    return Fault(FaultKind.EXPIRE, most, victims=victims)


def disconnect(*, longest_s: float = 2.0, victims: tuple[str, ...] = (), most: int = 1) -> Fault:
    """Connections of a process break, and new ones are refused for a while."""
    return Fault(FaultKind.DISCONNECT, most, 0.0, longest_s, victims=victims)


def cut(
    *,
    shortest_s: float = 0.1,
    longest_s: float = 15.0,
    one_way: bool = False,
    victims: tuple[str, ...] = (),
    most: int = 1,
) -> Fault:
    """A process and all servers are cut off from each other; what was sent arrives afterwards."""
    return Fault(FaultKind.CUT, most, shortest_s, longest_s, victims=victims, one_way=one_way)


def delay(*, longest_s: float = 3.0, victims: tuple[str, ...] = (), most: int = 1) -> Fault:
    """The links of a process are slow for a while: up to half a second a message."""
    return Fault(FaultKind.DELAY, most, 0.1, longest_s, victims=victims)


def pause(
    *,
    shortest_s: float = 0.5,
    longest_s: float = 15.0,
    victims: tuple[str, ...] = (),
    most: int = 1,
) -> Fault:
    """A process stands still, as in a collection of garbage, and goes on."""
    return Fault(FaultKind.PAUSE, most, shortest_s, longest_s, victims=victims)


def crash(*, restarts: bool = False, victims: tuple[str, ...] = (), most: int = 1) -> Fault:
    """A process ends at once, without its `finally` blocks; with `restarts` it begins anew."""
    return Fault(FaultKind.CRASH, most, 0.1, 5.0, victims=victims, restarts=restarts)


def clock_skew(*, longest_s: float = 60.0, victims: tuple[str, ...] = (), most: int = 1) -> Fault:
    """The wall clock of a process jumps, forwards or back."""
    return Fault(FaultKind.CLOCK_SKEW, most, 0.0, longest_s, victims=victims)


def lag(*, longest_s: float = 3.0, most: int = 1) -> Fault:
    """A follower applies late what is committed; it needs several servers."""
    return Fault(FaultKind.LAG, most, 0.1, longest_s)


def leader_loss(*, longest_s: float = 5.0, most: int = 1) -> Fault:
    """The leader dies and comes back; it needs several servers."""
    return Fault(FaultKind.LEADER_LOSS, most, 0.1, longest_s)


def quorum_loss(*, longest_s: float = 5.0, most: int = 1) -> Fault:
    """So many servers die that the others are no majority, and come back."""
    return Fault(FaultKind.QUORUM_LOSS, most, 0.1, longest_s)


@dataclass(frozen=True, slots=True)
class Strike:
    """One blow of a fault."""

    fault: Fault
    request: int
    """With which request of the run it comes, counted from 1; 0 for the begin."""
    after_s: float
    """How long after that request."""
    lasts_s: float
    aim: float
    """Between 0 and 1: which of the possible victims it strikes."""

    def to_json(self) -> dict[str, Any]:
        """The value that `strike_of` reads back."""
        return asdict(self)


def strike_of(value: dict[str, Any]) -> Strike:
    """Read a strike; raises KeyError, TypeError or ValueError for anything else."""
    fault = dict(value["fault"])
    fault["kind"] = FaultKind(fault["kind"])
    fault["victims"] = tuple(fault["victims"])
    return replace(Strike(**{**value, "fault": Fault(**fault)}))


def draw_plan(faults: tuple[Fault, ...], chance: Random, requests: int) -> tuple[Strike, ...]:
    """Draw the strikes of one run, at least one if there are faults.

    `requests` is how many requests a run has; a third of the strikes comes with one of the
    first ten of them, or of all: begins are short, and much goes wrong there.
    """
    counts = [int(chance.random() * (fault.most + 1)) for fault in faults]
    if faults and not any(counts):
        counts[int(chance.random() * len(faults))] = 1
    return tuple(
        _draw(fault, chance, requests)
        for fault, count in zip(faults, counts, strict=True)
        for _ in range(count)
    )


def _draw(fault: Fault, chance: Random, requests: int) -> Strike:
    reach = min(requests, 10) if chance.random() < 1 / 3 else requests
    request = 1 + int(chance.random() * max(reach, 1))
    after_s = 0.0 if fault.is_aimed else chance.random() ** 3 * LONGEST_WAIT_S
    span_s = fault.longest_s - fault.shortest_s
    lasts_s = fault.shortest_s + chance.random() ** 2 * span_s
    return Strike(fault, request, round(after_s, 6), round(lasts_s, 6), chance.random())
