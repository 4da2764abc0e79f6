"""The errors of ZooKeeper, as exceptions and as values.

A world never throws into protocol code. It answers with a `Failure`, a value like any other
answer, and the awaited operation raises a new exception made from that value. So a failure
can be stored, compared and counted, and no traceback has the frames of an earlier raise.
Codes are those of ZooKeeper's `KeeperException.Code`.
"""

from __future__ import annotations

from msgspec import Struct


class ZooKeeperError(Exception):
    """An operation on ZooKeeper failed."""

    code = 0
    meaning = "the operation failed"

    def __init__(self, path: str = "") -> None:
        super().__init__(path)
        self.path = path

    @property
    def may_have_happened(self) -> bool:
        """Whether the operation may have taken effect although it failed."""
        return False

    def __str__(self) -> str:
        return f"{type(self).__name__} at {self.path or '(no path)'}: {self.meaning}"


class ServerError(ZooKeeperError):
    """The server failed and gave no reason."""

    code = -1
    meaning = "the server failed in a way it has no name for"


class RuntimeInconsistency(ZooKeeperError):
    """An operation of a multi was not executed, since an earlier one had failed."""

    code = -2
    meaning = "an earlier operation of the same multi failed"


class ConnectionLoss(ZooKeeperError):
    """The connection was lost before the response arrived.

    `sent` is False if the request never left; then it has no effect.
    """

    code = -4
    meaning = "the connection was lost"

    def __init__(self, path: str = "", *, sent: bool = True) -> None:
        super().__init__(path)
        self.sent = sent

    @property
    def may_have_happened(self) -> bool:
        """True if the request had left; it may take effect even after this error."""
        return self.sent


class MarshallingError(ZooKeeperError):
    """The server could not read the request."""

    code = -5
    meaning = "the request could not be decoded"


class Unimplemented(ZooKeeperError):
    """This server does not know the operation."""

    code = -6
    meaning = "the server does not implement it"


class BadArguments(ZooKeeperError):
    """The path or the flags are not allowed."""

    code = -8
    meaning = "the path or the flags are not allowed"


class NoNode(ZooKeeperError):
    """There is no znode at the path, or its parent is missing."""

    code = -101
    meaning = "there is no such znode"


class NoAuth(ZooKeeperError):
    """The session has no right to do this."""

    code = -102
    meaning = "the session has no right to do this"


class BadVersion(ZooKeeperError):
    """The znode has another version than the request names."""

    code = -103
    meaning = "the znode has another version"


class NoChildrenForEphemerals(ZooKeeperError):
    """The parent is an ephemeral, which cannot have children."""

    code = -108
    meaning = "an ephemeral cannot have children"


class NodeExists(ZooKeeperError):
    """There is a znode at the path already."""

    code = -110
    meaning = "there is a znode already"


class NotEmpty(ZooKeeperError):
    """The znode has children and cannot be deleted."""

    code = -111
    meaning = "the znode has children"


class SessionExpired(ZooKeeperError):
    """The session has ended: every request fails until there is a new one."""

    code = -112
    meaning = "the session has expired"


class InvalidACL(ZooKeeperError):
    """The access control list is empty or not understood."""

    code = -114
    meaning = "the access control list is not valid"


class AuthFailed(ZooKeeperError):
    """The scheme is not known, or the credential is not accepted."""

    code = -115
    meaning = "the credential was refused"


class SessionMoved(ZooKeeperError):
    """The session goes on at another server."""

    code = -118
    meaning = "the session has moved to another server"


class NotReadOnly(ZooKeeperError):
    """The server takes no writes, since it has lost the quorum."""

    code = -119
    meaning = "the server takes no writes"


class NoWatcher(ZooKeeperError):
    """There is no watch of that kind to remove."""

    code = -121
    meaning = "there is no such watch"


class ReconfigDisabled(ZooKeeperError):
    """The members of the ensemble cannot be changed."""

    code = -123
    meaning = "the ensemble cannot be reconfigured"


class Throttled(ZooKeeperError):
    """The server has too many requests to take this one."""

    code = -127
    meaning = "the server has too many requests"


class TransactionFailed(ZooKeeperError):
    """A multi was refused as a whole; `index` and `cause` name the operation at fault."""

    meaning = "a multi was refused"

    def __init__(self, path: str = "", *, index: int, cause: Failure) -> None:
        super().__init__(path)
        self.index = index
        self.cause = cause

    def __str__(self) -> str:
        return f"operation {self.index} of a multi failed: {self.cause.error()}"


class Failure(Struct, frozen=True):
    """A failed answer as a value: which error, where, and what may have happened.

    `index` and `cause` are set for a multi alone: the operation that made it fail.
    """

    kind: type[ZooKeeperError]
    path: str = ""
    sent: bool = True
    index: int = -1
    cause: Failure | None = None

    def error(self) -> ZooKeeperError:
        """Make the exception that this failure stands for."""
        if self.kind is ConnectionLoss:
            return ConnectionLoss(self.path, sent=self.sent)
        if self.kind is TransactionFailed:
            assert self.cause is not None, "a failed multi names its cause"
            return TransactionFailed(self.path, index=self.index, cause=self.cause)
        return self.kind(self.path)

    @property
    def name(self) -> str:
        """The error in one word, for traces; a multi gives the word of its cause."""
        if self.cause is not None:
            return self.cause.name
        return self.kind.__name__

    @property
    def ends_connection(self) -> bool:
        """Whether the failure is of the connection, and so of a whole batch."""
        return self.kind is ConnectionLoss or self.kind is SessionExpired
