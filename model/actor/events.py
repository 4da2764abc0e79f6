"""What protocol code is told: what was seen of a znode, and the notes of its inbox."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Stat(Struct, frozen=True):
    """What ZooKeeper keeps about a znode beside its data.

    Times are milliseconds of the leader's clock. `cversion` counts the creations and
    deletions of children.
    """

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class Seen(Struct, frozen=True, eq=False):
    """A znode as one session sees it: its data, its version, and whether it is *mine*.

    `mine` means: an ephemeral of the very session that asked. Programs compare sessions
    by this word alone, since equal data may belong to an earlier session of their own.
    The whole `stat` is carried but is no part of identity: a program that reads more of
    it than the version tells apart what the explorer holds equal.
    """

    data: bytes | None
    version: int
    mine: bool
    stat: Stat

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Seen
            and self.data == other.data
            and self.version == other.version
            and self.mine == other.mine
        )

    def __hash__(self) -> int:
        return hash((self.data, self.version, self.mine))


class Happening(Enum):
    """What a fired watch says of its path."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children changed"


class Fired(Struct, frozen=True):
    """A watch fired: this happened at this path. The watch is used up."""

    what: Happening
    path: str


class SessionNote(Enum):
    """What befell the session of a program."""

    SUSPENDED = "suspended"
    """The connection is down. Every watch is gone."""
    CONNECTED = "connected"
    """The connection is back, with the same session. The watches are still gone."""
    EXPIRED = "expired"
    """The session has ended, and with it every ephemeral."""


class Order(Enum):
    """What the operator of a program may ask of it while it runs."""

    LEAVE = "leave"
    COMMIT = "commit"
    CREATE_TOPIC = "create topic"
    DELETE_TOPIC = "delete topic"
    ADD_PARTITIONS = "add partitions"
    MOVE_LEADER = "move leader"


class Ordered(Struct, frozen=True):
    """An order from outside: to leave, to commit, or to change a topic."""

    order: Order
    topic: str = ""
    number: int = 0
    """How many partitions, which one, or which order, as the order needs it."""
    broker: int = -1


Note = Fired | SessionNote | Ordered
"""What an inbox holds."""

LEAVE = Ordered(Order.LEAVE)


def is_quiet(note: Note) -> bool:
    """Whether a note asks only for what may happen in the middle of a rest: a commit."""
    return isinstance(note, Ordered) and note.order is Order.COMMIT
