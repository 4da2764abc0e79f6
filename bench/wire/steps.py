"""Random steps for servers that are compared through the wire: requests, moves, ends of sessions.

A step names a *slot* and never depends on what came back, so any part of a script is a script:
a slot without a session begins one, whatever was left out before. Paths lie in one small tree
for each script, so that requests meet each other.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from random import Random

from bench.wire import jute
from bench.wire.jute import OPEN, AclEntry, Op, Text

# --- steps -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """A request; without `xid` it takes the next number of its connection."""

    opcode: int
    body: bytes
    xid: int | None = None


@dataclass(frozen=True, slots=True)
class Burst:
    """Requests that are sent in one piece; with `closes` the server hangs up after the last."""

    slot: int
    requests: tuple[Request, ...]
    closes: bool = False


@dataclass(frozen=True, slots=True)
class SetWatches:
    """Set watches again, as seen `age` zxids before the last one that the slot has seen."""

    slot: int
    age: int
    paths: tuple[tuple[str, ...], ...]
    """Data, exists, child, and with five lists persistent and recursive."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the session behind some requests."""

    slot: int
    requests: tuple[Request, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """Resume the session over a new connection, of any server."""

    slot: int
    server: int
    drops: bool
    """Whether the client closes the old connection first."""
    timeout_ms: int
    read_only: bool | None


@dataclass(frozen=True, slots=True)
class Knock:
    """Request a session with something that is wrong."""

    slot: int
    server: int
    how: str


@dataclass(frozen=True, slots=True)
class Expire:
    """Let the session end by silence."""

    slot: int
    drops: bool
    """Whether the client's connection is closed meanwhile."""


Step = Burst | SetWatches | Close | Move | Knock | Expire

HOW = ("wrong password", "short password", "unknown session", "zxid of the future")


def number_of(step: Step) -> int:
    """How many operations a step has."""
    return max(1, len(getattr(step, "requests", ())))


def as_text(step: Step) -> str:
    """A step for people: a request is its opcode and its bytes."""
    requests = getattr(step, "requests", None)
    if requests is None:
        return repr(step)
    shown = []
    for request in requests:
        known = request.opcode in set(Op)
        name = Op(request.opcode).name if known else str(request.opcode)
        xid = "" if request.xid is None else f" xid {request.xid}"
        shown.append(f"\n        {name}{xid} {readable(request.body)}")
    closes = ", the last one closes" if getattr(step, "closes", False) else ""
    return f"{type(step).__name__} of slot {step.slot}{closes}:{''.join(shown)}"


def readable(body: bytes) -> str:
    """Bytes with what is text in them, short enough for a line."""
    text = repr(body[:160])[2:-1].replace("\\x00\\x00\\x00", "...")
    return text + (f" ({len(body)} bytes)" if len(body) > 160 else "")


# --- what steps are drawn from ---------------------------------------------------------------

NAMES = ("a", "b", "c")
ODD_NAMES = ("ü", "x y", "...", "..x", "日本", "q-", "z" * 70)
CONFIGURATION = "/zookeeper/config"
"""The znode in which an ensemble of Apache's servers describes itself."""
BAD_PATHS: tuple[Text, ...] = (
    *("", "/", "foo", "foo/bar", None),
    *("{}//a", "{}/", "{}/.", "{}/..", "{}/a/../b", "{}/a\0b", "{}/\x01", "{}/\x7f"),
    *("{}/\U0001f600", "{}/\ue000", "{}/\ufff0", "//", "/../x", "{}/nope/deeper/still"),
    *("/zookeeper", CONFIGURATION, "/zookeeper/config/x", "/zookeeper/quota"),
)
EPHEMERAL_FLAGS = (1, 3)
BAD_UTF_8 = (b"/\xff\xfe", b"/a\xc3", b"/\xed\xa0\x80", b"/\xc0\xaf", b"/\xf5\x80\x80\x80")


def digest(name: str) -> str:
    """The identity that a digest credential of `name` and its password stands for."""
    data = hashlib.sha1(f"{name}:{name}".encode()).digest()
    return f"{name}:{base64.b64encode(data).decode()}"


ACLS: tuple[tuple[AclEntry, ...], ...] = (
    ((1, "world", "anyone"),),
    ((31, "digest", digest("ann")),),
    ((31, "digest", digest("bob")), (1, "world", "anyone")),
    ((31, "auth", ""),),
    ((31, "auth", None),),
    ((27, "auth", "ignored"), (4, "world", "anyone")),
    ((31, "ip", "127.0.0.1"),),
    ((31, "ip", "127.0.0.0/8"),),
    ((31, "ip", "10.0.0.0/8"), (16, "world", "anyone")),
    ((31, "world", "anyone"), (31, "world", "anyone")),
    ((0, "world", "anyone"),),
    ((3, "world", "anyone"), (12, "digest", digest("ann"))),
)
BAD_ACLS: tuple[tuple[AclEntry, ...] | None, ...] = (
    None,
    ((31, None, None),),
    ((31, "world", None),),
    ((31, "digest", None),),
    ((31, "ip", None),),
    (),
    ((31, "world", "all"),),
    ((31, "nosuch", "x"),),
    ((31, "digest", "ann"),),
    ((31, "digest", ""),),
    ((31, "digest", "a:b:c"),),
    ((31, "ip", "300.1.1.1"),),
    ((31, "ip", "127.0.0.1/40"),),
    ((31, "ip", "127.0.0"),),
    ((31, "ip", ""),),
    ((63, "world", "anyone"),),
    ((-1, "world", "anyone"),),
    ((31, "x509", "CN=x"),),
    ((31, "super", ""),),
    ((31, "sasl", "someone"),),
)
CREDENTIALS: tuple[tuple[str | None, bytes | None], ...] = (
    *(("digest", b"ann:ann"), ("digest", b"bob:bob"), ("digest", b"ann:ann")),
    *(("ip", b""), ("ip", b"1.2.3.4")),
)
BAD_CREDENTIALS: tuple[tuple[str | None, bytes | None], ...] = (
    *(("nosuch", b"x"), ("world", b"anyone"), ("", b""), ("sasl", b"x"), ("x509", b"")),
)
CREATE_SESSION = -10
UNKNOWN_OPCODES = (CREATE_SESSION, 10, 13, 23, 99, 108, 200, 1000, -2, -3, -9, 0x7FFFFFFF)
DATA: tuple[bytes | None, ...] = (None, b"", b"x", b"\0\xff", b"some data", b"y" * 300)
TTLS_MS = (*(3_600_000,) * 6, 0, -1, -5, (1 << 40) - 1, 1 << 40)
VERSIONS = (-1, -1, -1, -1, 0, 0, 1, 2, 3, -2, 1 << 30)


class Steps:
    """Draws the steps of one script."""

    def __init__(self, chance: Random, root: str, *, slots: int, servers: int) -> None:
        self._chance = chance
        self._root = root
        self._slots = slots
        self._servers = servers
        self._is_orderly = servers > 1
        """Whether each write can be decoded: one that cannot breaks the history of an ensemble
        of Apache's servers, whose followers then answer nothing."""

    def script(self, operations: int) -> list[Step]:
        """At least so many operations, after the root of the script."""
        script: list[Step] = [Burst(0, (self._create_of(self._root, OPEN, 0),))]
        done = 0
        while done < operations:
            script.append(self.step())
            done += number_of(script[-1])
        return script

    def step(self) -> Step:
        """One step, whatever went before."""
        chance = self._chance
        slot = chance.randrange(self._slots)
        drawn = chance.random()
        if drawn < 0.90:
            return Burst(slot, self._requests())
        if drawn < 0.925:
            return self._alone(slot)
        if drawn < 0.945:
            return self._set_watches(slot)
        if drawn < 0.958:
            return Close(slot, self._reads() if chance.random() < 0.5 else ())
        if drawn < 0.985:
            return self._move(slot)
        if drawn < 0.996:
            return Knock(slot, chance.randrange(self._servers), chance.choice(HOW))
        return Expire(slot, chance.random() < 0.5)

    def _move(self, slot: int) -> Move:
        chance = self._chance
        return Move(
            slot,
            chance.randrange(self._servers),
            drops=chance.random() < 0.7,
            timeout_ms=chance.choice((30_000, 40_000, 25_001, 28_000)),
            read_only=chance.choice((False, None, True, False)),
        )

    def _set_watches(self, slot: int) -> SetWatches:
        lists = self._chance.choice((3, 5))
        paths = tuple(
            tuple(self._good_path() for _ in range(self._chance.choice((0, 1, 1, 3))))
            for _ in range(lists)
        )
        return SetWatches(slot, self._chance.choice((0, 0, 1, 3, 20)), paths)

    def _alone(self, slot: int) -> Burst:
        """What a server answers out of turn, or hangs up on, goes alone."""
        chance = self._chance
        drawn = chance.random()
        if drawn < 0.45:
            return Burst(slot, (self._auth(*chance.choice(CREDENTIALS)),))
        if drawn < 0.6:
            return Burst(slot, (self._auth(*chance.choice(BAD_CREDENTIALS)),), closes=True)
        if drawn < 0.8:
            opcode = chance.choice(UNKNOWN_OPCODES[self._is_orderly :])
            return Burst(slot, (Request(opcode, b""),), closes=opcode != CREATE_SESSION)
        if drawn < 0.9:
            return Burst(slot, (Request(Op.WHO_AM_I, b""),))
        return Burst(slot, (self._large(),))

    @staticmethod
    def _auth(scheme: str | None, credential: bytes | None) -> Request:
        body = jute.INT.pack(0) + jute.buffer(scheme) + jute.buffer(credential)
        return Request(Op.AUTH, body, xid=jute.AUTH_XID)

    def _large(self) -> Request:
        data = bytes(self._chance.choice((100_000, 500_000)))
        return Request(
            Op.SET_DATA, jute.buffer(self._good_path()) + jute.buffer(data) + b"\xff" * 4
        )

    def _requests(self) -> tuple[Request, ...]:
        requests: list[Request] = []
        for _ in range(self._chance.choice((1, 1, 2, 3, 5, 9))):
            requests.append(self._request())
            # Apache's server holds what is behind a setACL against the old list or the new one,
            # as the time falls.
            if requests[-1].opcode == Op.SET_ACL:
                break
        return tuple(requests)

    def _reads(self) -> tuple[Request, ...]:
        """What may go before a close: which znodes the session has, and in which table Apache's
        server keeps them, must not depend on how far it has come with writes."""
        return tuple(
            Request(opcode, self._body(opcode)) for opcode in self._chance.sample(READS, 3)
        )

    # --- one request -------------------------------------------------------------------

    def _request(self) -> Request:
        chance = self._chance
        opcode = chance.choices(OPCODES, WEIGHTS)[0]
        request = Request(opcode, self._body(opcode))
        if chance.random() < 0.01 and not self._is_orderly:
            return Request(opcode, self._damaged(request.body))
        return request

    def _damaged(self, body: bytes) -> bytes:
        """A body that ends early, or goes on."""
        if self._chance.random() < 0.3:
            return body + b"\0\0\0\x07"
        return body[: self._chance.randrange(len(body) + 1)]

    def _create_of(self, path: Text, entries: tuple[AclEntry, ...] | None, flags: int) -> Request:
        return Request(Op.CREATE, jute.create(path, b"", entries, flags))

    def _good_path(self) -> str:
        chance = self._chance
        depth = chance.choice((0, 1, 1, 1, 2, 2, 3))
        names = [
            chance.choice(NAMES) if chance.random() < 0.93 else chance.choice(ODD_NAMES)
            for _ in range(depth)
        ]
        return "/".join((self._root, *names))

    def _path(self, *, is_mild: bool = False) -> Text:
        drawn = self._chance.random()
        if drawn < 0.955:
            return self._good_path()
        if drawn < 0.99:
            path = self._chance.choice(BAD_PATHS)
            if (is_mild and path is None) or (self._is_orderly and path == CONFIGURATION):
                return "foo"
            return path.format(self._root) if isinstance(path, str) else path
        return self._chance.choice(BAD_UTF_8)

    def _acl(self, *, is_mild: bool = False) -> tuple[AclEntry, ...] | None:
        drawn = self._chance.random()
        if drawn < 0.8:
            return OPEN
        if drawn < 0.95:
            return self._chance.choice(ACLS)
        return self._chance.choice(BAD_ACLS[5:] if is_mild else BAD_ACLS)

    def _flags(self, *, in_multi: bool) -> int:
        if self._chance.random() < 0.02 and not self._is_orderly:
            wrong = (4, 7, 8, -1, 99, 0x7FFFFFFF)
            return self._chance.choice(wrong if in_multi else (*wrong, 5, 6))
        return self._chance.choice((0, 0, 0, 0, 1, 1, 2, 3))

    def _body(self, opcode: int, *, in_multi: bool = False) -> bytes:
        chance = self._chance
        # Midway in a multi, Apache's server does not undo what came before a null.
        is_mild = in_multi or self._is_orderly
        path, acl = self._path(is_mild=is_mild), self._acl(is_mild=is_mild)
        match opcode:
            case Op.CREATE | Op.CREATE_2:
                flags = self._flags(in_multi=in_multi)
                return jute.create(path, chance.choice(DATA), acl, flags)
            case Op.CREATE_CONTAINER:
                flags = 4 if chance.random() < 0.9 else self._flags(in_multi=in_multi)
                if flags in EPHEMERAL_FLAGS:
                    # Until Apache's server has applied such a container, it takes it for an
                    # ephemeral, which may have no children: a matter of time.
                    flags = 4
                return jute.create(path, chance.choice(DATA), acl, flags)
            case Op.CREATE_TTL:
                flags = chance.choice((5, 5, 6, 5, 6, self._flags(in_multi=in_multi)))
                body = jute.create(path, chance.choice(DATA), acl, flags)
                # Unlooked at, a wrong TTL would end Apache's server.
                ttls = (3_600_000,) if in_multi or flags not in (5, 6) else TTLS_MS
                return body + jute.LONG.pack(chance.choice(ttls))
            case Op.DELETE | Op.CHECK:
                return jute.with_int(path, chance.choice(VERSIONS))
            case Op.SET_DATA:
                version = jute.INT.pack(chance.choice(VERSIONS))
                return jute.buffer(path) + jute.buffer(chance.choice(DATA)) + version
            case Op.SET_ACL:
                version = jute.INT.pack(chance.choice(VERSIONS))
                return jute.buffer(path) + jute.acl(acl) + version
            case Op.EXISTS | Op.GET_DATA | Op.GET_CHILDREN | Op.GET_CHILDREN_2:
                return jute.with_watch(path, chance.random() < 0.5)
            case Op.CHECK_WATCHES | Op.REMOVE_WATCHES:
                return jute.with_int(path, chance.choice((1, 2, 3, 3, 3, 4, 5, 0, 9)))
            case Op.ADD_WATCH:
                return jute.with_int(path, chance.choice((0, 1, 0, 1, 0, 1, 2, -1)))
            case Op.MULTI:
                return jute.multi(self._parts(MULTI_PARTS))
            case Op.MULTI_READ:
                return jute.multi(self._parts(MULTI_READ_PARTS))
            case Op.RECONFIG:
                return jute.buffer(None) * 3 + jute.LONG.pack(-1)
            case Op.WHO_AM_I | Op.PING:
                return b""
            case _:  # getACL, sync, getEphemerals, getAllChildrenNumber, deleteContainer
                return jute.buffer(path)

    def _parts(self, opcodes: tuple[int, ...]) -> list[tuple[int, bytes]]:
        number = self._chance.choice((0, 1, 2, 2, 3, 3, 4, 6))
        parts = [self._chance.choice(opcodes) for _ in range(number)]
        if self._chance.random() < 0.01 and not self._is_orderly:
            parts.append(self._chance.choice((Op.EXISTS, Op.SET_ACL, Op.SYNC, 77)))
        return [(opcode, self._body(opcode, in_multi=True)) for opcode in parts]


REQUESTS = {
    Op.CREATE: 16,
    Op.CREATE_2: 10,
    Op.CREATE_CONTAINER: 3,
    Op.CREATE_TTL: 3,
    Op.DELETE: 14,
    Op.SET_DATA: 8,
    Op.SET_ACL: 3,
    Op.GET_ACL: 3,
    Op.EXISTS: 8,
    Op.GET_DATA: 8,
    Op.GET_CHILDREN: 5,
    Op.GET_CHILDREN_2: 5,
    Op.SYNC: 2,
    Op.MULTI: 8,
    Op.MULTI_READ: 4,
    Op.ADD_WATCH: 3,
    Op.REMOVE_WATCHES: 2,
    Op.CHECK_WATCHES: 2,
    Op.GET_EPHEMERALS: 2,
    Op.COUNT_DESCENDANTS: 2,
    Op.DELETE_CONTAINER: 1,
    Op.WHO_AM_I: 1,
    Op.RECONFIG: 0.2,
    Op.PING: 0.5,
}
OPCODES, WEIGHTS = tuple(map(int, REQUESTS)), tuple(REQUESTS.values())
READS = tuple(map(int, (Op.EXISTS, Op.GET_DATA, Op.GET_CHILDREN_2, Op.GET_ACL, Op.SYNC)))
MULTI_PARTS: tuple[int, ...] = (
    *(Op.CREATE, Op.CREATE, Op.CREATE_2, Op.DELETE, Op.DELETE, Op.SET_DATA, Op.SET_DATA),
    *(Op.CHECK, Op.CREATE_CONTAINER, Op.CREATE_TTL),
)
MULTI_READ_PARTS: tuple[int, ...] = (Op.GET_DATA, Op.GET_CHILDREN)
