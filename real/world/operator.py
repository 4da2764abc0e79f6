"""The hand of an operator on the znodes of one cluster, as with ZooKeeper's own command line.

The world must never wait long for a ZooKeeper that does not answer, because the world is what
restarts it: a request without an answer in time is a fault that found no target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from watchkeeper.model.actor.operations import Delete, SetData
from watchkeeper.model.registry.paths import BROKER_IDS, members

TIMEOUT_S = 1.0
UNSETTLED = (KazooException, KazooTimeoutError)


class Operator:
    """Changes znodes below a root, and remembers in which sessions."""

    def __init__(self, client: KazooClient, root: str) -> None:
        self.client = client
        self.root = root
        self.sessions: set[int] = set()
        """The sessions in which it has changed something."""

    def registrations_of(self, session: int, group: str) -> Iterator[str]:
        """The registrations of a session: of a member of a group, or without one of a broker."""
        parent = members(group) if group else BROKER_IDS
        try:
            names = self.client.get_children_async(f"{self.root}{parent}").get(timeout=TIMEOUT_S)
            found = (f"{parent}/{name}" for name in sorted(names))
            yield from (path for path in found if self._owner(path) == session)
        except UNSETTLED:
            return

    def _owner(self, path: str) -> int:
        stat = self.client.exists_async(f"{self.root}{path}").get(timeout=TIMEOUT_S)
        return 0 if stat is None else int(stat.ephemeralOwner)

    def undo_of(self, path: str) -> Delete | SetData:
        """The write that brings a znode back to its state of now: its data, or its absence.

        Without an answer nothing can be written either, so any undo does.
        """
        try:
            data, _ = self.client.get_async(f"{self.root}{path}").get(timeout=TIMEOUT_S)
        except UNSETTLED:
            return Delete(path)
        return SetData(path, data)

    def operate(self, operation: Delete | SetData, done: Callable[[str], object]) -> None:
        """Change a znode; a set creates what is not there. Calls back with what prevents it."""
        if self.client.client_id is not None:
            self.sessions.add(self.client.client_id[0])
        try:
            self._change(operation)
        except UNSETTLED as error:
            done(f"{operation.path}: {type(error).__name__}")
        else:
            done("")

    def _change(self, operation: Delete | SetData) -> None:
        path = f"{self.root}{operation.path}"
        if isinstance(operation, Delete):
            self.client.delete_async(path).get(timeout=TIMEOUT_S)
            return
        try:
            self.client.set_async(path, operation.data).get(timeout=TIMEOUT_S)
        except NoNodeError:
            self.client.create_async(path, operation.data).get(timeout=TIMEOUT_S)
