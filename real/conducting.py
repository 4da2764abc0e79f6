"""Follows a schedule on a real ZooKeeper: one operation at a time, and every answer compared.

Theory of operation
  The programs are not here; whoever gives the cues knows what they ask. Here are their
  sessions, each a client with a connection of its own, and for each of them a list of the
  events that the server has sent. After every change each client asks for something that
  matters to nobody: what was sent to it before, it has heard when the answer is there.

  A session begins when something is asked in it for the first time. A lost reply is one
  that no program is given, and a lost request is not sent. With both the connection really
  breaks, and the watches are gone, as they are when a process is killed; only the ends of
  sessions come when the schedule says so, and not when a timeout is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat

from model.answers import Fired
from model.cues import Cue, Kept, agree, differs, told
from model.errors import Failure
from model.operations import Exists, Operation
from real.access import Access, client_of, connect
from real.client import Reply, Said
from real.ending import end_session
from real.leaving_again import LeavingClient, Watch
from real.scratch import own_znode

TIMEOUT_MS = 60_000
"""What sessions ask for; no server grants more than twenty of its ticks."""
PATIENCE_S = 20.0
PREFIX = "watchkeeper-schedule"

CANNOT = (
    "live, time does not pass for the programs: pauses, timers, and what is fetched are taken "
    "from the schedule; the ends of sessions too come when it says so, not by a timeout"
)
"""What a schedule that is followed live does not show."""


class Disturbed(Exception):
    """Something happened that nobody had planned: a connection broke by itself, or is slow."""


class Held:
    """One session, and what it has heard."""

    def __init__(self, access: Access, root: str) -> None:
        self.queue: SimpleQueue[Said] = SimpleQueue()
        self.events: list[Fired] = []
        self.seen_zxid = 0
        """The last write that its program has heard of."""
        self._states: list[str] = []
        self._replies: dict[int, Reply] = {}
        options = dict(access.options)
        self.client = LeavingClient(access.servers, root, TIMEOUT_MS, self.queue.put, options)
        self.client.start()
        self._wait_for(lambda: "connected" in self._states)
        self.session = self.client.session

    def _take(self) -> None:
        try:
            said = self.queue.get(timeout=PATIENCE_S)
        except Empty:
            raise Disturbed(f"nothing came from ZooKeeper for {PATIENCE_S:g} s") from None
        if isinstance(said.what, Reply):
            self._replies[said.what.ticket] = said.what
        elif isinstance(said.what, Fired):
            self.events.append(said.what)
        else:
            self._states.append(said.what)

    def _wait_for(self, is_there: Callable[[], bool]) -> None:
        while not is_there():
            self._take()

    def ask(self, operation: Operation[Any], *, is_told: bool) -> Any:
        """Ask something for a program, which is told the answer or is not; the answer."""
        reply = self._ask(self.client.submit((operation,), 1))
        if is_told:
            self.seen_zxid = max(self.seen_zxid, reply.zxid)
        return reply.answer

    def _ask(self, tickets: list[int] | Failure) -> Reply:
        if isinstance(tickets, Failure):
            raise Disturbed("a connection broke that nobody had broken")
        (ticket,) = tickets
        states = len(self._states)
        self._wait_for(lambda: ticket in self._replies or len(self._states) > states)
        if ticket not in self._replies or self.client.life != 1:
            raise Disturbed("a connection broke that nobody had broken")
        reply = self._replies.pop(ticket)
        if isinstance(reply.answer, Exception):
            raise reply.answer
        return reply

    def heard(self) -> tuple[Fired, ...]:
        """What it was told since this was asked before."""
        self._ask(self.client.submit((Exists("/"),), 1))
        events, self.events = tuple(self.events), []
        return events

    def disconnect(self) -> None:
        """Break the connection and make another: every watch is gone, and what was sent too."""
        self._states.clear()
        self.client.break_connection()
        self._wait_for(lambda: "connected" in self._states)
        if self.client.life != 1:
            raise Disturbed("a session was lost that nobody had ended")
        self.events.clear()

    def leave_again(self, watches: Iterable[Watch]) -> None:
        """Leave watches again, as a client of Java does."""
        ticket = self.client.leave_again(watches, self.seen_zxid)
        self._ask(ticket if isinstance(ticket, Failure) else [ticket])

    def close(self) -> None:
        """End the session in good order."""
        self.client.close()

    def expire(self, access: Access) -> None:
        """Let somebody else end it."""
        identity = self.client.identity
        self.client.abandon()
        if not end_session(access, identity):
            raise Disturbed("a session was gone before it could be ended")


class Conductor:
    """The sessions of one schedule."""

    def __init__(self, access: Access, root: str) -> None:
        self.access = access
        self.root = root
        self.held: dict[int, Held] = {}
        """The schedule's number of a session -> the session, while it is alive."""
        self.operations = 0

    def follow(self, cues: Iterable[Cue]) -> str:
        """Do one thing after the other; the first difference, or nothing."""
        for cue in cues:
            said = self._do(cue) or self._compare_events(cue)
            if said:
                return said
        return ""

    def close(self) -> None:
        """End every session that is left."""
        for held in self.held.values():
            held.close()
        self.held.clear()

    def _do(self, cue: Cue) -> str:
        act = ACTS.get(cue.does)
        if act is not None:
            return act(self, cue)
        if cue.does not in UNSEEN:
            return f"{cue.place}: that {cue.node} {cue.does} cannot be done live"
        return ""

    # --- what is done ------------------------------------------------------------------

    def _answer(self, cue: Cue) -> str:
        held = self.held.get(cue.session)
        if held is None:
            held = self.held[cue.session] = Held(self.access, self.root)
        came = held.ask(cue.about, is_told=cue.does == "is answered")
        self.operations += 1
        return "" if agree(cue.about, cue.answer, came) else differs(cue, cue.answer, came)

    def _lose_reply(self, cue: Cue) -> str:
        return self._answer(cue) or self._disconnect(cue)

    def _disconnect(self, cue: Cue) -> str:
        """A session that is dead, or has asked for nothing, has no connection to break."""
        if cue.session in self.held:
            self.held[cue.session].disconnect()
        return ""

    def _leave_again(self, cue: Cue) -> str:
        if cue.about and cue.session in self.held:
            self.held[cue.session].leave_again(cue.about)
        return ""

    def _expire(self, cue: Cue) -> str:
        held = self.held.pop(cue.session, None)
        if held is not None:
            held.expire(self.access)
        return ""

    def _end(self, cue: Cue) -> str:
        held = self.held.pop(cue.session, None)
        if held is not None:
            held.close()
        return ""

    # --- what is compared --------------------------------------------------------------

    def _compare_events(self, cue: Cue) -> str:
        for session, expected in cue.heard.items():
            held = self.held.get(session)
            came = held.heard() if held is not None else ()
            if cue.does in ENDS:
                came, expected = _in_order(came), _in_order(expected)
            if came != expected:
                return (
                    f"{cue.place}, {cue.node} {cue.does}: session {session} hears of "
                    f"{_listed(came)}; the schedule says {_listed(expected)}"
                )
        return ""

    def compare_trees(self, operator: KazooClient, kept: Iterable[Kept]) -> str:
        """The first znode that is not as it should be."""
        owners = {held.session: number for number, held in self.held.items()}
        found = {
            path[len(self.root) :]: (data, stat.version, _owner(stat, owners))
            for path, data, stat in _below(operator, self.root)
        }
        for one in kept:
            came = found.pop(one.path, None)
            if came is None:
                return f"in the end there is no {one.path}; the schedule says there is"
            data, version, owner = came
            if (data, owner) != (one.data, one.session) or one.version not in (None, version):
                return (
                    f"in the end {one.path} has {data!r}, version {version}, session {owner}; "
                    f"the schedule says {one.data!r}, {one.version}, {one.session}"
                )
        return f"in the end there is {min(found)}; the schedule says no" if found else ""


