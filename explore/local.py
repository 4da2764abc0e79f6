"""One process, as a value: where its program stands, its session, its notes, what it fetches."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from model.answers import Fired, Happening, Note
from model.asks import Partition
from model.operations import Operation
from model.zookeeper.tree import Change, Tree

Phase = Literal["absent", "running", "gone", "over"]
"""Not started yet; at work; killed; its program has ended."""
Link = Literal["none", "up", "down", "expired"]
"""No session was asked for; connected; not connected; told that the session is dead."""

Kind = Literal["data", "exist", "child"]
"""What a watch was left by: a read, a look at a znode that is not there, a list."""
Watch = tuple[Kind, str]
Cast = tuple[Change, ...]


class Fetching(Struct, frozen=True):
    """A partition that is fetched, or was."""

    partition: Partition
    at: int
    """The offset of the next message."""
    stream: int = -1
    """Who of the member's streams has it; -1 when it is not fetched now."""


class Local(Struct, frozen=True):
    """Everything about one process but what the service keeps."""

    phase: Phase = "absent"
    life: int = 0
    """How many processes there have been before."""
    node: int = -1
    """Where the program stands, by its unfolding."""
    link: Link = "none"
    session: int = 0
    is_alive: bool = False
    """Whether the service holds that session to be alive."""
    channel: tuple[Fired, ...] = ()
    """What the service has sent and the process has not looked at."""
    inbox: tuple[Note, ...] = ()
    watches: frozenset[Watch] = frozenset()
    """Those it has left; without a connection, those that its client will leave again."""
    touched: frozenset[Watch] = frozenset()
    """Those of them that missed something."""
    fetches: tuple[Fetching, ...] = ()
    batch: tuple[Any, ...] = ()
    """The answers so far to a batch."""
    known: int = 0
    """How many notes there were when the batch was sent."""
    ghosts: tuple[tuple[int, Operation[Any]], ...] = ()
    """Requests of broken connections that may still arrive, each with its session."""
    orphans: tuple[int, ...] = ()
    """Sessions of earlier lives that the service has not ended yet."""
    plans: tuple[tuple[str, Any], ...] = ()
    """Topic -> what was last decided about it."""

    @property
    def fetching(self) -> tuple[Fetching, ...]:
        """What is fetched now."""
        return tuple(one for one in self.fetches if one.stream >= 0)

    @property
    def sessions(self) -> tuple[int, ...]:
        """Every session of this process that the service holds to be alive."""
        return (*self.orphans, self.session) if self.is_alive else self.orphans


NOWHERE = Local()


def without_connection(local: Local, *, resends: bool) -> Local:
    """A process whose connection is gone: what was sent to it is lost, and the watches with it.

    A client that leaves its watches again remembers them, those too whose event was lost.
    """
    if not resends:
        return replace(local, link="down", channel=(), watches=frozenset(), batch=(), known=0)
    lost = {(_kind_of(event), event.path) for event in local.channel}
    return replace(
        local,
        link="down",
        channel=(),
        watches=local.watches | lost,
        touched=local.touched | lost,
        batch=(),
        known=0,
    )


def _kind_of(event: Fired) -> Kind:
    return _KINDS[event.what]


_KINDS: dict[Happening, Kind] = {
    Happening.CREATED: "exist",
    Happening.CHANGED: "data",
    Happening.DELETED: "data",
    Happening.CHILDREN: "child",
}

ONCE: dict[Happening, tuple[Kind, ...]] = {
    Happening.CREATED: ("exist",),
    Happening.CHANGED: ("data",),
    Happening.DELETED: ("data", "child"),
}


def hears(local: Local, cast: Cast) -> Local:
    """A process when something has changed: its watches fire, or miss it."""
    if not local.watches:
        return local
    watches = local.watches
    fired: list[Fired] = []
    touched: list[Watch] = []
    for change in cast:
        path = change.path
        used = [(kind, path) for kind in ONCE[change.what] if (kind, path) in watches]
        if used:
            fired.append(Fired(change.what, path))
            touched += used
            watches = watches.difference(used)
        if change.what is not Happening.CHANGED:
            parent = path.rpartition("/")[0] or "/"
            above: Watch = ("child", parent)
            if above in watches:
                fired.append(Fired(Happening.CHILDREN, parent))
                touched.append(above)
                watches = watches.difference((above,))
    if not touched:
        return local
    if local.link == "up":
        return replace(local, watches=watches, channel=(*local.channel, *fired))
    return replace(local, touched=local.touched.union(touched))


def missed(tree: Tree, local: Local) -> list[tuple[Watch, Fired | None]]:
    """What a client that leaves its watches again is told of each that missed something."""
    return [(watch, _event(tree, watch)) for watch in sorted(local.touched)]


def _event(tree: Tree, watch: Watch) -> Fired | None:
    kind, path = watch
    is_there = path in tree.nodes
    if kind == "exist":
        return Fired(Happening.CREATED, path) if is_there else None
    if not is_there:
        return Fired(Happening.DELETED, path)
    return Fired(Happening.CHILDREN if kind == "child" else Happening.CHANGED, path)
