"""Processes that are held back: nothing is asked, heard or found out before its cue comes.

Everything else is as ever: the same clients, servers and fetchers. A process *stands* when
it has asked for something that only a cue can answer, or when it is no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from simpy.events import Event

from model.asks import (
    CloseSession,
    Connected,
    FetchExactly,
    FreshId,
    KnownPositions,
    NewSession,
    NextNote,
    Now,
)
from model.describe import described_operation
from model.errors import ConnectionLoss, Failure, SessionExpired
from model.inbox import without_older_notes
from model.operations import Operation, Pipelined
from model.plan import Plan
from sim.client import Client
from sim.driver import REQUESTS, Driver
from sim.ensemble import Ensemble
from sim.fetcher import Fetcher
from sim.held_client import NEVER_US, HeldClient
from sim.kernel import Kernel
from sim.node import Node
from sim.world import World

TIMEOUT_MS = 1_200_000
"""What every session asks for: during a replay none of them ends by itself."""


FETCH_EVERY_US = 1 << 50
"""Messages are read when the schedule says so."""
TICK_US = 60_000_000
"""So long that no session ends by itself."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a process is told of the time, and which name it draws, by its life from 0."""

    now_ms: Callable[[str, int], int]
    fresh_id: Callable[[str, int], str]


class HeldNode(Node):
    """A process with such a client."""

    def connect_to(
        self, ensemble: Ensemble, session_timeout_ms: int, *, resends_watches: bool
    ) -> Client:
        """Give the process its ZooKeeper client."""
        self.client = HeldClient(
            self, ensemble, TIMEOUT_MS * 1000, resends_watches=resends_watches
        )
        return self.client