ACTS: dict[str, Callable[[Conductor, Cue], str]] = {
    "is answered": Conductor._answer,
    "arrives late": Conductor._answer,
    "loses a reply": Conductor._lose_reply,
    "loses a request": Conductor._disconnect,
    "leaves a request behind": Conductor._disconnect,
    "is disconnected": Conductor._disconnect,
    "is connected again": Conductor._leave_again,
    "is killed": Conductor._disconnect,
    "loses its session": Conductor._expire,
    "session ends": Conductor._end,
    "closes its session": Conductor._end,
}
UNSEEN = frozenset(
    {
        *("starts", "hears", "hears nothing yet", "is woken by its timer", "stops fetching"),
        *("reads a message", "is told to leave", "learns that its session is dead"),
        "is told that its session is dead",
    }
)
"""What a process does, or is told, without ZooKeeper."""


ENDS = frozenset({"loses its session", "session ends", "closes its session"})
"""After these, the order of events says nothing: in which order the ephemerals of a session
go follows from their whole paths, and a schedule is followed below a znode of its own."""


def _in_order(events: tuple[Fired, ...]) -> tuple[Fired, ...]:
    return tuple(sorted(events, key=told))


def _listed(events: tuple[Fired, ...]) -> str:
    return ", ".join(map(told, events)) or "nothing"


def _owner(stat: ZnodeStat, owners: dict[int, int]) -> int:
    """Whose ephemeral it is, by the schedule's number; -1 for nobody's of the schedule."""
    return owners.get(stat.ephemeralOwner, -1) if stat.ephemeralOwner else 0


def _below(operator: KazooClient, path: str) -> Iterator[tuple[str, bytes | None, ZnodeStat]]:
    for name in operator.get_children(path):
        below = f"{path}/{name}"
        data, stat = operator.get(below)
        yield below, data, stat
        yield from _below(operator, below)


class Follower:
    """Follows schedules on one ZooKeeper, each below a znode of its own."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.operator = client_of(access)
        self.operations = 0
        """Answers that were compared."""

    def __enter__(self) -> Follower:
        connect(self.operator, self.access)
        return self

    def __exit__(self, *what: object) -> None:
        self.operator.stop()
        self.operator.close()

    def follow(self, cues: Iterable[Cue], kept: Iterable[Kept]) -> str:
        """Follow one schedule; the first difference, or nothing."""
        with own_znode(self.operator, PREFIX) as name:
            conductor = Conductor(self.access, f"{self.access.chroot}/{name}")
            try:
                said = conductor.follow(cues)
                return said or conductor.compare_trees(self.operator, kept)
            finally:
                conductor.close()
                self.operations += conductor.operations
