"""What is done to measure a ZooKeeper: programs that both worlds run.

`asker` asks one thing after the other and says what it is at; `watcher` waits for what the
asker changes; each `sleeper` makes an ephemeral and is silent from then on, and `observer`
sees these go. All of it is in the trace: how long anything took is read from there
(`model.measured`), so that a real ZooKeeper and a simulated one are measured alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from model.answers import Fired, Happening
from model.asks import close_session, new_session, next_note, sleep, tell
from model.errors import ZooKeeperError
from model.operations import Operation, ZooKeeper
from model.program import Ended

ASKER, WATCHER, SLEEPER, OBSERVER = "asker", "watcher", "sleeper", "observer"
"""The roles, which are groups too: `sleeper/3` is the fourth of them."""

WARM_UP = "warm up"
"""What it is at before anything counts."""

PHASE = "measures"
"""The kind of event by which the asker says what it is at."""

DATA = b"x" * 100
"""About as much as a registration or an offset holds."""
ZNODES = 16
"""How many znodes the asker reads and writes in turn."""
LOOK_MS = 20
"""How often one looks whether the other is ready."""
APART_MS = 3
"""Between two changes that are watched: longer than an event is on its way."""
ARMED_AT_ONCE = 200

READY, WATCHED, CROWD, ASLEEP = "/ready", "/watched", "/crowd", "/asleep"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    warm: int
    """Reads and writes before the first that counts: a server is slow at first."""
    singles: int
    """Reads, and writes, one at a time."""
    others: int
    """Creates, deletes and small multis, one at a time."""
    batches: int
    """Pipelined batches of reads, and of writes."""
    in_flight: int
    """Requests in such a batch."""
    multis: int
    """Multis of each size."""
    multi_sizes: tuple[int, ...]
    watched: int
    """Changes one at a time, each of which fires one watch."""
    crowds: int
    """Multis that fire a watch with each of their operations."""
    crowd: int
    """Operations of such a multi."""
    sessions: int
    """Sessions that are left to expire."""

    def shared_by(self, askers: int) -> Sizes:
        """What each of so many askers does, so that all of them do about this much."""
        names = ("warm", "singles", "others", "batches", "multis")
        parts = {name: -(-getattr(self, name) // askers) for name in names}
        return replace(self, **parts)


THOROUGH = Sizes(3000, 6000, 1500, 60, 100, 20, (10, 100, 1000), 400, 20, 100, 48)
QUICK = Sizes(600, 700, 150, 12, 100, 6, (10, 100), 80, 8, 50, 16)


@dataclass(frozen=True)
class Procedure:
    """The program of every role; whose turn it is says which one it is."""

    sizes: Sizes
    is_watched: bool = True
    """Whether there is a watcher, so that the asker waits for it and fires its watches."""

    async def turn(self, zk: ZooKeeper, me: Any, memory: Any) -> Ended:
        """Do the work of a role, and end; what fails makes it no measurement."""
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
        await tell(PHASE, what=WARM_UP)
        for turn in range(sizes.warm):
            await zk.get(f"{home}/{turn % ZNODES}")
            await zk.set(f"{home}/{turn % ZNODES}", DATA)
            if turn % 4 == 0:
                await zk.create(f"{home}/new", DATA)
                await zk.multi([zk.delete(f"{home}/new"), zk.set(f"{home}/0", DATA)])
        await tell(PHASE, what="round trip")
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
        await tell(PHASE, what="pipelined read")
        for _ in range(sizes.batches):
            await zk.pipelined(reads)
        await tell(PHASE, what="pipelined write")
        for _ in range(sizes.batches):
            await zk.pipelined(writes)
        for size in sizes.multi_sizes:
            await tell(PHASE, what=f"multi of {size}")
            for _ in range(sizes.multis):
                await zk.multi([zk.set(f"{home}/{at % ZNODES}", DATA) for at in range(size)])

    async def _fire(self, zk: ZooKeeper, home: str) -> None:
        while await zk.exists(READY) is None:
            await sleep(LOOK_MS)
        await tell(PHASE, what="watched")
        for at in range(self.sizes.watched):
            await zk.create(f"{WATCHED}-{at}", DATA)
            await sleep(APART_MS)
        for turn in range(self.sizes.crowds):
            for what, where in (("unwatched crowd", home), ("watched crowd", "")):
                await tell(PHASE, what=what)
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
            await next_note()

    # --- falling silent ----------------------------------------------------------------

    async def _fall_silent(self, zk: ZooKeeper, number: int) -> None:
        await zk.create(f"{ASLEEP}-{number}", ephemeral=True)
        while True:
            await next_note()

    async def _observe(self, zk: ZooKeeper) -> None:
        for number in range(self.sizes.sessions):
            await zk.exists(f"{ASLEEP}-{number}", watch=True)
        left = self.sizes.sessions
        while left:
            note = await next_note()
            if isinstance(note, Fired) and note.what is Happening.DELETED:
                left -= 1
            elif isinstance(note, Fired):
                await zk.exists(note.path, watch=True)
