"""Plays steps of `steps` on servers, through bare sockets, and notes all that comes back.

What comes back is a *transcript* of each step: for each slot and observer, in order, the answers,
the events, and the ends of connections. Values that two servers cannot share are replaced:

- times (ctime, mtime) are left out;
- a session id is the ordinal number of the session;
- zxids count from the one at the beginning.

How it works
  Each step ends with a *barrier*: every connection sends pings and reads until one is answered
  with the newest zxid that any connection has seen. A server sends the events of a change before
  any answer that has seen it, so by then every event has arrived, and no step's events are taken
  for those of the next one.

  A connection that a server has closed is resumed at the end of its step, since its session
  would otherwise end at a moment that the step does not state. One observer for each server has a
  recursive watch at the root and never changes anything.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.wire import jute
from bench.wire.jute import Op
from bench.wire.raw_line import ANSWER_S, SESSION_MS, Line
from bench.wire.steps import Burst, Close, Expire, Knock, Move, Request, SetWatches, Step

EOF_S = 2.0
EXPIRY_S = 8.0
SETTLE_S = 0.5
"""Longer than a follower takes to report signs of life to its leader."""
POLL_S = 0.02
NO_PASSWORD = bytes(16)
Transcript = dict[str, list[Any]]


@dataclass(slots=True)
class Slot:
    """A client that the steps name: its session and its connection."""

    name: str
    server: int = 0
    line: Line | None = None
    session: int = 0
    password: bytes = NO_PASSWORD
    last_zxid: int = 0
    xid: int = 0
    notes: list[Any] = field(default_factory=list)
    """What has arrived in this step."""


class Player:
    """Plays steps on the servers at these addresses."""

    def __init__(self, addresses: Sequence[str], slots: int) -> None:
        self.addresses = addresses
        self._sessions: dict[int, str] = {0: "none"}
        self._base = 0
        self._newest_zxid = 0
        self._slots = [Slot(f"slot {number}") for number in range(slots)]
        self._observers = [Slot(f"observer {number}", number) for number in range(len(addresses))]
        for observer in self._observers:
            self._open(observer)
        for observer in self._observers:
            watch_all = jute.with_int("/", 1)
            self._ask(observer, [Request(Op.ADD_WATCH, watch_all)])
            self._read_all(observer)
        self._barrier()
        self._base = self._newest_zxid
        for slot in self._everyone():
            slot.notes.clear()

    def _everyone(self) -> list[Slot]:
        return [*self._slots, *self._observers]

    def close(self) -> None:
        """Close every connection."""
        for slot in self._everyone():
            if slot.line is not None:
                slot.line.close()

    # --- steps -------------------------------------------------------------------------

    def play(self, step: Step) -> Transcript:
        """Play a step; returns what has arrived, by slot."""
        slot = self._slots[step.slot % len(self._slots)]
        if slot.line is None:
            slot.server = step.slot % len(self.addresses)
            self._open(slot)
        if slot.line is not None:
            _PLAY[type(step)](self, slot, step)
        self._barrier()
        for every in self._everyone():
            self._mend(every)
        transcript = {every.name: every.notes for every in self._everyone() if every.notes}
        for every in self._everyone():
            every.notes = []
        return transcript

    def _burst(self, slot: Slot, step: Burst) -> None:
        self._ask(slot, step.requests)
        self._read_all(slot)
        if step.closes:
            self._await_end(slot, EOF_S)

    def _set_watches(self, slot: Slot, step: SetWatches) -> None:
        body = jute.LONG.pack(slot.last_zxid - step.age)
        body += b"".join(jute.vector(map(jute.buffer, paths)) for paths in step.paths)
        opcode = Op.SET_WATCHES if len(step.paths) == 3 else Op.SET_WATCHES_2
        self._ask(slot, [Request(opcode, body, xid=jute.SET_WATCHES_XID)])
        self._read_all(slot)

    def _close(self, slot: Slot, step: Close) -> None:
        self._ask(slot, [*step.requests, Request(Op.CLOSE, b"")])
        self._read_all(slot)
        self._await_end(slot, EOF_S)
        self._forget(slot)

    def _move(self, slot: Slot, step: Move) -> None:
        """Go on over another connection; the old one is closed first, or finds out."""
        old = slot.line
        assert old is not None, "a step begins with a connection"
        if step.drops:
            old.close()
        slot.line = None
        slot.server = step.server % len(self.addresses)
        was = slot.last_zxid
        self._open(slot, timeout_ms=step.timeout_ms, read_only=step.read_only)
        if not step.drops:
            self._find_out(slot, old, was)

    def _find_out(self, slot: Slot, old: Line, zxid: int) -> None:
        """Write over the old connection of a session that has moved."""
        body = jute.create("/by-the-old-connection", b"", [(31, "world", "anyone")], 0)
        self._barrier()
        old.send(jute.request(9_999, Op.CREATE, body))
        old.awaited.append((9_999, Op.CREATE))
        stand_in = Slot("old", line=old, last_zxid=zxid)
        self._read_all(stand_in)
        self._await_end(stand_in, EOF_S)
        slot.notes.append(("the old connection", stand_in.notes))
        old.close()

    def _knock(self, slot: Slot, step: Knock) -> None:
        """Request a session that must not be granted, beside the connection of the slot."""
        line = Line(self.addresses[step.server % len(self.addresses)])
        session, password, zxid = slot.session, slot.password, slot.last_zxid
        if step.how == "wrong password":
            password = bytes(15) + b"x"
        elif step.how == "short password":
            password = b"no"
        elif step.how == "unknown session":
            session = 0x1234567890
        else:
            zxid = self._newest_zxid + (1 << 20)
        data = jute.connect_request(session, password, SESSION_MS, zxid, read_only=False)
        line.send(data)
        payload = line.frame(ANSWER_S)
        found = "no answer" if payload is None else jute.granted(payload)
        if isinstance(found, jute.Granted) and found.session:
            found = found._replace(session=-1, password=None)
        # With several servers the password is looked at by one that need not have the session.
        is_closed = line.frame(EOF_S) is None and not line.is_open
        slot.notes.append(("knocked", step.how, found, is_closed))
        line.close()
        if step.how in ("wrong password", "short password") and len(self.addresses) == 1:
            self._await_end(slot, EOF_S)

    def _expire(self, slot: Slot, step: Expire) -> None:
        """Let the session end by silence, while all others stay alive."""
        assert slot.line is not None, "a step begins with a connection"
        slot.line.close()
        slot.line = None
        if len(self.addresses) > 1:
            # A follower reports signs of life, with the timeout of that time, a little later.
            time.sleep(SETTLE_S)
        self._open(slot, timeout_ms=1)
        if slot.line is None:
            return
        if step.drops:
            slot.line.close()
        line, slot.line = slot.line, None
        before = self._observers[0].last_zxid
        ends = time.monotonic() + EXPIRY_S
        while self._observers[0].last_zxid == before and time.monotonic() < ends:
            time.sleep(POLL_S)
            self._barrier()
        if not step.drops:
            stand_in = Slot("silent", line=line)
            self._await_end(stand_in, EOF_S)
            slot.notes.append(("the silent connection", stand_in.notes))
            line.close()
        slot.notes.append(("expired", self._observers[0].last_zxid - before))
        self._forget(slot)

    # --- sessions ----------------------------------------------------------------------

    def _open(
        self, slot: Slot, *, timeout_ms: int = SESSION_MS, read_only: bool | None = False
    ) -> None:
        """Begin or resume the slot's session on a new connection."""
        line = Line(self.addresses[slot.server])
        line.send(
            jute.connect_request(
                slot.session, slot.password, timeout_ms, slot.last_zxid, read_only=read_only
            )
        )
        payload = line.frame(ANSWER_S)
        if payload is None:
            slot.notes.append(("connect", "closed" if not line.is_open else "no answer"))
            line.close()
            self._forget(slot)
            return
        granted = jute.granted(payload)
        if granted.session and granted.session not in self._sessions:
            self._sessions[granted.session] = f"session {len(self._sessions)}"
        name = self._sessions.get(granted.session, "another")
        password = granted.password
        is_same = password == slot.password
        slot.notes.append(
            (
                "connect",
                granted.protocol,
                granted.timeout_ms,
                name,
                password is not None and (len(password), any(password)),
                granted.read_only,
                "" if not slot.session or not granted.session else is_same,
            )
        )
        if not granted.session:
            line.frame(EOF_S)
            slot.notes.append("closed" if not line.is_open else "still open")
            line.close()
            self._forget(slot)
            return
        slot.line, slot.session, slot.password = line, granted.session, password or NO_PASSWORD
        slot.xid = 0

    def _forget(self, slot: Slot) -> None:
        """The session is over: the next step of the slot begins another one."""
        if slot.line is not None:
            slot.line.close()
        slot.line, slot.session, slot.password, slot.last_zxid = None, 0, NO_PASSWORD, 0

    def _mend(self, slot: Slot) -> None:
        """Resume a session whose connection is gone."""
        if slot.line is None or slot.line.is_open:
            return
        slot.line.close()
        slot.line = None
        self._open(slot)
        if slot.name.startswith("observer") and slot.line is not None:
            self._ask(slot, [Request(Op.ADD_WATCH, jute.with_int("/", 1))])
            self._read_all(slot)

    # --- requests and answers ----------------------------------------------------------

    def _ask(self, slot: Slot, requests: Sequence[Request]) -> None:
        line = slot.line
        if line is None:
            return
        frames = []
        for request in requests:
            slot.xid += request.xid is None
            xid = slot.xid if request.xid is None else request.xid
            frames.append(jute.request(xid, request.opcode, request.body))
            line.awaited.append((xid, request.opcode))
        line.send(b"".join(frames))

    def _barrier(self) -> None:
        """Read everything that is due on every connection."""
        behind = [*self._everyone()]
        ends = time.monotonic() + ANSWER_S
        while behind and time.monotonic() < ends:
            for slot in behind:
                if slot.line is not None and slot.line.is_open:
                    self._ask(slot, [Request(Op.PING, b"", xid=jute.PING_XID)])
            for slot in behind:
                self._read_all(slot, notes_end=True)
            # A follower answers a write before other servers, the leader too, have applied it.
            behind = [
                slot
                for slot in self._everyone()
                if slot.line is not None and slot.line.is_open
                if slot.last_zxid < self._newest_zxid
            ]

    def _read_all(self, slot: Slot, *, notes_end: bool = False) -> None:
        """Read until every request is answered or the connection is closed."""
        line = slot.line
        while line is not None and line.awaited:
            payload = line.frame(ANSWER_S)
            if payload is not None:
                self._take(slot, line, payload)
                continue
            if not line.is_open:
                missing = [opcode for _, opcode in line.awaited]
                slot.notes.append("closed")
                if not notes_end:
                    slot.notes.append(("not answered", missing))
            else:
                slot.notes.append(("no answer", list(line.awaited)))
            line.awaited.clear()

    def _await_end(self, slot: Slot, timeout_s: float) -> None:
        """Read until the connection is closed."""
        line = slot.line
        if line is None:
            return
        while (payload := line.frame(timeout_s)) is not None:
            self._take(slot, line, payload)
        slot.notes.append("still open" if line.is_open else "closed")

    def _take(self, slot: Slot, line: Line, payload: bytes) -> None:
        xid, zxid, error = jute.REPLY_HEAD.unpack_from(payload)
        body = payload[jute.REPLY_HEAD.size :]
        if xid == jute.EVENT_XID:
            slot.notes.append(("event", self._zxid(zxid), error, *jute.event(body)))
            return
        slot.last_zxid = max(slot.last_zxid, zxid)
        self._newest_zxid = max(self._newest_zxid, zxid)
        awaited, opcode = line.awaited.popleft() if line.awaited else (None, 0)
        if xid == jute.PING_XID == awaited and not error:
            return
        try:
            value = self._shared(jute.answer(opcode, body))
        except jute.Undecoded as wrong:
            value = ("undecoded", str(wrong))
        note = (xid if xid == awaited else (xid, "instead of", awaited), opcode)
        slot.notes.append((*note, self._zxid(zxid), error, value))

    # --- what both servers share -------------------------------------------------------

    def _zxid(self, zxid: int) -> int:
        """A zxid, counted from the first one."""
        if zxid <= 0:
            return zxid
        return zxid - self._base

    def _shared(self, value: Any) -> Any:
        if isinstance(value, jute.Stat):
            return (
                *map(self._zxid, (value.czxid, value.mzxid, value.pzxid)),
                *value[4:7],
                self._sessions.get(value.owner, value.owner),
                *value[8:10],
            )
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._shared, value))
        return value


_PLAY: dict[type, Any] = {
    Burst: Player._burst,
    SetWatches: Player._set_watches,
    Close: Player._close,
    Move: Player._move,
    Knock: Player._knock,
    Expire: Player._expire,
}
