"""The programs that measure a ZooKeeper, run in the simulation and live.

`asker` sends one request after the other and emits an event for each phase; `watcher` waits
for the changes that the asker makes; each `sleeper` creates an ephemeral and is silent from
then on, and `observer` is notified when these are deleted. Every duration is read from the
trace (`watchkeeper.model.calibration.latency`), so that a real ZooKeeper and a simulated one
are measured alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from watchkeeper.model.actor.effects import close_session, emit, new_session, next_event, sleep
from watchkeeper.model.actor.errors import ZooKeeperError
from watchkeeper.model.actor.events import Fired, SessionEvent, WatchEventType
from watchkeeper.model.actor.operations import Operation, ZooKeeper
from watchkeeper.model.actor.program import Ended

ASKER, WATCHER, SLEEPER, OBSERVER = "asker", "watcher", "sleeper", "observer"
"""The roles, which are groups too: `sleeper/3` is the fourth of them."""

WARM_UP = "warm up"
"""The phase before any sample counts."""

PHASE = "measures"
"""The kind of event with which the asker reports its phase."""

DATA = b"x" * 100
"""About as much as a registration or an offset holds."""
ZNODES = 16
"""How many znodes the asker reads and writes in turn."""
LOOK_MS = 20
"""How often one program checks whether the other is ready."""
APART_MS = 3
"""Time between two watched changes: longer than an event takes to arrive."""
ARMED_AT_ONCE = 200

READY, WATCHED, CROWD, ASLEEP = "/ready", "/watched", "/crowd", "/asleep"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    warm: int
    """Reads and writes before the first that counts: a server is slow at first."""
    singles: int
    """Single reads, and single writes."""
    others: int
    """Single creates, deletes and small multis."""
    batches: int
    """Pipelined batches of reads, and of writes."""
    in_flight: int
    """Requests in such a batch."""
    multis: int
    """Multis of each size."""
    multi_sizes: tuple[int, ...]
    watched: int
    """Single changes, each of which fires one watch."""
    crowds: int
    """Multis that fire a watch with each of their operations."""
    crowd: int
    """Operations of such a multi."""
    sessions: int
    """Sessions that are left to expire."""

    def shared_by(self, askers: int) -> Sizes:
        """The sizes for each of several askers, so that together they do about this much."""
        names = ("warm", "singles", "others", "batches", "multis")
        parts = {name: -(-getattr(self, name) // askers) for name in names}
        return replace(self, **parts)


THOROUGH = Sizes(3000, 6000, 1500, 60, 100, 20, (10, 100, 1000), 400, 20, 100, 48)
QUICK = Sizes(600, 700, 150, 12, 100, 6, (10, 100), 80, 8, 50, 16)


@dataclass(frozen=True)
class Procedure:
    """The program of every role; `me` selects the role."""

    sizes: Sizes
    is_watched: bool = True
    """Whether there is a watcher, so that the asker waits for it and fires its watches."""

    async def turn(self, zk: ZooKeeper, me: Any, state: Any) -> Ended:
        """Do the work of a role, and end; an error ends the measurement."""
        role, _, number = me.node.partition("/")
        try:
            await new_session()
            if role == ASKER:
                await self._ask(zk, f"/{ASKER}-{number}")
            elif role == WATCHER:
                await self._watch(zk)
            elif role == SLEEPER:
                await self._fall_silent(zk, int(number))
            else:
                await self._observe(zk)
            await close_session()
        except ZooKeeperError as error:
            return Ended(str(error), failed=True)
        return Ended("all is measured")

    # --- asking ------------------------------------------------------------------------

    async def _ask(self, zk: ZooKeeper, home: str) -> None:
        sizes = self.sizes
        await zk.create(home)
        for at in range(ZNODES):
            await zk.create(f"{home}/{at}", DATA)
        await emit(PHASE, what=WARM_UP)
        for turn in range(sizes.warm):
            await zk.get(f"{home}/{turn % ZNODES}")
            await zk.set(f"{home}/{turn % ZNODES}", DATA)
            if turn % 4 == 0:
                await zk.create(f"{home}/new", DATA)
                await zk.multi([zk.delete(f"{home}/new"), zk.set(f"{home}/0", DATA)])
        await emit(PHASE, what="round trip")
        for turn in range(sizes.singles):
            await zk.get(f"{home}/{turn % ZNODES}")
        for turn in range(sizes.singles):
            await zk.set(f"{home}/{turn % ZNODES}", DATA)
        for turn in range(sizes.others):
            await zk.create(f"{home}/new", DATA)
            await zk.delete(f"{home}/new")
            await zk.multi([zk.set(f"{home}/{(turn + at) % ZNODES}", DATA) for at in range(3)])
        await self._ask_many(zk, home)
        if self.is_watched:
            await self._fire(zk, home)

    async def _ask_many(self, zk: ZooKeeper, home: str) -> None:
        sizes = self.sizes
        places = [f"{home}/{at % ZNODES}" for at in range(sizes.in_flight)]
        reads: list[Operation[Any]] = [zk.get(path) for path in places]
        writes: list[Operation[Any]] = [zk.set(path, DATA) for path in places]
        await emit(PHASE, what="pipelined read")
        for _ in range(sizes.batches):
            await zk.pipelined(reads)
        await emit(PHASE, what="pipelined write")
        for _ in range(sizes.batches):
            await zk.pipelined(writes)
        for size in sizes.multi_sizes:
            await emit(PHASE, what=f"multi of {size}")
            for _ in range(sizes.multis):
                await zk.multi([zk.set(f"{home}/{at % ZNODES}", DATA) for at in range(size)])

    async def _fire(self, zk: ZooKeeper, home: str) -> None:
        while await zk.exists(READY) is None:
            await sleep(LOOK_MS)
        await emit(PHASE, what="watched")
        for at in range(self.sizes.watched):
            await zk.create(f"{WATCHED}-{at}", DATA)
            await sleep(APART_MS)
        for turn in range(self.sizes.crowds):
            for what, where in (("unwatched crowd", home), ("watched crowd", "")):
                await emit(PHASE, what=what)
                places = self._crowd(where, turn)
                await zk.multi([zk.create(path, DATA) for path in places])
                await sleep(LOOK_MS)

    def _crowd(self, home: str, turn: int) -> list[str]:
        return [f"{home}{CROWD}-{turn}-{at}" for at in range(self.sizes.crowd)]

    # --- watching ----------------------------------------------------------------------

    async def _watch(self, zk: ZooKeeper) -> None:
        places = [f"{WATCHED}-{at}" for at in range(self.sizes.watched)]
        for turn in range(self.sizes.crowds):
            places += self._crowd("", turn)
        for at in range(0, len(places), ARMED_AT_ONCE):
            some = places[at : at + ARMED_AT_ONCE]
            await zk.pipelined([zk.exists(path, watch=True) for path in some])
        await zk.create(READY)
        for _ in places:
            await next_event()

    # --- falling silent ----------------------------------------------------------------

    async def _fall_silent(self, zk: ZooKeeper, number: int) -> None:
        await zk.create(f"{ASLEEP}-{number}", ephemeral=True)
        while True:
            await next_event()

    async def _observe(self, zk: ZooKeeper) -> None:
        left = [f"{ASLEEP}-{number}" for number in range(self.sizes.sessions)]
        created: set[str] = set()
        for path in left:
            await zk.exists(path, watch=True)
        while left:
            notification = await next_event()
            again: Iterable[str] = ()
            if isinstance(notification, Fired) and notification.what is WatchEventType.DELETED:
                left.remove(notification.path)
            elif isinstance(notification, Fired):
                created.add(notification.path)
                again = (notification.path,)
            elif notification is SessionEvent.CONNECTED:
                again = tuple(left)
            for path in again:
                is_there = await zk.exists(path, watch=True) is not None
                # deleted while no watch was set: no sample, and nothing to wait for
                if path in created and not is_there:
                    left.remove(path)
