"""What the proxy saw pass: every write that a server answered, even if its client never heard.

The log of a ZooKeeper that somebody else runs cannot be read. But all that a run's members
ask passes through the proxy, and so do the answers, each with the zxid of the write. What
no member asked for, that a silent session ended, the proxy cannot see; an observer can,
by the ephemerals that go with it.

No log says which watches fired. Their events pass here too; since ZooKeeper 3.9 each bears
the zxid of the change.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from model.trace import Row
from real.ledger import Ledger
from real.wire import (
    CLOSE_SESSION,
    CREATE,
    CREATE_2,
    DELETE,
    ERROR,
    MULTI,
    REPLY,
    REQUEST,
    SET_DATA,
    WORDS,
    Fields,
    Session,
    reply_of,
    request_of,
    zxid_of,
)

if TYPE_CHECKING:
    from real.link import Link

CREATES = frozenset({CREATE, CREATE_2, 19, 21})
EPHEMERAL = 1


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that was answered, or a session that was granted."""

    session: int
    zxid: int
    asked_ns: int
    answered_ns: int
    opcode: int
    request: bytes
    reply: bytes
    error: int

    @property
    def is_refused(self) -> bool:
        """Whether it failed; a multi says so by its first part."""
        is_multi = self.opcode == MULTI and not self.error
        return bool(self.error) or (is_multi and Fields(self.reply).number() == ERROR)

    def told(self, ledger: Ledger) -> tuple[str, dict[str, Any]]:
        """What it was: the kind of event and its detail."""
        if self.opcode == CLOSE_SESSION:
            return "session closed", {"did": ledger.ended(self.session)}
        if self.is_refused:
            return "refused", {"op": WORDS.get(self.opcode, "create")}
        did = list(_done(self.opcode, self.session, Fields(self.request), self.reply, ledger))
        return "applied", {"op": WORDS.get(self.opcode, "create"), "did": did}

    def deletes(self, root: str) -> Iterator[str]:
        """The paths below the root that it deleted, written without it."""
        if not self.is_refused and self.opcode != CLOSE_SESSION:
            for row in _done(self.opcode, 0, Fields(self.request), self.reply, Ledger(root)):
                if row[0] == "deleted":
                    yield row[1]


def _done(
    opcode: int, session: int, asked: Fields, reply: bytes, ledger: Ledger
) -> Iterator[list[Any]]:
    """What a request did that was not refused."""
    if opcode == MULTI:
        yield from _all_done(session, asked, ledger)
    elif opcode in CREATES:
        path, data = asked.string(), asked.buffer()
        asked.pass_over_acl()
        owner = session if asked.number() & EPHEMERAL else 0
        made = (
            Fields(reply).string() if reply else path
        )  # a sequential one is named by its server
        yield from ledger.created(made, owner, data)
    elif opcode == DELETE:
        path = asked.string()
        asked.number()
        yield from ledger.deleted(path)
    elif opcode == SET_DATA:
        path, data = asked.string(), asked.buffer()
        asked.number()
        yield from ledger.changed(path, data)
    else:  # a check, or another list of who may do what
        asked.string()
        asked.number()


def _all_done(session: int, asked: Fields, ledger: Ledger) -> Iterator[list[Any]]:
    """What the parts of a multi did."""
    while (opcode := asked.number()) != ERROR:
        asked.flag()
        asked.number()
        yield from _done(opcode, session, asked, b"", ledger)


class Granted(NamedTuple):
    """A client was let in, with a session that was new or went on."""

    at_ns: int
    client: str
    server: str
    session: int


class Fired(NamedTuple):
    """An event that a server sent to a client."""

    at_ns: int
    client: str
    server: str
    session: int
    zxid: int
    """0 where the server does not say which change it was."""
    what: str
    path: str


Place = tuple[str, int, str]
"""A client, the moment of the run, a server."""

FIRED = {1: "created", 2: "deleted", 3: "changed", 4: "children"}
"""The numbers of events, and what a trace calls them; others tell of the session."""
EVENT = -1


@dataclass(slots=True)
class Tap:
    """Notes what passes; it is told by the proxy's one thread."""

    seen: list[Seen] = field(default_factory=list)
    granted: list[Granted] = field(default_factory=list)
    fired: list[Fired] = field(default_factory=list)
    _asked: dict[tuple[int, int], tuple[int, int, bytes]] = field(default_factory=dict)

    def asked(self, link: Link, frame: bytes) -> None:
        """A frame is on its way to a server, over this connection."""
        request = request_of(frame)
        if request is not None and (request.is_write or request.opcode == CLOSE_SESSION):
            body = frame[REQUEST.size :]
            self._asked[link.number, request.xid] = (time.monotonic_ns(), request.opcode, body)

    def let_in(self, link: Link, session: Session) -> None:
        """A server has granted a session, or let one go on."""
        client, server = link.way.guest.name, link.way.server
        self.granted.append(Granted(time.monotonic_ns(), client, server, session.number))

    def opened(self) -> dict[int, int]:
        """Session -> when it was granted."""
        return {one.session: one.at_ns for one in reversed(self.granted)}

    def came(self, link: Link, frame: bytes) -> None:
        """A frame has come from a server."""
        head = reply_of(frame)
        if head is None or link.session is None:
            return
        zxid = zxid_of(frame)
        if head[0] == EVENT:
            self._note_event(link, link.session, zxid, Fields(frame[REPLY.size :]))
        else:
            self._note_answer(link, link.session, zxid, head, frame)

    def _note_event(self, link: Link, session: Session, zxid: int, event: Fields) -> None:
        what = FIRED.get(event.number())
        event.number()  # the state of the session
        if what is not None:
            client, server = link.way.guest.name, link.way.server
            now = time.monotonic_ns()
            fired = Fired(now, client, server, session.number, max(zxid, 0), what, event.string())
            self.fired.append(fired)

    def _note_answer(
        self, link: Link, session: Session, zxid: int, head: tuple[int, int], frame: bytes
    ) -> None:
        found = self._asked.pop((link.number, head[0]), None)
        if found is None:
            return
        asked_ns, opcode, body = found
        self.seen.append(
            Seen(
                session.number,
                zxid,
                asked_ns,
                time.monotonic_ns(),
                opcode,
                body,
                frame[REPLY.size :],
                head[1],
            )
        )

    def places(self, begin_ns: int, server_of: Mapping[str, str]) -> Iterator[Place]:
        """Which server let a client in, and when."""
        for one in self.granted:
            yield one.client, max(one.at_ns - begin_ns, 0) // 1000, server_of[one.server]

    def rows(
        self, root: str, begin_ns: int, group_of: Mapping[str, str], server_of: Mapping[str, str]
    ) -> Iterator[Row]:
        """The events as rows of a trace; `server_of` names the server at each address."""
        for one in self.fired:
            path = one.path.removeprefix(root) or "/"
            detail = {"what": one.what, "path": path, "at": server_of[one.server]}
            yield (
                max(one.at_ns - begin_ns, 0) // 1000,
                one.client,
                "fires",
                one.session,
                group_of.get(one.client, ""),
                "",
                "",
                one.zxid,
                detail,
            )
