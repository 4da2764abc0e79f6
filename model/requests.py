"""How a variant asks ZooKeeper: once, or again and again until it is answered.

Kafka's consumer talked through a library, zkclient, that hid every failure of the
connection: a request waited until there was a connection and was then made again, in
the next session if the first had died meanwhile. Much of what went wrong in the field
comes from there: a commit composed before a pause is written after it, a create that
took effect is made again and meets itself.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, TypeVar

from model.asks import connected, new_session
from model.errors import ConnectionLoss, NodeExists, NoNode, SessionExpired
from model.operations import Ask, Create, SetData
from model.registry import parent_of

T = TypeVar("T")


class Requests(Protocol):
    """How to ask. `renewed` tells that a new session was taken on the way.

    `claims_are_gone` tells the same until somebody has taken account of it: whatever was
    claimed in the old session is not claimed any more.
    """

    renewed: bool
    claims_are_gone: bool

    def __call__(self, ask: Ask[T]) -> Awaitable[T]:
        """Ask; what comes back is awaited and gives the answer."""
        ...


class Direct:
    """Ask once; whatever goes wrong is raised."""

    __slots__ = ("claims_are_gone", "renewed")

    def __init__(self) -> None:
        self.renewed = False
        self.claims_are_gone = False

    def __call__(self, ask: Ask[T]) -> Awaitable[T]:
        """Ask once: whoever awaits the ask itself has its answer."""
        return ask


class UntilConnected:
    """Ask until there is an answer, as zkclient's retryUntilConnected does."""

    __slots__ = ("claims_are_gone", "renewed")

    def __init__(self) -> None:
        self.renewed = False
        self.claims_are_gone = False

    async def __call__(self, ask: Ask[T]) -> T:
        """Ask until a server answers."""
        while True:
            try:
                return await ask
            except ConnectionLoss:
                await self._until_connected()
            except SessionExpired:
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


async def create_with_parents(requests: Requests, operation: Create) -> str:
    """Create a znode, and the znodes above it where they are missing."""
    try:
        return await requests(operation)
    except NoNode:
        await ensure_parents(requests, operation)
        return await requests(operation)


async def ensure_parents(requests: Requests, operation: Create | SetData) -> None:
    """Create whatever is missing above a path, as plain znodes, from below upwards."""
    parent = Create(parent_of(operation.path), b"", purpose=operation.purpose)
    try:
        await create_with_parents(requests, parent)
    except NodeExists:
        return
