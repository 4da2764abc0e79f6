"""A process: its program, its ZooKeeper client, its inbox and its clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from simpy.events import Event

from watchkeeper.model.actor.events import Fired, Notification, SessionEvent
from watchkeeper.model.actor.program import Program
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.sim.engine.kernel import EPOCH_US, Kernel
from watchkeeper.sim.zookeeper.client import Client
from watchkeeper.sim.zookeeper.ensemble import Ensemble

LOOKS_FIRST_PERCENT = 25
"""How often, after a pause, the client reads its socket before the program runs."""


class Node:
    """A process on a machine of its own."""

    def __init__(self, kernel: Kernel, name: str, program: Program, *, group: str = "") -> None:
        self.kernel = kernel
        self.name = name
        self.program = program
        self.group = group
        self.client: Client | None = None
        self.is_paused = False
        self.is_deaf = False
        """Paused, or just awake and not yet aware of what has arrived meanwhile."""
        self.is_alive = False
        self.runs_program = False
        """Whether the program runs, or will when a pause is over."""
        self.is_abandoned = False
        """Whether the program is over and the process goes on: its client stays connected, and
        no program reads the inbox."""
        self.skew_us = 0
        self._skewed: FaultEffect | None = None
        self.inbox: deque[Notification] = deque()
        self.waiter: Callable[[], None] | None = None
        """Called when the next notification arrives, and only then."""
        self._resumed: Event | None = None
        self._on_awake: list[Callable[[], None]] = []
        self._wakings = 0

    def connect_to(
        self, ensemble: Ensemble, session_timeout_ms: int, *, resends_watches: bool
    ) -> Client:
        """Give the process its ZooKeeper client."""
        timeout_us = session_timeout_ms * 1000
        self.client = Client(self, ensemble, timeout_us, resends_watches=resends_watches)
        return self.client

    def begin(self) -> None:
        """The process is there."""
        self.is_alive = self.runs_program = True

    # --- the inbox ---------------------------------------------------------------------

    def deliver(self, notification: Notification) -> None:
        """Put a notification into the inbox and wake the program if it waits for one.

        What arrives for a program that is over is dropped.
        """
        if self.is_abandoned:
            return
        self.inbox.append(notification)
        if isinstance(notification, Fired):
            detail = {"what": notification.what._value_, "path": notification.path}
        elif isinstance(notification, SessionEvent):
            detail = {"what": notification.value}
        else:
            detail = {"what": notification.kind.value, "topic": notification.topic}
        self.kernel.write(self.name, EventKind.NOTIFIED, detail, group=self.group)
        if self.waiter is not None:
            waiter, self.waiter = self.waiter, None
            waiter()

    def empty_inbox(self) -> None:
        """Drop the notifications of an old session; orders of the operator stay."""
        kept = [
            notification
            for notification in self.inbox
            if not isinstance(notification, Fired | SessionEvent)
        ]
        self.inbox = deque(kept)

    # --- pauses ------------------------------------------------------------------------

    def pause(self) -> None:
        """Pause: nothing runs, and what arrives waits in the socket."""
        if self.client is not None:
            self.client.pulse.wake()
            self.client.ensemble.network.wake_fetchers()
        self.is_paused = True
        self.is_deaf = True
        self._wakings += 1

    def resume(self) -> None:
        """Resume. Usually the program runs before the client has read its socket."""
        self.is_paused = False
        chance = self.kernel.streams(f"wake/{self.name}")
        if chance.chance(LOOKS_FIRST_PERCENT):
            self._awake(self._wakings)
        if self._resumed is not None:
            resumed, self._resumed = self._resumed, None
            resumed.succeed()
        if self.is_deaf:
            self.kernel.after(
                chance.draw(self.kernel.profile.wake_lag), self._awake, self._wakings
            )

    def _awake(self, waking: int) -> None:
        if waking != self._wakings:
            return  # paused again meanwhile
        self.is_deaf = False
        waiting, self._on_awake = self._on_awake, []
        for call in waiting:
            call()

    def when_awake(self, call: Callable[[], None]) -> None:
        """Do something once the process is awake and looks at what has arrived."""
        self._on_awake.append(call)

    def until_resumed(self) -> Event:
        """An event that happens when the process goes on."""
        if self._resumed is None:
            self._resumed = Event(self.kernel)
        return self._resumed

    # --- time and death ----------------------------------------------------------------

    def clock_ms(self) -> int:
        """What the clock of this machine says, in milliseconds since 1970."""
        if self._skewed is not None:
            self._skewed.add("clock readings")
        return (self.skew_us + EPOCH_US + self.kernel.now_us) // 1000

    def skewed_by(self, by_us: int, effect: FaultEffect) -> None:
        """From now on the clock is wrong by so much."""
        self.skew_us = by_us
        self._skewed = effect

    def abandon(self) -> None:
        """The program is over; its process keeps the client, and so the session."""
        self.is_abandoned = True
        self.runs_program = False
        self.inbox.clear()
        self.waiter = None

    def kill(self) -> None:
        """The process is gone."""
        self.is_alive = self.runs_program = False
        self.inbox.clear()
        self.waiter = None
        self._on_awake.clear()
        if self.client is not None:
            self.client.shut()
