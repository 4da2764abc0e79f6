"""What a process does by itself: the asks that no other process can see being answered.

`settled` goes on until the program asks for something that takes another's doing: a request
to the service, a note that has not come, a connection. What it begins to fetch it fetches
at once, since that can only bring a collision nearer. What it stops fetching it stops in a
step of its own, since others may come in between.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec.structs import replace

from explore.local import Fetching, Local
from explore.promises import Busy
from explore.unfolding import Unfolding
from model.answers import Fired, SessionNote
from model.asks import (
    CloseSession,
    Connected,
    FetchExactly,
    Forget,
    FreshId,
    KnownPositions,
    NewSession,
    NextNote,
    Now,
    Sleep,
    Tell,
)
from model.errors import ConnectionLoss, Failure, SessionExpired
from model.inbox import without_older_notes
from model.offsets import EARLIEST
from model.operations import Operation, Pipelined
from model.program import Ended

MOST_STEPS = 20_000
EPOCH_MS = 1_600_000_000_000
"""What every clock says in the beginning; the next life of a process begins a second later."""
WAITS = object()
"""In place of an answer: the program has to wait for another's doing."""


class Process:
    """One program, which may be run again and again, and the numbers of its sessions."""

    def __init__(
        self,
        name: str,
        unfolding: Unfolding,
        sessions: tuple[int, ...],
        *,
        pauses_last: bool = False,
    ) -> None:
        self.name = name
        self.unfolding = unfolding
        self.sessions = sessions
        """The numbers it may use."""
        self.pauses_last = pauses_last
        """Whether others may come in during a pause, and before there is a session."""

    def begun(self, local: Local, life: int) -> Local:
        """A process of this program starts."""
        root = self.unfolding.root(self.unfolding.program.first_memory)
        begun = Local("running", life, root, orphans=local.orphans, ghosts=local.ghosts)
        return self.settled(begun)

    def now_ms(self, life: int) -> int:
        """What its clock says, all of a life long."""
        return EPOCH_MS + 1000 * life

    def fresh_id(self, life: int) -> str:
        """The name that it draws in a life: no other process draws it, and no other life."""
        return f"{self.sessions[0]:x}{life:x}".ljust(32, "0")

    def ask(self, local: Local) -> Any:
        """What its program asks for."""
        return self.unfolding.nodes[local.node].ask

    def answered(self, local: Local, answer: Any) -> Local:
        """The process goes on with an answer."""
        return self.settled(self._after(local, answer))

    def _after(self, local: Local, answer: Any) -> Local:
        return replace(local, node=self.unfolding.after(local.node, answer), batch=(), known=0)

    def settled(self, local: Local) -> Local:
        """Answer all that can be answered at once."""
        refusal = None
        for _ in range(MOST_STEPS):
            ask = self.ask(local)
            if isinstance(ask, Ended):
                return self._over(local)
            if isinstance(ask, Operation | Pipelined):
                refusal = _refusal(local, ask)
                if refusal is None:
                    return local
                local = self._after(local, refusal)
                continue
            local, answer = _AT_ONCE[type(ask)](self, local, ask)
            if answer is WAITS:
                return local
            refusal = answer if type(answer) is Failure else refusal
            local = self._after(local, answer)
        place = self.unfolding.place(local.node)
        if refusal is not None:
            place += f", where every request fails at once with {refusal.name},"
        raise Busy(self.name, place)

    def _over(self, local: Local) -> Local:
        over = Local("over", local.life, local.node, ghosts=local.ghosts)
        return replace(over, orphans=local.sessions)

    # --- asks --------------------------------------------------------------------------

    def _tell(self, local: Local, ask: Tell) -> tuple[Local, Any]:
        if ask.kind != "assigned":
            return local, None
        plans = dict(local.plans) | dict(dict(ask.detail)["plans"])
        return replace(local, plans=tuple(sorted(plans.items()))), None

    def _now(self, local: Local, ask: Now) -> tuple[Local, Any]:
        return local, self.now_ms(local.life)

    def _fresh_id(self, local: Local, ask: FreshId) -> tuple[Local, Any]:
        return local, self.fresh_id(local.life)

    def _positions(self, local: Local, ask: KnownPositions) -> tuple[Local, Any]:
        return local, tuple((one.partition, one.at) for one in local.fetches if one.at >= 0)

    def _forget(self, local: Local, ask: Forget) -> tuple[Local, Any]:
        """What is fetched goes on; only what is not is forgotten altogether."""
        gone = None if ask.partitions is None else frozenset(ask.partitions)
        kept = tuple(
            one
            for one in local.fetches
            if one.stream >= 0 or (gone is not None and one.partition not in gone)
        )
        return replace(local, fetches=kept), None

    def _fetch_exactly(self, local: Local, ask: FetchExactly) -> tuple[Local, Any]:
        wanted = {fetch.partition: fetch for fetch in ask.fetches}
        if any(one.partition not in wanted for one in local.fetching):
            return local, WAITS
        return fetching_exactly(local, ask), None

    def _next_note(self, local: Local, ask: NextNote) -> tuple[Local, Any]:
        if local.inbox:
            return replace(local, inbox=local.inbox[1:]), local.inbox[0]
        if ask.timeout_ms == 0 and not local.channel:
            return local, None
        return local, WAITS

    def _sleep(self, local: Local, ask: Sleep) -> tuple[Local, Any]:
        """A pause is over whenever it likes: whoever is late is late at what follows."""
        return local, WAITS if self.pauses_last else None

    def _connected(self, local: Local, ask: Connected) -> tuple[Local, Any]:
        if local.link == "up":
            return local, None
        if local.link == "expired":
            return local, Failure(SessionExpired)
        return local, WAITS

    def _new_session(self, local: Local, ask: NewSession) -> tuple[Local, Any]:
        """There is a session at once; nobody but its owner can see that there is one."""
        if local.link == "up":
            return local, None
        if local.link == "down" or self.pauses_last:
            return local, WAITS
        return self.with_session(local), None

    def with_session(self, local: Local) -> Local:
        """A process that has got a session of its own."""
        taken = {*local.orphans, *(session for session, _ in local.ghosts)}
        session = next(one for one in self.sessions if one not in taken)
        kept = tuple(n for n in local.inbox if not isinstance(n, Fired | SessionNote))
        return replace(
            local,
            link="up",
            session=session,
            is_alive=True,
            inbox=kept,
            channel=(),
            watches=frozenset(),
            touched=frozenset(),
        )

    def _close_session(self, local: Local, ask: CloseSession) -> tuple[Local, Any]:
        """Without a connection there is nobody to tell; the session ends by itself."""
        if local.link == "up" and local.is_alive:
            return local, WAITS
        return replace(local, link="none", orphans=local.sessions, is_alive=False), None


