"""What reaches a program: the view of a znode, and the notifications of its inbox."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Stat(Struct, frozen=True):
    """The metadata of a znode.

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


class ZnodeView(Struct, frozen=True, eq=False):
    """A znode as one session sees it: its data, its version, and whether it is *mine*.

    `mine` means an ephemeral of the session that made the request. Programs identify their
    session by this field alone, since equal data may belong to their previous session.
    `stat` is no part of equality: a program that reads more of it than the version
    distinguishes states that the checker takes for equal.
    """

    data: bytes | None
    version: int
    mine: bool
    stat: Stat

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is ZnodeView
            and self.data == other.data
            and self.version == other.version
            and self.mine == other.mine
        )

    def __hash__(self) -> int:
        return hash((self.data, self.version, self.mine))


class WatchEventType(Enum):
    """The kind of change that a fired watch reports."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children changed"


class Fired(Struct, frozen=True):
    """A watch fired. It is used up, unless it was set to stay."""

    what: WatchEventType
    path: str


class SessionEvent(Enum):
    """A change of the session or of its connection."""

    SUSPENDED = "suspended"
    """The connection is down. Every watch is lost."""
    CONNECTED = "connected"
    """The connection is back, with the same session. The watches stay lost."""
    EXPIRED = "expired"
    """The session has ended, and its ephemerals are deleted."""


class CommandKind(Enum):
    """What an operator may request of a running program."""

    LEAVE = "leave"
    COMMIT = "commit"
    CREATE_TOPIC = "create topic"
    DELETE_TOPIC = "delete topic"
    ADD_PARTITIONS = "add partitions"
    MOVE_LEADER = "move leader"
    SERVE = "serve requests"
    """Requests of other processes wait for the program."""


class Command(Struct, frozen=True):
    """A command from outside: to leave, to commit, or to change a topic."""

    kind: CommandKind
    topic: str = ""
    number: int = 0
    """The number of partitions, or the partition to move."""
    broker: int = -1
    ticket: int = 0
    """The number of an order whose result a task waits for (`orders`); 0 if none does."""


Notification = Fired | SessionEvent | Command
"""What an inbox holds."""

LEAVE = Command(CommandKind.LEAVE)


def is_quiet(notification: Notification) -> bool:
    """Whether a notification leaves a program quiescent: a command to commit."""
    return isinstance(notification, Command) and notification.kind is CommandKind.COMMIT
