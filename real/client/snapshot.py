"""Reads the registry of a live cluster without writing anything.

The tree is walked level by level with all requests of a level in flight at once: the data of
each znode and, if it has any, its children. Every answer carries the zxid that the server
had applied last. If the first and the last answer carry the same zxid, the snapshot is
consistent. Otherwise every znode is checked once more; if one has other data or other
children than were read, the walk starts again, a few times. What still changes then is
recorded in the snapshot.

All of it uses one session. Before the first read the server catches up with its leader
(`sync`), so nothing is older than the begin of the read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic, sleep
from typing import Any

from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError

from watchkeeper.model.actor.events import Stat
from watchkeeper.model.audit.snapshot import Snapshot, Znode, is_steady, same
from watchkeeper.model.registry import paths as registry
from watchkeeper.real.access import Access
from watchkeeper.real.client.plain_client import client_of, connect
from watchkeeper.real.errors import EnvironmentProblem

IN_FLIGHT = 500
"""The most requests in flight."""
CLUSTER = (
    *(registry.BROKER_IDS, registry.TOPICS),
    *(registry.CONTROLLER, registry.CONTROLLER_EPOCH, registry.TOPIC_CONFIGS),
    *(registry.DELETE_TOPICS, registry.REASSIGN_PARTITIONS, registry.PREFERRED_REPLICA_ELECTION),
)
"""The znodes of a cluster, each with all that is below it; the rest is of groups."""
ADMINISTRATION = (
    *(registry.BROKER_IDS, registry.TOPICS),
    *(registry.CONTROLLER, registry.CONTROLLER_EPOCH, registry.ADMIN, registry.CONFIG),
)
"""The znodes that an administrative change depends on."""
MOST_NAMES = 8
"""The most znodes that are named where a chroot is missing."""
ATTEMPTS = 4
PAUSE_S = 0.25
CUT_OFF = (ConnectionLoss, ConnectionClosedError, SessionExpiredError, KazooTimeoutError)


class CutOff(Exception):
    """The connection was lost while the registry was read, so the snapshot is incomplete."""


class Reader:
    """A connection for reading; use it with `with`."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.client = client_of(access)

    def __enter__(self) -> Reader:
        connect(self.client, self.access)
        self._check_chroot()
        return self

    def _check_chroot(self) -> None:
        """Raise EnvironmentProblem where the chroot of the address is no znode."""
        chroot = self.access.chroot
        try:
            if not chroot or self.client.exists("") is not None:
                return
            self.client.chroot = ""
            names = ", ".join(sorted(self.client.get_children("/"))[:MOST_NAMES])
        except KazooException:  # what may not be read is said by the reads to come
            self.client.chroot = chroot
            return
        self.close()
        raise EnvironmentProblem(
            f"the ZooKeeper at {self.access.servers} has no znode {chroot}; its root has "
            f"{names or 'none'}: give the chroot under which the registry is, or none"
        )

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        self.client.stop()
        self.client.close()

    # --- reading -----------------------------------------------------------------------

    def read(self, group: str | None = None) -> Snapshot:
        """Return a snapshot of the cluster and of all groups, or one group; raises CutOff."""
        home = registry.GROUPS if group is None else registry.group_home(group)
        return self.read_below((*CLUSTER, home))

    def read_below(self, roots: tuple[str, ...]) -> Snapshot:
        """Return a snapshot of these znodes and of all that is below them; raises CutOff."""
        began = monotonic()
        try:
            self._request_all(self.client.sync_async, ["/"])
            for attempt in range(1, ATTEMPTS + 1):
                walk = _Walk(self._request_all, self.client, roots)
                self._request_all(self.client.exists_async, ["/"])
                before = int(self.client.last_zxid)
                walk.read()
                zxid = int(self.client.last_zxid)
                changed = walk.changed_paths() if zxid != before else []
                if not changed:
                    break
                sleep(PAUSE_S * attempt if attempt < ATTEMPTS else 0)
        except CUT_OFF as error:
            raise CutOff(
                f"the connection to {self.access.hosts} was lost while the registry was read "
                f"({type(error).__name__})"
            ) from None
        took_ms = round((monotonic() - began) * 1000)
        return Snapshot(walk.nodes, zxid, took_ms, attempt, walk.unread, tuple(changed))

    def _request_all(
        self, request: Callable[[str], Any], paths: Iterable[str]
    ) -> dict[str, Any | KazooException]:
        """Send the same request for many znodes; return path -> answer or error."""
        todo = list(paths)
        answers: dict[str, Any] = {}
        for at in range(0, len(todo), IN_FLIGHT):
            pending = [(path, request(path)) for path in todo[at : at + IN_FLIGHT]]
            for path, result in pending:
                try:
                    answers[path] = result.get(timeout=self.access.timeout_s)
                except CUT_OFF:
                    raise
                except KazooException as error:
                    answers[path] = error
        return answers


class _Walk:
    """One walk over the registry."""

    def __init__(
        self,
        request_all: Callable[..., dict[str, Any]],
        client: Any,
        roots: tuple[str, ...],
    ) -> None:
        self.request_all = request_all
        self.client = client
        self.roots = roots
        self.nodes: dict[str, Znode] = {}
        self.unread: dict[str, str] = {}
        self.missing: list[str] = []

    def read(self) -> None:
        """Read level by level."""
        level = list(self.roots)
        while level:
            answers = self.request_all(self.client.get_async, level)
            parents = [path for path in level if self._record(path, answers[path])]
            level = []
            for path, names in self.request_all(self.client.get_children_async, parents).items():
                if isinstance(names, KazooException):
                    self._fail(path, names)
                else:
                    level += [f"{path}/{name}" for name in sorted(names)]

    def _record(self, path: str, answer: Any) -> bool:
        """Record the data of a znode; return whether it has children to read."""
        if isinstance(answer, KazooException):
            self._fail(path, answer)
            return False
        data, stat = answer
        self.nodes[path] = Znode(data, Stat(*stat))
        return bool(stat.numChildren)

    def _fail(self, path: str, error: KazooException) -> None:
        if isinstance(error, NoNodeError):
            self.missing.append(path)
        elif isinstance(error, NoAuthError):
            self.unread[path] = "may not be read by this client; give its credentials by --auth"
        else:
            self.unread[path] = f"could not be read ({type(error).__name__})"

    def changed_paths(self) -> list[str]:
        """The paths that have changed since they were read, offsets aside."""
        paths = [path for path in [*self.nodes, *self.missing] if is_steady(path)]
        answers = self.request_all(self.client.exists_async, paths)
        return [path for path in paths if not self._is_as_read(path, answers[path])]

    def _is_as_read(self, path: str, answer: Any) -> bool:
        if isinstance(answer, KazooException):
            return False
        now = None if answer is None else Stat(*answer)
        if path not in self.nodes:
            return now is None and path in self.roots
        return same(self.nodes[path].stat, now)
