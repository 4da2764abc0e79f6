"""A ZooKeeper that somebody else runs, used for a live run and left as it was.

Everything of the run stands below a root of its own and is removed with it. Nobody here
can read the log of its servers, so what the service agreed upon is put together from what
passed through the proxy and from what an observer saw being deleted.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from real.access import Access, client_of, connect
from real.ledger import Agreed, Ledger
from real.observer import Observer
from real.problems import EnvironmentProblem
from real.scratch import remove
from real.server import Server
from real.tap import Seen, Tap

LATE_NS = 1_000_000_000
"""How long after the answer to its request a deletion may be seen."""


@dataclass(frozen=True, slots=True)
class Somebody:
    """The server that serves, as far as anybody here can tell."""

    name: str


class Existing:
    """The ZooKeeper of a run, where it is not ours."""

    servers: tuple[Server, ...] = ()
    """None of them is ours to stop."""

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
    def leader(self) -> Somebody | None:
        """Whoever serves, if anybody does."""
        return Somebody(self.name) if self.operator.connected else None

    @property
    def server_of(self) -> dict[str, str]:
        """Address -> what the trace calls the server there."""
        return dict.fromkeys(self.addresses, self.name)

    def start(self) -> KazooClient:
        """Connect, make the root, and begin to look."""
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
        """Remove everything that the run has made."""
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

    # --- what it did -------------------------------------------------------------------

    def agreed(self, begin_ns: int) -> Iterator[Agreed]:
        """What the service agreed upon, in order; call it when all members have ended."""
        self.observer.stop()
        ledger = Ledger(self.root)
        seen = sorted(self.tap.seen, key=lambda one: one.zxid)
        moments: list[tuple[int, int, Seen | str | int]] = []
        last_ns = 0
        for one in seen:  # the order of zxids, whatever the order of the answers
            last_ns = max(last_ns, one.answered_ns)
            moments.append((last_ns, 1, one))
        moments += [(at_ns, 0, session) for session, at_ns in self.tap.opened().items()]
        unasked = _unasked(self.observer.deletions, seen, self.root)
        moments += [(at_ns, 2, path) for at_ns, path in unasked]
        zxid = 0
        for at_ns, _, what in sorted(moments, key=lambda moment: moment[:2]):
            at_us = max(at_ns - begin_ns, 0) // 1000
            if isinstance(what, Seen):
                zxid = what.zxid
                kind, detail = what.told(ledger)
                yield Agreed(zxid, what.session, at_us, kind, detail)
            elif isinstance(what, int):
                yield Agreed(zxid, what, at_us, "session opened", {})
            elif session := ledger.owners.get(what, 0):
                zxid += 1  # the end of a session is a write too
                did = ledger.ended(session)
                yield Agreed(zxid, session, at_us, "session expired", {"did": did})


def _unasked(
    deletions: list[tuple[int, str]], seen: list[Seen], root: str
) -> Iterator[tuple[int, str]]:
    """The deletions that no request explains."""
    asked: dict[str, list[Seen]] = {}
    for one in seen:
        for path in one.deletes(root):
            asked.setdefault(path, []).append(one)
    for at_ns, path in deletions:
        requests = asked.get(path, [])
        match = next(
            (one for one in requests if one.asked_ns <= at_ns <= one.answered_ns + LATE_NS), None
        )
        if match is None:
            yield at_ns, path
        else:
            requests.remove(match)
