"""Replays a schedule on a real ZooKeeper: one operation at a time, and every answer compared.

Theory of operation
  The programs do not run here; the actions say what they request. Each of their sessions is a
  client with a connection of its own, and a list of the events that the server has sent.
  After every change each client makes a request without effect: ZooKeeper keeps the order, so
  every event sent before has arrived when its reply is there.

  A session opens with its first request. A lost reply is one that the schedule gives to no
  program, and a lost request is not sent. With both, the connection really breaks and the
  watches are gone, as when a process is killed. A session that outlives its program keeps its
  connection, and its events are read and not compared. Only sessions end when the schedule
  says so, and not after a timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Fired
from watchkeeper.model.actor.operations import Exists, Operation
from watchkeeper.model.counterexample.replay_steps import (
    ExpectedZnode,
    ReplayStep,
    agree,
    describe,
    differs,
)
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.real.access import Access
from watchkeeper.real.client.client import ClientEvent, Reply
from watchkeeper.real.client.plain_client import client_of, connect
from watchkeeper.real.client.replay_client import ReplayClient, Watch
from watchkeeper.real.client.scratch_znode import temporary_znode
from watchkeeper.real.client.sessions import end_session

TIMEOUT_MS = 60_000
"""The timeout that sessions request; a server grants at most twenty of its ticks."""
PATIENCE_S = 20.0
"""The longest wait for a reply or for a connection."""
PREFIX = "watchkeeper-schedule"

CANNOT = (
    "live, time does not pass for the programs: pauses, timers and fetches are taken from the "
    "schedule; sessions too end when it says so, not after a timeout"
)
"""What a live replay does not show."""


class Disturbed(Exception):
    """Something outside the schedule happened: a connection broke by itself, or is slow."""


class SteppedSession:
    """One session, and the events that it has received."""

    def __init__(self, access: Access, root: str) -> None:
        self.queue: SimpleQueue[ClientEvent] = SimpleQueue()
        self.events: list[Fired] = []
        self.has_program = True
        """Whether a program hears of its events; the session may outlive it."""
        self.seen_zxid = 0
        """The number of the last write whose reply its program has received."""
        self._states: list[str] = []
        self._replies: dict[int, Reply] = {}
        options = dict(access.options)
        self.client = ReplayClient(access.servers, root, TIMEOUT_MS, self.queue.put, options)
        self.client.start()
        self._wait_for(lambda: "connected" in self._states)
        self.session = self.client.session

    def _take(self) -> None:
        try:
            event = self.queue.get(timeout=PATIENCE_S)
        except Empty:
            raise Disturbed(f"nothing came from ZooKeeper for {PATIENCE_S:g} s") from None
        if isinstance(event.content, Reply):
            self._replies[event.content.ticket] = event.content
        elif isinstance(event.content, Fired):
            self.events.append(event.content)
        else:
            self._states.append(event.content)

    def _wait_for(self, is_there: Callable[[], bool]) -> None:
        while not is_there():
            self._take()

    def request(self, operation: Operation[Any], *, is_received: bool) -> Any:
        """Perform an operation and return its answer; the program may never receive the reply."""
        reply = self._reply_to(self.client.submit((operation,), 1))
        if is_received:
            self.seen_zxid = max(self.seen_zxid, reply.zxid)
        return reply.answer

    def _reply_to(self, tickets: list[int] | Failure) -> Reply:
        if isinstance(tickets, Failure):
            raise Disturbed("a connection broke that no step had broken")
        (ticket,) = tickets
        states = len(self._states)
        self._wait_for(lambda: ticket in self._replies or len(self._states) > states)
        if ticket not in self._replies or self.client.generation != 1:
            raise Disturbed("a connection broke that no step had broken")
        reply = self._replies.pop(ticket)
        if isinstance(reply.answer, Exception):
            raise reply.answer
        return reply

    def take_events(self) -> tuple[Fired, ...]:
        """Return the events received since the last call, if a program hears of them."""
        # A read without effect: its reply comes after every event that was sent before it.
        self._reply_to(self.client.submit((Exists("/"),), 1))
        events, self.events = tuple(self.events), []
        return events if self.has_program else ()

    def disconnect(self) -> None:
        """Break the connection and open another; all watches and events on their way are lost."""
        self._states.clear()
        self.client.break_connection()
        self._wait_for(lambda: "connected" in self._states)
        if self.client.generation != 1:
            raise Disturbed("a session was lost that no step had ended")
        self.events.clear()

    def set_watches_again(self, watches: Iterable[Watch]) -> None:
        """Set watches again after a reconnect, as the Java client does."""
        ticket = self.client.set_watches(watches, self.seen_zxid)
        self._reply_to(ticket if isinstance(ticket, Failure) else [ticket])

    def close(self) -> None:
        """Close the session."""
        self.client.close()

    def expire(self, access: Access) -> None:
        """End the session from outside, so that it expires."""
        identity = self.client.identity
        self.client.abandon()
        if not end_session(access, identity):
            raise Disturbed("a session was gone before it could be ended")


class Replayer:
    """The sessions of one schedule."""

    def __init__(self, access: Access, root: str) -> None:
        self.access = access
        self.root = root
        self.stepped: dict[int, SteppedSession] = {}
        """The schedule's number of a session -> the session, while it is alive."""
        self.operations = 0

    def follow(self, actions: Iterable[ReplayStep]) -> str:
        """Perform the actions in order; return the first difference, or an empty string."""
        for action in actions:
            difference = self._do(action) or self._compare_events(action)
            if difference:
                return difference
        return ""

    def close(self) -> None:
        """Close every session that is still open."""
        for stepped in self.stepped.values():
            stepped.close()
        self.stepped.clear()

    def _do(self, action: ReplayStep) -> str:
        act = ACTIONS.get(action.does)
        if act is not None:
            return act(self, action)
        if action.does not in UNSEEN:
            return f"{action.place}: that {action.node} {action.does.text} cannot be done live"
        return ""

    # --- actions -----------------------------------------------------------------------

    def _answer(self, action: ReplayStep) -> str:
        stepped = self.stepped.get(action.session)
        if stepped is None:
            stepped = self.stepped[action.session] = SteppedSession(self.access, self.root)
        actual = stepped.request(action.about, is_received=action.does == StepKind.REPLY)
        self.operations += 1
        return (
            ""
            if agree(action.about, action.answer, actual)
            else differs(action, action.answer, actual)
        )

    def _lose_reply(self, action: ReplayStep) -> str:
        return self._answer(action) or self._disconnect(action)

    def _disconnect(self, action: ReplayStep) -> str:
        # A session that is dead, or has requested nothing yet, has no connection to break.
        if action.session in self.stepped:
            self.stepped[action.session].disconnect()
        return ""

    def _abandon(self, action: ReplayStep) -> str:
        # Its process keeps the connection, so that the server keeps the session and its watches.
        if action.session in self.stepped:
            self.stepped[action.session].has_program = False
        return ""

    def _set_watches_again(self, action: ReplayStep) -> str:
        if action.about and action.session in self.stepped:
            self.stepped[action.session].set_watches_again(action.about)
        return ""

    def _expire(self, action: ReplayStep) -> str:
        stepped = self.stepped.pop(action.session, None)
        if stepped is not None:
            stepped.expire(self.access)
        return ""

    def _end(self, action: ReplayStep) -> str:
        stepped = self.stepped.pop(action.session, None)
        if stepped is not None:
            stepped.close()
        return ""

    # --- comparisons -------------------------------------------------------------------

    def _compare_events(self, action: ReplayStep) -> str:
        for session, expected in action.events.items():
            stepped = self.stepped.get(session)
            actual = stepped.take_events() if stepped is not None else ()
            if action.does in ENDS:
                actual, expected = _in_order(actual), _in_order(expected)
            if actual != expected:
                return (
                    f"{action.place}, {action.node} {action.does.text}: session {session} "
                    f"receives {_listed(actual)}; the schedule says {_listed(expected)}"
                )
        return ""

    def compare_trees(self, operator: KazooClient, kept: Iterable[ExpectedZnode]) -> str:
        """Return a sentence for the first znode that differs, or an empty string."""
        owners = {stepped.session: number for number, stepped in self.stepped.items()}
        found = {
            path[len(self.root) :]: (data, stat.version, _owner(stat, owners))
            for path, data, stat in _below(operator, self.root)
        }
        for expected in kept:
            actual = found.pop(expected.path, None)
            if actual is None:
                return f"in the end there is no {expected.path}; the schedule says there is"
            data, version, owner = actual
            is_same = (data, owner) == (expected.data, expected.session)
            if not is_same or expected.version not in (None, version):
                return (
                    f"in the end {expected.path} has {data!r}, version {version}, "
                    f"session {owner}; "
                    f"the schedule says {expected.data!r}, {expected.version}, {expected.session}"
                )
        return f"in the end there is {min(found)}; the schedule says no" if found else ""


