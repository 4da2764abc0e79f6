"""Processes that are stepped: each request, notification and fault waits for its replay action.

Everything else is as in any simulation: the same clients, servers and fetchers. A process is
*blocked* when it waits for something that only an action can bring, or when it has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from simpy.events import Event

from watchkeeper.model.actor.effects import (
    CloseSession,
    Connected,
    FetchExactly,
    FreshId,
    KnownPositions,
    NewSession,
    NextEvent,
    Now,
)
from watchkeeper.model.actor.errors import ConnectionLoss, Failure, SessionExpired
from watchkeeper.model.actor.events import Command
from watchkeeper.model.actor.inbox import without_superseded
from watchkeeper.model.actor.operations import Operation, Pipelined
from watchkeeper.model.actor.orders import RESULTS
from watchkeeper.model.actor.tasks import Put
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.text import described_operation
from watchkeeper.sim.brokers.rate_fetcher import Fetcher
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.process.driver import REQUESTS, AnswerFollows, Driver
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.replay.stepped_client import NEVER_US, SteppedClient
from watchkeeper.sim.world import World
from watchkeeper.sim.zookeeper.client import Client
from watchkeeper.sim.zookeeper.ensemble import Ensemble

TIMEOUT_MS = 1_200_000
"""The timeout that sessions request: none of them ends by itself during a replay."""
FETCH_EVERY_US = 1 << 50
"""No fetcher reads by itself: messages are read when the schedule says so."""
TICK_US = 60_000_000
"""The tick of the servers, which grant at most twenty ticks: enough for TIMEOUT_MS."""


@dataclass(frozen=True, slots=True)
class ScheduledValues:
    """The clock and the identifier of each life of a process; lives count from 0."""

    now_ms: Callable[[str, int], int]
    fresh_id: Callable[[str, int], str]


class SteppedNode(Node):
    """A process with a stepped client."""

    def connect_to(
        self, ensemble: Ensemble, session_timeout_ms: int, *, resends_watches: bool
    ) -> Client:
        """Give the process its ZooKeeper client."""
        self.client = SteppedClient(
            self, ensemble, TIMEOUT_MS * 1000, resends_watches=resends_watches
        )
        return self.client


class SteppedDriver(Driver):
    """Drives a program whose effects wait for their replay steps."""

    values: ScheduledValues
    """Set by the replayer before the program runs."""

    fetcher: Fetcher | None

    def __init__(self, kernel: Kernel, node: Node, fetcher: Fetcher | None) -> None:
        super().__init__(kernel, node, fetcher)
        self.is_free = False
        """Whether it was released and behaves as any other driver."""
        self.pending: Any = None
        """The effect that only a replay step can answer; None while the program runs."""
        self.life = 0
        self.answers: list[Any] = []
        """The answers that the pending batch has received so far."""
        self._known = 0
        """The length of the inbox when the first of these answers arrived."""
        self._event: Event | None = None
        self._at_once[Now] = lambda effect: self.values.now_ms(node.name, self.life)
        self._at_once[FreshId] = lambda effect: self.values.fresh_id(node.name, self.life)
        self._at_once[KnownPositions] = lambda effect: self._positions()
        self._at_once[Put] = self._put
        self.awaits = 0
        """The ticket of the order whose result the application waits for; 0 for none."""

    @property
    def stepped_client(self) -> SteppedClient:
        """The client of the process."""
        assert isinstance(self.node.client, SteppedClient), (
            "a stepped process has a stepped client"
        )
        return self.node.client

    @property
    def is_blocked(self) -> bool:
        """Whether the process needs a replay step to go on, or its program has ended."""
        return self.pending is not None or not self.node.runs_program

    def _block(self, effect: Any) -> Event:
        self.pending = effect
        self._event = Event(self.kernel)
        return self._event

    def _resume(self, answer: Any) -> None:
        """Answer the pending effect."""
        event, self._event, self.pending = self._event, None, None
        if event is not None and not event.triggered:
            self.kernel.settle(event, answer)

    def release(self) -> None:
        """Complete the pending effect, and from now on behave as any other driver."""
        self.is_free = True
        effect = self.pending
        if isinstance(effect, REQUESTS):
            self._finish_request(effect)
        elif isinstance(effect, FetchExactly):
            self.stop_fetching()
        elif isinstance(effect, CloseSession):
            self.close_session()
        elif isinstance(effect, NextEvent):
            self.pending = None
            self._wait_on(effect)

    def _finish_request(self, effect: Any) -> None:
        """Send the operations of a request that have no answer yet."""
        if isinstance(effect, Pipelined) and self.answers:
            effect = Pipelined(effect.operations[len(self.answers) :])
        earlier = list(self.answers)

        def answered(answer: Any, zxid: int) -> None:
            if isinstance(effect, Pipelined) and type(answer) is tuple:
                answer = (*earlier, *answer)
            self.finish(answer)

        self.stepped_client.request(effect, answered)

    def _wait_on(self, effect: NextEvent) -> None:
        """Start the timeout of a wait; a notification ends the wait as before."""
        if effect.timeout_ms is not None and self._event is not None:
            self.kernel.after(effect.timeout_ms * 1000, self._woken, self._event)

    # --- requests ----------------------------------------------------------------------

    def _operate(self, effect: Any) -> Event | AnswerFollows:
        if (
            self.is_free
            or not isinstance(effect, REQUESTS)
            or self.stepped_client.state != "connected"
        ):
            return super()._operate(effect)
        self._busy()
        self._write(EventKind.REQUEST, described_operation(effect))
        self.answers = []
        return self._block(effect)

    @property
    def next_operation(self) -> Operation[Any] | None:
        """The pending ZooKeeper operation, of a batch the first without an answer; else None."""
        if isinstance(self.pending, Pipelined):
            operation: Operation[Any] = self.pending.operations[len(self.answers)]
            return operation
        return self.pending if isinstance(self.pending, Operation) else None

    def take_answer(self, answer: Any) -> None:
        """Store the answer of the next operation; the last answer of a batch completes it."""
        if not self.answers:
            self._known = len(self.node.inbox)
        if isinstance(self.pending, Pipelined):
            self.answers.append(answer)
            if len(self.answers) == len(self.pending.operations):
                self.finish(tuple(self.answers))
        else:
            self.finish(answer)

    def finish(self, answer: Any) -> None:
        """Give the program its answer, after the events that were sent before it."""
        effect = self.pending
        if type(answer) is Failure and isinstance(effect, Pipelined):
            answer = Failure(answer.kind, "", sent=answer.sent)
        # ZooKeeper keeps the order of events and replies: a program that sees a reply has
        # received every earlier event. A failure made by the client has no place in that order.
        if not (type(answer) is Failure and answer.kind in (ConnectionLoss, SessionExpired)):
            self.stepped_client.deliver_all()
        self.node.inbox = without_superseded(self.node.inbox, effect, answer, self._known)
        self._note_answer(effect, described_operation(effect), answer, 0)
        self._resume(answer)

    # --- notifications -----------------------------------------------------------------

    def _next_event(self, effect: NextEvent) -> Event | AnswerFollows | None:
        if self.is_free or self.node.inbox:
            return super()._next_event(effect)
        if effect.timeout_ms != 0 and not self._is_idle:
            self._is_idle = True
            self._write(EventKind.WAITING)
        event = self._block(effect)
        self.node.waiter = lambda: self.kernel.after(0, self._woken, event)
        return event

    def _woken(self, event: Event) -> None:
        """Resume the wait that this event belongs to, unless it is over already."""
        if event is self._event:
            self._resume(None)

    def answer_poll(self) -> bool:
        """Answer a poll with nothing if no event is withheld; return whether it was a poll."""
        if (
            isinstance(self.pending, NextEvent)
            and self.pending.timeout_ms == 0
            and not self.stepped_client.withheld
        ):
            self._resume(None)
            return True
        return False

    def wake_without_event(self) -> None:
        """End a wait without an event: its time is up, or a poll found nothing."""
        self._resume(None)

    # --- sessions and fetching ---------------------------------------------------------

    def _new_session(self, effect: NewSession) -> Event:
        return self._blocked_if_cut(effect, super()._new_session(effect))

    def _connected(self, effect: Connected) -> Event:
        return self._blocked_if_cut(effect, super()._connected(effect))

    def _blocked_if_cut(self, effect: Any, event: Event) -> Event:
        """Count the process as blocked while it waits for a connection that only a step makes."""
        client = self.stepped_client
        if not event.triggered and client.blocked_until_us == NEVER_US:
            self.pending = effect
            assert event.callbacks is not None, "an event that is to come can be waited for"
            event.callbacks.append(self._unblock)
        return event

    def _unblock(self, _: Event) -> None:
        self.pending = None

    def _close_session(self, effect: CloseSession) -> Event:
        client = self.stepped_client
        if self.is_free or client.state != "connected":
            return super()._close_session(effect)
        if client.closed is not None:
            client.shut()
            return super()._close_session(effect)
        return self._block(effect)

    def close_session(self) -> None:
        """Send the request that closes the session."""
        self.pending = CLOSING
        self.stepped_client.close(self._resume)

    def _fetch_exactly(self, effect: FetchExactly) -> Event | None:
        # Only to stop a fetch takes a step of its own; to begin one concerns no other process.
        partitions = {fetch.partition for fetch in effect.fetches}
        if self.is_free or self.fetcher is None or partitions.issuperset(self.fetcher.current):
            return super()._fetch_exactly(effect)
        return self._block(effect)

    def stop_fetching(self) -> None:
        """Perform the pending change of fetched partitions."""
        event = super()._fetch_exactly(self.pending)
        if event is None or event.callbacks is None:
            self._resume(None)
        else:
            self.pending = None
            event.callbacks.append(lambda _: self._resume(None))

    # --- the application ---------------------------------------------------------------

    def order(self, order: Command) -> None:
        """Give the program an order of its application, which waits for the result."""
        self.awaits = order.ticket
        self.node.deliver(order)

    def _put(self, effect: Put) -> bool:
        assert effect.queue == RESULTS, "the application is the only task of a stepped process"
        self.awaits = 0
        return True

    def _positions(self) -> Any:
        if self.fetcher is None:
            return ()
        self.fetcher.learn_places()
        return tuple(sorted(self.fetcher.known_positions()))


CLOSING = object()
"""The pending effect of a process whose session is being closed."""


class SteppedWorld(World):
    """A simulated world of stepped processes."""

    NODE = SteppedNode
    DRIVER = SteppedDriver

    @property
    def stepped_drivers(self) -> list[SteppedDriver]:
        """The drivers of all processes that were ever started."""
        return [driver for driver in self.drivers.values() if isinstance(driver, SteppedDriver)]


def stretched(plan: Plan) -> Plan:
    """Return the plan without a timeline and with times so long that nothing else happens.

    Brokers store no messages there: a message is read when the schedule says so.
    """
    return replace(
        plan,
        timeline=(),
        clusters=tuple(
            replace(cluster, zookeeper=replace(cluster.zookeeper, tick_us=TICK_US), storage=None)
            for cluster in plan.clusters
        ),
        groups=tuple(replace(group, fetch_every_us=FETCH_EVERY_US) for group in plan.groups),
    )
