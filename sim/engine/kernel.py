"""The clock, the calendar and the trace of a simulated run: SimPy's environment, extended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any

from simpy import Environment
from simpy.events import NORMAL, URGENT, Event, EventPriority

from watchkeeper.model.trace.trace import NOTHING, Row
from watchkeeper.sim.engine.latency_profile import Profile
from watchkeeper.sim.engine.random_streams import Streams

EPOCH_US = 1_320_000_000_000_000
"""When a run begins, for clocks: a day of 2011."""


class Kernel(Environment):
    """The clock of a run (integer microseconds), its random streams and its trace."""

    def __init__(self, streams: Streams, profile: Profile) -> None:
        super().__init__(0)
        self.streams = streams
        self.profile = profile
        self.calendar: list[Any] = self._queue
        self.numbers = self._eid
        """SimPy's queue and the counter that keeps entries of one moment in the order in which
        they were made."""
        self.rows: list[Row] = []
        self.now_us = 0
        """The time. SimPy types it as a float; here it is always an integer."""
        self.operations = 0
        """ZooKeeper operations answered so far, for the statistics."""

    @property
    def now(self) -> int:
        """The time, as SimPy names it."""
        return self.now_us

    # Every calendar entry is a call and its argument: a tuple is much cheaper than a SimPy
    # event, and few entries are events.

    def after(self, delay_us: int, call: Callable[[Any], object], argument: Any) -> None:
        """Call a function with its argument after a delay."""
        due: Any = (self.now_us + delay_us, NORMAL, next(self.numbers), call, argument)
        heappush(self.calendar, due)

    def at(self, due_us: int, call: Callable[[Any], object], argument: Any) -> None:
        """Call a function with its argument at a moment of the run."""
        due: Any = (due_us, NORMAL, next(self.numbers), call, argument)
        heappush(self.calendar, due)

    def at_once(self, call: Callable[[Any], object], argument: Any) -> None:
        """Call a function before every other entry of this moment."""
        due: Any = (self.now_us, URGENT, next(self.numbers), call, argument)
        heappush(self.calendar, due)

    def schedule(
        self,
        event: Event,
        priority: EventPriority = NORMAL,
        delay: int = 0,  # type: ignore[override]
    ) -> None:
        """Let an event happen after a delay: what SimPy calls for its own events."""
        due: Any = (self.now_us + delay, priority, next(self.numbers), self._let_happen, event)
        heappush(self.calendar, due)

    def step(self) -> None:
        """Process the next calendar entry."""
        due: Any = heappop(self.calendar)
        self.now_us = due[0]
        due[3](due[4])

    def _let_happen(self, event: Any) -> None:
        """Run the callbacks of an event that is due."""
        callbacks, event.callbacks = event.callbacks, None
        for callback in callbacks:
            callback(event)
        if not event._ok and not hasattr(event, "_defused"):
            raise event._value

    def run_until(self, end_us: int) -> None:
        """Process every entry that is due before this moment, and set the clock to it."""
        queue: Any = self.calendar
        while queue and queue[0][0] < end_us:
            self.now_us, _, _, call, argument = heappop(queue)
            call(argument)
        self.now_us = end_us

    def settle(self, event: Event, value: Any) -> None:
        """Trigger an event now, without a calendar entry.

        `Event.succeed` would put it behind every other entry of this moment; a program
        sees a reply as soon as it has arrived.
        """
        event._ok = True
        event._value = value
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
        for callback in callbacks:
            callback(event)

    def write(
        self,
        node: str,
        kind: str,
        detail: Mapping[str, Any] = NOTHING,
        *,
        session: int = 0,
        group: str = "",
        topic: str = "",
        partition: str = "",
        zxid: int = 0,
    ) -> None:
        """Write an event into the trace."""
        self.rows.append(
            (self.now_us, node, kind, session, group, topic, partition, zxid, detail)
        )