class HeldDriver(Driver):
    """A program whose asks wait for their cues."""

    told: Told
    """Set by the conductor before anything runs."""

    fetcher: Fetcher | None

    def __init__(self, kernel: Kernel, node: Node, fetcher: Fetcher | None) -> None:
        super().__init__(kernel, node, fetcher)
        self.is_free = False
        self.held: Any = None
        """What it has asked for, and only a cue can answer."""
        self.life = 0
        self.answers: list[Any] = []
        """Those that a batch has got so far."""
        self._known = 0
        self._event: Event | None = None
        self._at_once[Now] = lambda ask: self.told.now_ms(node.name, self.life)
        self._at_once[FreshId] = lambda ask: self.told.fresh_id(node.name, self.life)
        self._at_once[KnownPositions] = lambda ask: self._positions()

    @property
    def client_held(self) -> HeldClient:
        """Its client."""
        assert isinstance(self.node.client, HeldClient), "held processes have held clients"
        return self.node.client

    @property
    def stands(self) -> bool:
        """Whether nothing happens here without a cue."""
        return self.held is not None or not self.node.is_alive

    def _hold(self, ask: Any) -> Event:
        self.held = ask
        self._event = Event(self.kernel)
        return self._event

    def _go_on(self, answer: Any) -> None:
        """The cue has come: give the answer."""
        event, self._event, self.held = self._event, None, None
        if event is not None and not event.triggered:
            self.kernel.settle(event, answer)

    def let_go(self) -> None:
        """From now on, be like any other program."""
        self.is_free = True
        ask = self.held
        if isinstance(ask, REQUESTS):
            self._finish_request(ask)
        elif isinstance(ask, FetchExactly):
            self.stop_fetching()
        elif isinstance(ask, CloseSession):
            self.close_session()
        elif isinstance(ask, NextNote):
            self.held = None
            self._wait_on(ask)

    def _finish_request(self, ask: Any) -> None:
        """Ask for what is left of a request."""
        if isinstance(ask, Pipelined) and self.answers:
            ask = Pipelined(ask.operations[len(self.answers) :])
        before = list(self.answers)

        def answered(answer: Any, zxid: int) -> None:
            if isinstance(ask, Pipelined) and type(answer) is tuple:
                answer = (*before, *answer)
            self.finish(answer)

        self.client_held.request(ask, answered)

    def _wait_on(self, ask: NextNote) -> None:
        """Wait for a note as any other program does."""
        if ask.timeout_ms is not None and self._event is not None:
            self.kernel.after(ask.timeout_ms * 1000, self._rung, self._event)

    # --- requests ----------------------------------------------------------------------

    def _operate(self, ask: Any) -> Event:
        if self.is_free or not isinstance(ask, REQUESTS) or self.client_held.state != "connected":
            return super()._operate(ask)
        self._busy()
        self._write("asks", described_operation(ask))
        self.answers = []
        return self._hold(ask)

    @property
    def next_operation(self) -> Operation[Any] | None:
        """What it asks of ZooKeeper next, if it does."""
        if isinstance(self.held, Pipelined):
            operation: Operation[Any] = self.held.operations[len(self.answers)]
            return operation
        return self.held if isinstance(self.held, Operation) else None

    def take_answer(self, answer: Any) -> None:
        """Take the answer to the next operation; the program sees it when it is the last."""
        if not self.answers:
            self._known = len(self.node.inbox)
        if isinstance(self.held, Pipelined):
            self.answers.append(answer)
            if len(self.answers) == len(self.held.operations):
                self.finish(tuple(self.answers))
        else:
            self.finish(answer)

    def finish(self, answer: Any) -> None:
        """Let the program see its answer, and what was sent before that."""
        ask = self.held
        if type(answer) is Failure and isinstance(ask, Pipelined):
            answer = Failure(answer.kind, "", sent=answer.sent)
        if not (type(answer) is Failure and answer.kind in (ConnectionLoss, SessionExpired)):
            self.client_held.hear_all()
        self.node.inbox = without_older_notes(self.node.inbox, ask, answer, self._known)
        self._note_answer(ask, described_operation(ask)["op"], answer, 0)
        self._go_on(answer)

    # --- notes -------------------------------------------------------------------------

    def _next_note(self, ask: NextNote) -> Event | None:
        if self.is_free or self.node.inbox:
            return super()._next_note(ask)
        if ask.timeout_ms != 0 and not self._is_idle:
            self._is_idle = True
            self._write("waits")
        event = self._hold(ask)
        self.node.when_note(lambda: self.kernel.after(0, self._rung, event))
        return event

    def _rung(self, event: Event) -> None:
        """A note has come, or the time is up, for whoever waits for this event."""
        if event is self._event:
            self._go_on(None)

    def answer_poll(self) -> bool:
        """Say that there is no note to one that only looks, where nothing was kept back."""
        if (
            isinstance(self.held, NextNote)
            and self.held.timeout_ms == 0
            and not self.client_held.withheld
        ):
            self._go_on(None)
            return True
        return False

    def hear_nothing(self) -> None:
        """The time is up, or nothing has come yet."""
        self._go_on(None)

    # --- sessions and fetching ---------------------------------------------------------

    def _new_session(self, ask: NewSession) -> Event:
        return self._unless_cut(ask, super()._new_session(ask))

    def _connected(self, ask: Connected) -> Event:
        return self._unless_cut(ask, super()._connected(ask))

    def _unless_cut(self, ask: Any, event: Event) -> Event:
        """Whoever waits for a connection that nobody makes stands, until it is there."""
        client = self.client_held
        if not event.triggered and client.blocked_until_us == NEVER_US:
            self.held = ask
            assert event.callbacks is not None, "an event that is to come can be waited for"
            event.callbacks.append(lambda _: setattr(self, "held", None))
        return event

    def _close_session(self, ask: CloseSession) -> Event:
        client = self.client_held
        if self.is_free or client.state != "connected":
            return super()._close_session(ask)
        if client.hung_up is not None:
            client.shut()
            return super()._close_session(ask)
        return self._hold(ask)

    def close_session(self) -> None:
        """Say farewell."""
        self.held = CLOSING
        self.client_held.close(self._go_on)

    def _fetch_exactly(self, ask: FetchExactly) -> Event | None:
        wanted = {fetch.partition for fetch in ask.fetches}
        if self.is_free or self.fetcher is None or wanted.issuperset(self.fetcher.current):
            return super()._fetch_exactly(ask)
        return self._hold(ask)

    def stop_fetching(self) -> None:
        """Fetch no longer what is to be stopped."""
        event = super()._fetch_exactly(self.held)
        if event is None or event.callbacks is None:
            self._go_on(None)
        else:
            self.held = None
            event.callbacks.append(lambda _: self._go_on(None))

    def _positions(self) -> Any:
        if self.fetcher is None:
            return ()
        self.fetcher.learn_places()
        return tuple(sorted(self.fetcher.known_positions()))


CLOSING = object()
"""What a process has asked for that is saying farewell."""


class HeldWorld(World):
    """A world of such processes."""

    NODE = HeldNode
    DRIVER = HeldDriver

    @property
    def held_drivers(self) -> list[HeldDriver]:
        """The drivers of all processes there have been."""
        return [one for one in self.drivers.values() if isinstance(one, HeldDriver)]


def stretched(plan: Plan) -> Plan:
    """A plan in which nothing happens by itself."""
    return replace(
        plan,
        timeline=(),
        clusters=tuple(
            replace(one, zookeeper=replace(one.zookeeper, tick_us=TICK_US))
            for one in plan.clusters
        ),
        groups=tuple(replace(one, fetch_every_us=FETCH_EVERY_US) for one in plan.groups),
    )
