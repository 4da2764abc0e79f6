"""The state of one process: its program's node, its session, its notifications, its fetches."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command, Fired, Notification, WatchEventType
from watchkeeper.model.actor.operations import Operation
from watchkeeper.model.counterexample.counterexample import Phase
from watchkeeper.model.zookeeper.tree import Change, Tree

Link = Literal["none", "up", "down", "expired"]
"""No session yet; connected; not connected; the client knows that its session is dead."""

Kind = Literal["data", "exist", "child"]
"""What set a watch: a read of data, `exists` on a missing znode, or a list of children."""
Watch = tuple[Kind, str]


class ProcessChange(Struct, frozen=True):
    """The end or the start of a process in which several members run."""

    name: str
    what: Literal["crash", "restart"]
    members: tuple[str, ...]
    strikes: str
    """The member whose step it is; the others receive it as a broadcast."""

    def __str__(self) -> str:
        others = [member for member in self.members if member != self.strikes]
        return f"with the process {self.name}, also of {' and '.join(others)}"


Broadcast = tuple[Change | ProcessChange, ...]
"""What other processes receive of a step. A change of a process comes alone."""


class Fetching(Struct, frozen=True):
    """The position in a partition that is fetched, or was."""

    partition: Partition
    at: int
    """The offset of the next message."""
    stream: int = -1
    """The stream of the member that has it; -1 while it is not fetched."""


class ActorState(Struct, frozen=True):
    """Everything about one process but what the service stores."""

    phase: Phase = "absent"
    life: int = 0
    """How often it has restarted."""
    node: int = -1
    """The number of the program's node in its compiled graph."""
    link: Link = "none"
    session: int = 0
    is_alive: bool = False
    """Whether the session is alive at the service, whatever the client knows."""
    channel: tuple[Fired, ...] = ()
    """The events that the service has sent and the process has not taken."""
    inbox: tuple[Notification, ...] = ()
    watches: frozenset[Watch] = frozenset()
    """The watches that are set; without a connection, those that its client will set again."""
    touched: frozenset[Watch] = frozenset()
    """Those of them that missed a change while the connection was broken."""
    fetches: tuple[Fetching, ...] = ()
    batch: tuple[Any, ...] = ()
    """The answers so far to a batch."""
    known: int = 0
    """How many notifications were in the inbox when the batch was sent."""
    late_requests: tuple[tuple[int, Operation[Any]], ...] = ()
    """Requests of broken connections that may still be executed, each with its session."""
    orphans: tuple[int, ...] = ()
    """Sessions of earlier lives that the service has not ended yet."""
    plans: tuple[tuple[str, Any], ...] = ()
    """Topic -> hashes of the view that the member computed its last share from."""
    shares: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Topic -> the partitions of that share."""
    has_leave_command: bool = False
    orders: tuple[Command, ...] = ()
    """The changes of topics that the process was ordered to make, in all of its lives."""
    awaits: int = 0
    """The ticket of the order whose result the application waits for; 0 for none."""
    failed: str = ""
    """The first error that ended a turn in this life; empty for none."""
    raised_epochs: tuple[int, ...] = ()
    """The controller epochs that the process has raised itself, in all of its lives."""

    @property
    def fetching(self) -> tuple[Fetching, ...]:
        """The partitions that are fetched now."""
        return tuple(fetch for fetch in self.fetches if fetch.stream >= 0)

    @property
    def sessions(self) -> tuple[int, ...]:
        """Every session of this process that is alive at the service."""
        return (*self.orphans, self.session) if self.is_alive else self.orphans


NOWHERE = ActorState()


def crashed(state: ActorState) -> ActorState:
    """Return the member after its process was killed: its sessions are left to expire."""
    return ActorState(
        "gone",
        state.life,
        orphans=state.sessions,
        late_requests=state.late_requests,
        orders=state.orders,
        raised_epochs=state.raised_epochs,
    )


def without_connection(state: ActorState, *, resends: bool) -> ActorState:
    """Return the process after its connection broke: events under way and watches are lost.

    A client that sets its watches again remembers them, those included whose event was lost.
    """
    if not resends:
        return replace(state, link="down", channel=(), watches=frozenset(), batch=(), known=0)
    lost = {(_kind_of(event), event.path) for event in state.channel}
    return replace(
        state,
        link="down",
        channel=(),
        watches=state.watches | lost,
        touched=state.touched | lost,
        batch=(),
        known=0,
    )


def _kind_of(event: Fired) -> Kind:
    return _KINDS[event.what]


_KINDS: dict[WatchEventType, Kind] = {
    WatchEventType.CREATED: "exist",
    WatchEventType.CHANGED: "data",
    WatchEventType.DELETED: "data",
    WatchEventType.CHILDREN: "child",
}

ONCE: dict[WatchEventType, tuple[Kind, ...]] = {
    WatchEventType.CREATED: ("exist",),
    WatchEventType.CHANGED: ("data",),
    WatchEventType.DELETED: ("data", "child"),
}


def notified(state: ActorState, broadcast: Broadcast) -> ActorState:
    """Return the process after changes of znodes: its watches fire, or miss the changes."""
    if not state.watches:
        return state
    watches = state.watches
    fired: list[Fired] = []
    touched: list[Watch] = []
    for change in broadcast:
        if isinstance(change, ProcessChange):
            continue
        path = change.path
        used = [(kind, path) for kind in ONCE[change.what] if (kind, path) in watches]
        if used:
            fired.append(Fired(change.what, path))
            touched += used
            watches = watches.difference(used)
        if change.what is not WatchEventType.CHANGED:
            parent = path.rpartition("/")[0] or "/"
            above: Watch = ("child", parent)
            if above in watches:
                fired.append(Fired(WatchEventType.CHILDREN, parent))
                touched.append(above)
                watches = watches.difference((above,))
    if not touched:
        return state
    if state.link == "up":
        return replace(state, watches=watches, channel=(*state.channel, *fired))
    return replace(state, touched=state.touched.union(touched))


def missed(tree: Tree, state: ActorState) -> list[tuple[Watch, Fired | None]]:
    """Return the event for each watch that missed a change, when the client sets it again."""
    return [(watch, _event(tree, watch)) for watch in sorted(state.touched)]


def _event(tree: Tree, watch: Watch) -> Fired | None:
    kind, path = watch
    is_there = path in tree.nodes
    if kind == "exist":
        return Fired(WatchEventType.CREATED, path) if is_there else None
    if not is_there:
        return Fired(WatchEventType.DELETED, path)
    return Fired(WatchEventType.CHILDREN if kind == "child" else WatchEventType.CHANGED, path)
