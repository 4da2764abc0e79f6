"""A process between two observable steps: the effects that only the process itself can see.

`advanced` answers such effects until the program requests something that depends on another
process or on the service: a request, a notification that has not come, a connection. A fetch
begins at once, since that can only bring a conflict nearer. A fetch ends in a step of its
own, since other processes may move before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import reduce
from typing import Any

from msgspec.structs import replace

from watchkeeper.checker.actors.actor_state import ActorState, Fetching
from watchkeeper.checker.actors.compile import CompiledProgram
from watchkeeper.checker.contracts.contracts import Forbidden, NeverWaits
from watchkeeper.model.actor.effects import (
    CloseSession,
    Connected,
    Emit,
    FetchExactly,
    Forget,
    FreshId,
    KnownPositions,
    NewSession,
    NextEvent,
    Now,
    Sleep,
)
from watchkeeper.model.actor.errors import ConnectionLoss, Failure, SessionExpired
from watchkeeper.model.actor.events import Command, CommandKind, Fired, SessionEvent
from watchkeeper.model.actor.inbox import without_superseded
from watchkeeper.model.actor.operations import Operation, Pipelined
from watchkeeper.model.actor.orders import RESULTS
from watchkeeper.model.actor.program import Ended
from watchkeeper.model.actor.tasks import Put
from watchkeeper.model.group.offsets import EARLIEST
from watchkeeper.model.trace.kinds import EventKind

MOST_STEPS = 20_000
EPOCH_MS = 1_600_000_000_000
"""The time on the clocks of the first processes; each further life begins a second later."""
LATER_MS = 500
"""How much later the first life of a process begins that joins during the search."""
BLOCKED = object()
"""Stands for an answer that depends on another process or on the service."""
COMMIT = Command(CommandKind.COMMIT, ticket=1)
"""The order of an application. It waits for the result, so one ticket is enough."""


class Actor:
    """A program as a process that may crash and restart, and the numbers of its sessions."""

    def __init__(
        self,
        name: str,
        compiled: CompiledProgram,
        sessions: tuple[int, ...],
        *,
        pauses_last: bool = False,
        state_after: Callable[[Any, Command], Any] = lambda state, order: state,
        commits_by_hand: bool = False,
        starts_later: bool = False,
        keeps_failures: bool = False,
    ) -> None:
        self.name = name
        self.compiled = compiled
        self.sessions = sessions
        """The session numbers that it may use."""
        self.pauses_last = pauses_last
        """Whether other processes may move during a sleep, and before a session is open."""
        self.state_after = state_after
        """What an order of an earlier life leaves on the disk: the first state after it."""
        self.commits_by_hand = commits_by_hand
        """Whether it has an application, one task, that commits after each message it reads."""
        self.keeps_failures = keeps_failures
        """Whether its state shows that an error has ended a turn."""
        self.begins_ms = EPOCH_MS + (LATER_MS if starts_later else 0)
        """The time on its clock in its first life."""

    def started(self, state: ActorState, life: int) -> ActorState:
        """Return the process after its start, at its first blocking effect."""
        first = reduce(self.state_after, state.orders, self.compiled.program.initial_state)
        started = ActorState(
            "running",
            life,
            self.compiled.root(first),
            orphans=state.orphans,
            late_requests=state.late_requests,
            orders=state.orders,
            raised_epochs=state.raised_epochs,
        )
        return self.advanced(started)

    def now_ms(self, life: int) -> int:
        """Return the time on its clock, which stands still during a life."""
        return self.begins_ms + 1000 * life

    def fresh_id(self, life: int) -> str:
        """Return the identifier that it draws in a life; it is unique to process and life."""
        return f"{self.sessions[0]:x}{life:x}".ljust(32, "0")

    def effect_of(self, state: ActorState) -> Any:
        """Return the effect that its program waits for."""
        return self.compiled.nodes[state.node].effect

    def resumed(self, state: ActorState, answer: Any) -> ActorState:
        """Return the process after an answer, at its next blocking effect."""
        return self.advanced(self._with_answer(state, answer))

    def _with_answer(self, state: ActorState, answer: Any) -> ActorState:
        node = self.compiled.after(state.node, answer)
        failed = state.failed
        if self.keeps_failures and not failed:
            failed = self.compiled.failure_after(state.node, answer)
        return replace(state, node=node, batch=(), known=0, failed=failed)

    def ordered_to_commit(self, state: ActorState) -> ActorState:
        """Return the process after its application has ordered a commit and awaits the result."""
        return self.advanced(replace(state, inbox=(*state.inbox, COMMIT), awaits=COMMIT.ticket))

    def advanced(self, state: ActorState) -> ActorState:
        """Return the process at its next blocking effect: every effect before it is answered."""
        failure = None
        for _ in range(MOST_STEPS):
            effect = self.effect_of(state)
            if isinstance(effect, Ended):
                return self._ended(state)
            if isinstance(effect, Operation | Pipelined):
                failure = _failure_of(state, effect)
                if failure is None:
                    return state
                state = self._with_answer(state, failure)
                continue
            state, answer = _IMMEDIATE[type(effect)](self, state, effect)
            if answer is BLOCKED:
                return state
            failure = answer if type(answer) is Failure else failure
            state = self._with_answer(state, answer)
        place = self.compiled.place(state.node)
        if failure is not None:
            place += f", where every request fails at once with {failure.name},"
        raise NeverWaits(self.name, place)

    def _ended(self, state: ActorState) -> ActorState:
        over = ActorState(
            "over",
            state.life,
            state.node,
            late_requests=state.late_requests,
            orders=state.orders,
            raised_epochs=state.raised_epochs,
        )
        return replace(over, orphans=state.sessions)

    # --- effects -----------------------------------------------------------------------

    def _put(self, state: ActorState, effect: Put) -> tuple[ActorState, Any]:
        """Answer the application; other queues belong to tasks, which are not explored."""
        if effect.queue != RESULTS:
            raise Forbidden(
                f"{self.name} puts into the queue {effect.queue!r}; the only task that a search "
                "has is an application that waits for the results of its orders"
            )
        return replace(state, awaits=0), True

    def _emit(self, state: ActorState, effect: Emit) -> tuple[ActorState, Any]:
        if effect.kind != EventKind.ASSIGNED:
            return state, None
        detail = dict(effect.detail)
        plans = dict(state.plans) | dict(detail["plans"])
        taken = {topic: tuple(names) for topic, names in detail.get("shares", {}).items()}
        shares = dict(state.shares) | taken
        kept = replace(
            state, plans=tuple(sorted(plans.items())), shares=tuple(sorted(shares.items()))
        )
        return kept, None

    def _now(self, state: ActorState, effect: Now) -> tuple[ActorState, Any]:
        return state, self.now_ms(state.life)

    def _fresh_id(self, state: ActorState, effect: FreshId) -> tuple[ActorState, Any]:
        return state, self.fresh_id(state.life)

    def _positions(self, state: ActorState, effect: KnownPositions) -> tuple[ActorState, Any]:
        return state, tuple(
            (fetch.partition, fetch.at) for fetch in state.fetches if fetch.at >= 0
        )

    def _forget(self, state: ActorState, effect: Forget) -> tuple[ActorState, Any]:
        """Forget positions; those of partitions that are still fetched stay."""
        gone = None if effect.partitions is None else frozenset(effect.partitions)
        kept = tuple(
            fetch
            for fetch in state.fetches
            if fetch.stream >= 0 or (gone is not None and fetch.partition not in gone)
        )
        return replace(state, fetches=kept), None

    def _fetch_exactly(self, state: ActorState, effect: FetchExactly) -> tuple[ActorState, Any]:
        wanted = {fetch.partition: fetch for fetch in effect.fetches}
        if any(partition.partition not in wanted for partition in state.fetching):
            return state, BLOCKED
        return fetching_exactly(state, effect), None

    def _next_event(self, state: ActorState, effect: NextEvent) -> tuple[ActorState, Any]:
        if state.inbox:
            return replace(state, inbox=state.inbox[1:]), state.inbox[0]
        if effect.timeout_ms == 0 and not state.channel:
            return state, None
        return state, BLOCKED

    def _sleep(self, state: ActorState, effect: Sleep) -> tuple[ActorState, Any]:
        """A sleep may end at any time: a delay shows as a delay of the next request anyway."""
        return state, BLOCKED if self.pauses_last else None

    def _connected(self, state: ActorState, effect: Connected) -> tuple[ActorState, Any]:
        if state.link == "up":
            return state, None
        if state.link == "expired":
            return state, Failure(SessionExpired)
        return state, BLOCKED

    def _new_session(self, state: ActorState, effect: NewSession) -> tuple[ActorState, Any]:
        """Open a session at once: no other process can observe it before it is used."""
        if state.link == "up":
            return state, None
        if state.link == "down" or self.pauses_last:
            return state, BLOCKED
        return self.with_session(state), None

    def with_session(self, state: ActorState) -> ActorState:
        """Return the process with a new session."""
        taken = {*state.orphans, *(session for session, _ in state.late_requests)}
        session = next(session for session in self.sessions if session not in taken)
        kept = tuple(n for n in state.inbox if not isinstance(n, Fired | SessionEvent))
        return replace(
            state,
            link="up",
            session=session,
            is_alive=True,
            inbox=kept,
            channel=(),
            watches=frozenset(),
            touched=frozenset(),
        )

    def _close_session(self, state: ActorState, effect: CloseSession) -> tuple[ActorState, Any]:
        """Close the session; without a connection it stays open as an orphan."""
        if state.link == "up" and state.is_alive:
            return state, BLOCKED
        return replace(state, link="none", orphans=state.sessions, is_alive=False), None


_IMMEDIATE: dict[type[Any], Any] = {
    Put: Actor._put,
    Emit: Actor._emit,
    Now: Actor._now,
    FreshId: Actor._fresh_id,
    KnownPositions: Actor._positions,
    Forget: Actor._forget,
    FetchExactly: Actor._fetch_exactly,
    NextEvent: Actor._next_event,
    Sleep: Actor._sleep,
    Connected: Actor._connected,
    NewSession: Actor._new_session,
    CloseSession: Actor._close_session,
}


def _failure_of(state: ActorState, effect: Any) -> Failure | None:
    """Return the failure of a request that cannot be sent; None for one that can."""
    if state.link == "up":
        return None
    path = "" if type(effect) is Pipelined else effect.path
    if state.link == "expired":
        return Failure(SessionExpired, path)
    return Failure(ConnectionLoss, path, sent=False)


def fetching_exactly(state: ActorState, effect: FetchExactly) -> ActorState:
    """Return the process fetching these partitions only; those that stop keep their position."""
    places = {fetch.partition: fetch.at for fetch in state.fetches}
    streams = {fetch.partition: fetch.stream for fetch in effect.fetches}
    for fetch in effect.fetches:
        places.setdefault(fetch.partition, 0 if fetch.start <= EARLIEST else max(fetch.start, 0))
    fetches = tuple(
        Fetching(partition, at, streams.get(partition, -1))
        for partition, at in sorted(places.items())
    )
    return replace(state, fetches=fetches)


def with_earlier_events(state: ActorState, effect: Any, answer: Any) -> ActorState:
    """Return the process about to take an answer, with the events sent before it in its inbox.

    ZooKeeper sends the events of a session and its replies in one order.
    """
    notifications = (*state.inbox, *state.channel)
    if notifications:
        notifications = tuple(
            without_superseded(deque(notifications), effect, answer, state.known)
        )
    return replace(state, inbox=notifications, channel=())
