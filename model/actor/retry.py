"""How a variant makes requests: once, or until they are answered.

Kafka's consumer used a library, zkclient, that hid every failure of the connection: a
request waited for a connection and was then made again, in the next session if the first had
ended meanwhile. Many failures in the field come from there: a commit composed before a pause
is written after it; a create that took effect is made again and finds its own znode.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar

from watchkeeper.model.actor.effects import connected, new_session
from watchkeeper.model.actor.errors import ConnectionLoss, NodeExists, NoNode, SessionExpired
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import Create, Effect, Exists, GetData, Pipelined, SetData

T = TypeVar("T")


class Requests(Protocol):
    """A way to make requests.

    `repeated` is set when a request was made again. `renewed` is set when it went on in a new
    session. So is `claims_are_gone`, which the caller resets once it has dropped the claims of
    the old session.
    """

    repeated: bool
    renewed: bool
    claims_are_gone: bool

    def __call__(self, effect: Effect[T]) -> Awaitable[T]:
        """Return an awaitable of the result."""
        ...


class Direct:
    """Make a request once; every error is raised."""

    __slots__ = ("claims_are_gone", "renewed", "repeated")

    def __init__(self) -> None:
        self.repeated = False
        self.renewed = False
        self.claims_are_gone = False

    def __call__(self, effect: Effect[T]) -> Awaitable[T]:
        """Return the effect itself, which is awaitable."""
        return effect


class UntilConnected:
    """Repeat a request until it is answered, as zkclient's retryUntilConnected does."""

    __slots__ = ("claims_are_gone", "renewed", "repeated")

    def __init__(self) -> None:
        self.repeated = False
        self.renewed = False
        self.claims_are_gone = False

    async def __call__(self, effect: Effect[T]) -> T:
        """Make a request; no ConnectionLoss or SessionExpired is raised."""
        while True:
            try:
                return await effect
            except ConnectionLoss:
                self.repeated = True
                await self._until_connected()
            except SessionExpired:
                self.repeated = True
                await self._renew()

    async def _until_connected(self) -> None:
        try:
            await connected()
        except SessionExpired:
            await self._renew()

    async def _renew(self) -> None:
        await new_session()
        self.renewed = True
        self.claims_are_gone = True


async def read_or_none(requests: Requests, read: GetData) -> ZnodeView | None:
    """Read a znode; None if it does not exist."""
    try:
        return await requests(read)
    except NoNode:
        return None


async def create_with_parents(requests: Requests, operation: Create) -> str:
    """Create a znode, and the missing znodes above it; return its path.

    Raises NodeExists if the znode exists.
    """
    try:
        return await requests(operation)
    except NoNode:
        await ensure_parents(requests, operation)
        return await requests(operation)


async def ensure_all_parents(requests: Requests, operations: Sequence[Create]) -> None:
    """Create the missing znodes above several paths; one request finds out which are missing."""
    above = {operation.path.rpartition("/")[0]: operation for operation in operations}
    reads = tuple(Exists(path, False, operation.purpose) for path, operation in above.items())
    seen = await requests(Pipelined(reads))
    for operation, znode in zip(above.values(), seen, strict=True):
        if znode is None:
            await ensure_parents(requests, operation)


async def ensure_parents(requests: Requests, operation: Create | SetData) -> None:
    """Create the missing znodes above a path, as persistent znodes without data."""
    above, _, _ = operation.path.rpartition("/")
    parent = Create(above, b"", purpose=operation.purpose)
    try:
        await create_with_parents(requests, parent)
    except NodeExists:
        return