_AT_ONCE: dict[type[Any], Any] = {
    Tell: Process._tell,
    Now: Process._now,
    FreshId: Process._fresh_id,
    KnownPositions: Process._positions,
    Forget: Process._forget,
    FetchExactly: Process._fetch_exactly,
    NextNote: Process._next_note,
    Sleep: Process._sleep,
    Connected: Process._connected,
    NewSession: Process._new_session,
    CloseSession: Process._close_session,
}


def _refusal(local: Local, ask: Any) -> Failure | None:
    """Why a request cannot be sent; None where it can."""
    if local.link == "up":
        return None
    path = "" if type(ask) is Pipelined else ask.path
    if local.link == "expired":
        return Failure(SessionExpired, path)
    return Failure(ConnectionLoss, path, sent=False)


def fetching_exactly(local: Local, ask: FetchExactly) -> Local:
    """Fetch these and no others; whatever stops keeps its place."""
    places = {one.partition: one.at for one in local.fetches}
    streams = {fetch.partition: fetch.stream for fetch in ask.fetches}
    for fetch in ask.fetches:
        places.setdefault(fetch.partition, 0 if fetch.start <= EARLIEST else max(fetch.start, 0))
    fetches = tuple(
        Fetching(partition, at, streams.get(partition, -1))
        for partition, at in sorted(places.items())
    )
    return replace(local, fetches=fetches)


def heard_before(local: Local, ask: Any, answer: Any) -> Local:
    """A process that is about to see an answer: what was sent before it has arrived."""
    notes = (*local.inbox, *local.channel)
    if notes:
        notes = tuple(without_older_notes(deque(notes), ask, answer, local.known))
    return replace(local, inbox=notes, channel=())
