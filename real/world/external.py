"""An external ZooKeeper, used for a live run and left as it was.

The run creates everything below a root of its own and removes that root at the end. The log of
the servers cannot be read. So the committed writes are reconstructed from the requests that
passed the proxy and from the deletions that an observer saw: a deletion without a request
means that a session has expired. Both carry the zxid of the write, deletions since ZooKeeper 3.9.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.access import Access
from watchkeeper.real.client.plain_client import client_of, connect
from watchkeeper.real.client.scratch_znode import remove
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.proxy.tap import AnsweredRequest, Tap
from watchkeeper.real.trace.write_events import CommittedEvent, WriteEvents
from watchkeeper.real.world.observer import Deletion, Observer
from watchkeeper.real.zookeepers.ensemble import Server

LATE_NS = 1_000_000_000
"""How long after the reply to its request a deletion without a zxid may be observed."""

Numbered = AnsweredRequest | Deletion
"""A write, from its reply or from what it deleted."""


@dataclass(frozen=True, slots=True)
class UnknownServer:
    """Stands for the server that serves, which a client cannot identify."""

    name: str


class ExternalZooKeeper:
    """The external ZooKeeper of a run."""

    servers: tuple[Server, ...] = ()
    """Empty: the run must not stop any server."""
    faults = None

    def __init__(self, access: Access, name: str) -> None:
        self.access = replace(access, hosts=access.servers)
        self.name = name
        self.chroot = access.chroot
        self.root = f"{access.chroot}/watchkeeper-{secrets.token_hex(4)}"
        self.addresses = access.addresses
        self.tls = access.tls_context()
        self.tap = Tap()
        self.operator = client_of(self.access)
        self.observer = Observer(self.access, self.root)

    @property
    def leader(self) -> UnknownServer | None:
        """A stand-in for the serving server; None while the operator is disconnected."""
        return UnknownServer(self.name) if self.operator.connected else None

    @property
    def server_of(self) -> dict[str, str]:
        """Address -> the name of the server in the trace."""
        return dict.fromkeys(self.addresses, self.name)

    def start(self) -> KazooClient:
        """Connect, create the root, and start the observer; return the connection.

        Raises EnvironmentProblem if the root cannot be created or observed.
        """
        connect(self.operator, self.access)
        try:
            self._check_chroot()
            self.operator.create(self.root)
        except KazooException as error:
            self._close()
            raise EnvironmentProblem(
                f"{self.root} cannot be made at {self.access.hosts} ({type(error).__name__}); "
                "give --auth, or a chroot below which this client may create znodes"
            ) from None
        except EnvironmentProblem:
            self._close()
            raise
        try:
            self.observer.start()
        except EnvironmentProblem:
            self.stop()
            raise
        return self.operator

    def _check_chroot(self) -> None:
        if self.chroot and self.operator.exists(self.chroot) is None:
            raise EnvironmentProblem(
                f"there is no znode {self.chroot} at {self.access.hosts}; create it, or leave "
                "the chroot out"
            )

    def stop(self) -> None:
        """Remove everything that the run has created."""
        try:
            remove(self.operator, self.root)
        except (KazooException, KazooTimeoutError) as error:
            print(
                f"{self.root} could not be removed from {self.access.hosts} "
                f"({type(error).__name__}); remove it by hand",
                file=sys.stderr,
            )
        self._close()

    def _close(self) -> None:
        self.observer.stop()
        self.operator.stop()
        self.operator.close()

    # --- committed writes ------------------------------------------------------------------

    def committed(self, begin_ns: int) -> Iterator[CommittedEvent]:
        """The committed events in order; call it after all members have ended."""
        self.observer.stop()
        ledger = WriteEvents(self.root)
        seen = sorted(self.tap.seen, key=lambda request: request.zxid)
        unexplained = list(_unexplained(self.observer.deletions, seen, self.root))
        numbered: list[Numbered] = [*seen, *(gone for gone in unexplained if gone.zxid)]
        timed: list[tuple[int, int, Numbered | int]] = []
        timed += [(at_ns, 1, write) for at_ns, write in _with_known_ns(numbered)]
        timed += [(at_ns, 0, session) for session, at_ns in self.tap.opened().items()]
        timed += [(gone.at_ns, 2, gone) for gone in unexplained if not gone.zxid]
        zxid = 0
        for at_ns, _, what in sorted(timed, key=lambda entry: entry[:2]):
            at_us = max(at_ns - begin_ns, 0) // 1000
            if isinstance(what, AnsweredRequest):
                zxid = what.zxid
                kind, detail = what.event(ledger)
                yield CommittedEvent(zxid, what.session, at_us, kind, detail)
            elif isinstance(what, int):
                yield CommittedEvent(zxid, what, at_us, EventKind.SESSION_OPENED, {})
            elif session := ledger.owners.get(what.path, 0):
                zxid = what.zxid or zxid + 1  # the end of a session is a write too
                did = ledger.ended(session)
                yield CommittedEvent(
                    zxid, session, at_us, EventKind.SESSION_EXPIRED, {"did": did}
                )


def _with_known_ns(writes: list[Numbered]) -> Iterator[tuple[int, Numbered]]:
    """The writes in zxid order, each with the time when it was known to be committed.

    That is when the first sign of it or of a later write came: what is committed later is
    seen later. With its own sign alone, a write whose reply is late would delay those after
    it beyond what their clients did after their own replies; and a session whose end is seen
    late would end after another member has taken what it held.
    """
    ordered = sorted(writes, key=lambda write: write.zxid)
    times_ns = accumulate((_seen_ns(write) for write in reversed(ordered)), min)
    return zip(reversed(list(times_ns)), ordered, strict=True)


def _seen_ns(write: Numbered) -> int:
    return write.at_ns if isinstance(write, Deletion) else write.answered_ns


def _unexplained(
    deletions: list[Deletion], seen: list[AnsweredRequest], root: str
) -> Iterator[Deletion]:
    """The deletions that no request explains."""
    zxids = {request.zxid for request in seen}
    yield from (gone for gone in deletions if gone.zxid and gone.zxid not in zxids)
    unnumbered = [gone for gone in deletions if not gone.zxid]
    yield from _unexplained_by_time(unnumbered, seen, root)


def _unexplained_by_time(
    deletions: list[Deletion], seen: list[AnsweredRequest], root: str
) -> Iterator[Deletion]:
    """The same where zxids are unknown: a request explains a deletion shortly after it."""
    requests_for: dict[str, list[AnsweredRequest]] = {}
    for request in seen:
        for path in request.deletes(root):
            requests_for.setdefault(path, []).append(request)
    for gone in deletions:
        requests = requests_for.get(gone.path, [])
        match = next(
            (
                request
                for request in requests
                if request.asked_ns <= gone.at_ns <= request.answered_ns + LATE_NS
            ),
            None,
        )
        if match is None:
            yield gone
        else:
            requests.remove(match)