ACTIONS: dict[StepKind, Callable[[Replayer, ReplayStep], str]] = {
    StepKind.REPLY: Replayer._answer,
    StepKind.LATE_REQUEST: Replayer._answer,
    StepKind.LOST_REPLY: Replayer._lose_reply,
    StepKind.LOST_REQUEST: Replayer._disconnect,
    StepKind.DELAYED_REQUEST: Replayer._disconnect,
    StepKind.DISCONNECT: Replayer._disconnect,
    StepKind.RECONNECT: Replayer._set_watches_again,
    StepKind.CRASH: Replayer._disconnect,
    StepKind.ABANDON: Replayer._abandon,
    StepKind.SESSION_EXPIRED: Replayer._expire,
    StepKind.OLD_SESSION_EXPIRED: Replayer._end,
    StepKind.CLOSE_SESSION: Replayer._end,
}
UNSEEN = frozenset(
    {
        StepKind.START,
        StepKind.NOTIFICATION,
        StepKind.EMPTY_POLL,
        StepKind.TIMER,
        StepKind.STOP_FETCHING,
        StepKind.READ_MESSAGE,
        StepKind.LEAVE,
        StepKind.CHANGE_TOPIC,
        StepKind.EXPIRY_ON_RECONNECT,
        StepKind.EXPIRY_ON_REQUEST,
    }
)
"""The steps that reach no ZooKeeper: nothing is to be done for them live."""

ENDS = frozenset({StepKind.SESSION_EXPIRED, StepKind.OLD_SESSION_EXPIRED, StepKind.CLOSE_SESSION})
"""The steps after which the order of events means nothing: ZooKeeper removes the ephemerals of a
session in an order that depends on their full paths, and a live replay has a root of its own."""


def _in_order(events: tuple[Fired, ...]) -> tuple[Fired, ...]:
    return tuple(sorted(events, key=describe))


def _listed(events: tuple[Fired, ...]) -> str:
    return ", ".join(map(describe, events)) or "nothing"


def _owner(stat: ZnodeStat, owners: dict[int, int]) -> int:
    """Return the schedule's number of the owner; -1 for a session outside the schedule."""
    return owners.get(stat.ephemeralOwner, -1) if stat.ephemeralOwner else 0


def _below(operator: KazooClient, path: str) -> Iterator[tuple[str, bytes | None, ZnodeStat]]:
    for name in operator.get_children(path):
        below = f"{path}/{name}"
        data, stat = operator.get(below)
        yield below, data, stat
        yield from _below(operator, below)


class Follower:
    """Replays schedules on one ZooKeeper, each below a znode of its own."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.operator = client_of(access)
        self.operations = 0
        """The number of answers compared."""

    def __enter__(self) -> Follower:
        connect(self.operator, self.access)
        return self

    def __exit__(self, *what: object) -> None:
        self.operator.stop()
        self.operator.close()

    def follow(self, actions: Iterable[ReplayStep], kept: Iterable[ExpectedZnode]) -> str:
        """Replay one schedule; return the first difference, or an empty string."""
        with temporary_znode(self.operator, PREFIX) as name:
            replayer = Replayer(self.access, f"{self.access.chroot}/{name}")
            try:
                difference = replayer.follow(actions)
                return difference or replayer.compare_trees(self.operator, kept)
            finally:
                replayer.close()
                self.operations += replayer.operations
