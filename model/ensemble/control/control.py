"""What can be done to an ensemble while it runs: faults as verbs, and what they struck.

How it works
  `Control.do(verb, arguments)` is the one entry: a handle in the same process calls it in the
  loop's thread, the handle of another process sends the two as a line of JSON. So arguments and
  results are values that JSON has; sessions are numbers, servers are numbers or roles.

  A verb that begins something returns the number of a *fault*. `effects(fault)` is what it has
  struck until now, counted in words, and `end(fault)` ends it: a loss that has struck nothing is
  disarmed, a cut is healed, a killed server is started. A fault that strikes nothing counts
  nothing, since a test that does not notice that says nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from watchkeeper.model.actor.operations import (
    Check,
    Create,
    Delete,
    Multi,
    MultiRead,
    Operation,
    Pipelined,
)
from watchkeeper.model.ensemble.connection import Connection
from watchkeeper.model.ensemble.control.observer import Delay, Lag, Observer
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.entry import Entry
from watchkeeper.model.ensemble.faults import Loss, Lost
from watchkeeper.model.ensemble.history import History
from watchkeeper.model.ensemble.server import Server, ServerState
from watchkeeper.model.trace.text import WORDS
from watchkeeper.model.trace.trace import Row
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import Request
from watchkeeper.model.zookeeper.acl import Identities
from watchkeeper.model.zookeeper.paths import ROOT, parent_of

OPERATIONS = {word: kind for kind, word in WORDS.items() if kind not in (Check, Pipelined)}
"""The word for an operation, as traces have it -> its class."""
LEADING = (ServerState.LEADING, ServerState.STANDALONE)


def _nothing() -> None:
    """End a fault that is over once it has struck."""


class ControlError(Exception):
    """A verb that cannot be carried out; the message says why and what to do."""


@dataclass(eq=False, slots=True)
class Fault:
    """A fault that has been injected: what it has struck, and what ends it."""

    verb: str
    effects: Counter[str] = field(default_factory=Counter)
    end: Callable[[], object] = _nothing

    def count(self, effect: str, number: int = 1) -> None:
        """Count an effect; none of it is no effect."""
        if number:
            self.effects[effect] += number


class Control:
    """The faults of one ensemble; to be used in the thread of its loop alone."""

    def __init__(self, ensemble: Ensemble, history: History | None = None) -> None:
        self._ensemble = ensemble
        self._history = history
        self._observer = Observer(ensemble, ensemble.recorder)
        self._faults: list[Fault] = []
        self._cuts: list[tuple[Server, ...]] = []

    def do(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a verb and return its result, a value of JSON.

        Raises ControlError for what cannot be done.
        """
        if verb in QUESTIONS:
            return QUESTIONS[verb](self, **arguments)
        number, fault = len(self._faults), Fault(verb)
        self._faults.append(fault)
        lasts = verb in LASTING
        target = self._target(arguments.get("server"))
        self._report(verb, {"number": number, "lasts": lasts, **arguments, **target})
        try:
            FAULTS[verb](self, fault, **arguments)
        except ControlError as error:
            self._report(verb, {"number": number, "missed": str(error)})
            raise
        self._ensemble.flush()
        return number

    def _target(self, name: int | str | None) -> dict[str, Any]:
        """The server that has a role now, and the role by which it is named."""
        if name not in ("leader", "follower"):
            return {}
        with suppress(ControlError):  # the verb itself raises it
            return {"server": self._named(name)[0].number, "role": name}
        return {}

    def _report(self, verb: str, detail: Mapping[str, Any]) -> None:
        self._ensemble.recorder.fault(verb, detail)

    # --- questions ---------------------------------------------------------------------

    def effects(self, fault: int) -> dict[str, int]:
        """What a fault has struck until now."""
        return dict(self._faults[fault].effects)

    def end(self, fault: int) -> dict[str, int]:
        """End a fault; returns what it has struck."""
        ended = self._faults[fault]
        if ended.end is not _nothing:
            self._end(fault, ended)
            self._ensemble.flush()
        return dict(ended.effects)

    def _end(self, number: int, fault: Fault) -> None:
        end, fault.end = fault.end, _nothing
        end()
        self._report(fault.verb, {"number": number, "effects": dict(fault.effects)})

    def end_all(self) -> None:
        """End every fault, the last one first."""
        for fault in reversed(range(len(self._faults))):
            self.end(fault)

    def servers(self) -> list[dict[str, Any]]:
        """The number, state and role of each server, and what it has applied."""
        return [
            {
                "number": server.number,
                "state": _state_of(server),
                "role": server.state.value if server.has_sessions else None,
                "zxid": server.tree.zxid,
                "connections": len(server.connections),
            }
            for server in self._ensemble.servers
        ]

    def history(self) -> list[Row]:
        """The rows of the trace since its begin; none if no history is kept."""
        return [] if self._history is None else list(self._history.rows)

    def begin_history(self) -> None:
        """Forget the rows until now, and number clients from 1 again."""
        if self._history is not None:
            self._history.begin(self._ensemble)

    def sessions(self) -> dict[str, int]:
        """The sessions that live, in the order of their begin: number -> timeout in ms."""
        known = self._ensemble.committed.sessions
        return {str(number): known[number].timeout_ms for number in sorted(known)}

    def make(self, path: str) -> None:
        """Create a znode that every client may use, at the top of the tree."""
        self._operate([(Create(path), ())])

    def remove(self, path: str) -> list[str]:
        """Delete a znode and all below it; returns what no identity may delete."""
        nodes = self._ensemble.head.nodes
        below = sorted((each for each in nodes if each.startswith(f"{path}/")), reverse=True)
        gone = [each for each in (*below, path) if each in nodes]
        # Each as a client to which the list of its parent grants that.
        allowed = [nodes[parent_of(each) or ROOT].acl for each in gone]
        identities = [tuple((entry.scheme, entry.identity) for entry in acl) for acl in allowed]
        self._operate(list(zip(map(Delete, gone), identities, strict=True)))
        return [each for each in gone if each in self._ensemble.head.nodes]

    def _operate(self, operations: list[tuple[Create | Delete, Identities]]) -> None:
        """Execute operations in a session of their own, which no client has."""
        ensemble = self._ensemble
        server = ensemble.leader or ensemble.servers[0]
        session = ensemble.open_session(server, ensemble.settings.session_bounds_ms[1], _forget)
        for operation, identities in operations:
            opcode = Opcode.CREATE if isinstance(operation, Create) else Opcode.DELETE
            ensemble.submit(operation, opcode, session=session, identities=identities)
        ensemble.close_session(session, xid=1)
        ensemble.flush()

    # --- sessions and connections ------------------------------------------------------

    def expire(self, fault: Fault, *, session: int) -> None:
        """End a session as if its client had been silent."""
        if self._ensemble.leader is None:
            raise ControlError("sessions are ended by the leader, and there is none")
        if session in self._ensemble.head.sessions:
            self._ensemble.close_session(session)
            fault.count("sessions ended")

    def disconnect(self, fault: Fault, *, session: int | None = None, for_s: float = 0.0) -> None:
        """Close connections, and refuse the next ones for some seconds."""
        for connection in self._connections(session):
            connection.hang_up("disconnected on purpose")
            fault.count("connections broken")
        if for_s:
            until_ms = self._ensemble.clock.now_ms() + for_s * 1000
            faults = self._ensemble.faults
            refusal = faults.refuse(until_ms, fault.count, session=session)
            fault.end = lambda: faults.accept(refusal)

    def delay(self, fault: Fault, *, by_s: float, session: int | None = None) -> None:
        """Deliver everything later, in both directions."""
        if by_s <= 0:
            raise ControlError(f"a delay is a positive number of seconds, not {by_s}")
        delay = Delay(by_s * 1000, session, fault.count)
        self._observer.begin(delay)
        fault.end = lambda: self._observer.end(delay)

    def _connections(self, session: int | None) -> Iterator[Connection]:
        for server in self._ensemble.servers:
            for connection in list(server.connections.values()):
                if session is None or connection.session == session:
                    yield connection

    # --- requests and replies ----------------------------------------------------------

    def drop_next_reply(
        self,
        fault: Fault,
        *,
        path: str | None = None,
        operation: str | None = None,
        session: int | None = None,
    ) -> None:
        """Execute the next request that fits, and close its connection in place of a reply."""
        self._arm(fault, Lost.ANSWER, _fitting(path, operation, session), "replies lost")

    def lose_next_request(
        self,
        fault: Fault,
        *,
        path: str | None = None,
        operation: str | None = None,
        session: int | None = None,
        lands_after_s: float | None = None,
    ) -> None:
        """Close the connection of the next request that fits; it is executed later, or never."""
        lands_after_ms = None if lands_after_s is None else lands_after_s * 1000
        last = "requests lost" if lands_after_s is None else "late requests executed"
        self._arm(fault, Lost.REQUEST, _fitting(path, operation, session), last, lands_after_ms)

    def _arm(
        self,
        fault: Fault,
        what: Lost,
        fits: Callable[[Connection, Request], bool],
        last: str,
        lands_after_ms: float | None = None,
    ) -> None:
        """Wait for a request that fits; the effect `last` is the end of the fault."""
        losses, number = self._ensemble.faults.losses, self._faults.index(fault)

        def count(effect: str, times: int) -> None:
            fault.count(effect, times)
            if effect == last and fault.end is not _nothing:
                self._end(number, fault)

        loss = Loss(what, fits, count, lands_after_ms)
        losses.append(loss)

        def disarm() -> None:
            if loss in losses:
                losses.remove(loss)

        fault.end = disarm

    # --- servers -----------------------------------------------------------------------

    def pause(self, fault: Fault, *, server: int | str | None = None) -> None:
        """Let a server stand still, or all of them."""
        paused = [each for each in self._named(server) if each.is_running and not each.is_paused]
        for each in paused:
            self._ensemble.quorum.pause(each)
            fault.count("servers paused")
        fault.end = lambda: self._go_on(paused)

    def resume(self, fault: Fault, *, server: int | str | None = None) -> None:
        """Let a server that stands still go on, or all of them."""
        paused = [each for each in self._named(server) if each.is_paused]
        fault.count("servers resumed", self._go_on(paused))

    def _go_on(self, servers: Collection[Server]) -> int:
        paused = [server for server in servers if server.is_paused]
        for server in paused:
            self._ensemble.quorum.go_on(server)
        return len(paused)

    def kill(self, fault: Fault, *, server: int | str) -> None:
        """Kill a server."""
        self._kill(fault, self._named(server))

    def quorum_loss(self, fault: Fault) -> None:
        """Kill servers, the leader among them, until those that are left are no majority."""
        leader = self._ensemble.leader
        alive = [server for server in self._ensemble.servers if server.is_running]
        alive.sort(key=lambda server: server is not leader)
        surplus = len(alive) - len(self._ensemble.servers) // 2
        self._kill(fault, alive[: max(surplus, 0)])

    def _kill(self, fault: Fault, servers: Collection[Server]) -> None:
        killed = [server for server in servers if server.is_running]
        for server in killed:
            self._ensemble.quorum.kill(server)
            fault.count("servers killed")
        fault.end = lambda: self._start(killed)

    def start(self, fault: Fault, *, server: int | str | None = None) -> None:
        """Start a server that is down, or all of them."""
        down = [each for each in self._named(server) if not each.is_running]
        fault.count("servers started", len(down))
        self._start(down)

    def _start(self, servers: Collection[Server]) -> None:
        for server in servers:
            self._ensemble.quorum.start(server)

    def lag(self, fault: Fault, *, server: int | str, by_s: float) -> None:
        """Let a follower apply later what is committed."""
        (follower,) = self._named(server)
        if follower.state in LEADING:
            raise ControlError(
                f"server {follower.number} leads, and a leader has applied everything that is "
                "committed; name a follower"
            )
        lag = Lag(follower, fault.count)
        follower.lag(by_s * 1000)
        self._observer.lags.append(lag)
        self._observer.settle()

        def end() -> None:
            self._observer.lags.remove(lag)
            self._observer.settle()
            follower.lag(0.0)

        fault.end = end

    def cut(self, fault: Fault, *, servers: list[int | str]) -> None:
        """Cut these servers off from all others."""
        apart = tuple(server for name in servers for server in self._named(name))
        others = [server for server in self._ensemble.servers if server not in apart]
        if not apart or not others:
            raise ControlError(
                f"a cut has servers on both sides, but of {len(self._ensemble.servers)} "
                f"{len(apart)} would be on one; name some of the servers, and not all"
            )
        running = [server for server in others if server.is_running]
        alive = [server for server in apart if server.is_running]
        fault.count("links between servers cut", len(running) * len(alive))
        self._ensemble.quorum.cut(apart)
        self._cuts.append(apart)
        fault.end = lambda: self._end_cut(apart)

    def _end_cut(self, apart: tuple[Server, ...]) -> None:
        if apart in self._cuts:  # `heal` may have ended it
            self._cuts.remove(apart)
            still = {server for cut in self._cuts for server in cut}
            self._ensemble.quorum.heal([server for server in apart if server not in still])

    def heal(self, fault: Fault) -> None:
        """End every cut between servers."""
        fault.count("cuts healed", len(self._cuts))
        self._cuts.clear()
        self._ensemble.quorum.heal()

    def _named(self, name: int | str | None) -> list[Server]:
        """The servers of this number or role; all of them for None."""
        servers = self._ensemble.servers
        if name is None:
            return list(servers)
        if name == "leader":
            return [_found(self._ensemble.leader, "no server leads now")]
        if name == "follower":
            following = (server for server in servers if server.state is ServerState.FOLLOWING)
            return [_found(next(following, None), "no server follows a leader now")]
        numbered = next((server for server in servers if server.number == name), None)
        numbers = ", ".join(str(server.number) for server in servers)
        return [
            _found(
                numbered, f"there is no server {name!r}; name {numbers}, 'leader' or 'follower'"
            )
        ]


def _forget(entry: Entry) -> None:
    """Do nothing about an entry that no client waits for."""


def _found(server: Server | None, problem: str) -> Server:
    if server is None:
        raise ControlError(problem)
    return server


def _state_of(server: Server) -> str:
    if not server.is_running:
        return "down"
    return "paused" if server.is_paused else "running"


def _fitting(
    path: str | None, operation: str | None, session: int | None
) -> Callable[[Connection, Request], bool]:
    """Whether a request is of this session and this operation, and names this path.

    An asterisk in the path stands for any text. A multi names the paths of its parts.
    """
    if operation is not None and operation not in OPERATIONS:
        known = ", ".join(repr(word) for word in OPERATIONS)
        raise ControlError(f"{operation!r} is no operation; name one of {known}")
    pattern = None if path is None else re.compile(".*".join(map(re.escape, path.split("*"))))

    def fits(connection: Connection, request: Request) -> bool:
        body = request.body
        return (
            isinstance(body, Operation)
            and (session is None or connection.session == session)
            and (operation is None or type(body) is OPERATIONS[operation])
            and (pattern is None or any(pattern.fullmatch(each) for each in _paths(body)))
        )

    return fits


def _paths(operation: Operation[Any]) -> Iterator[str]:
    if isinstance(operation, Multi | MultiRead):
        for part in operation.operations:
            yield part.path
    else:
        yield operation.path or "/"


QUESTIONS: dict[str, Callable[..., Any]] = {
    "effects": Control.effects,
    "end": Control.end,
    "end_all": Control.end_all,
    "servers": Control.servers,
    "sessions": Control.sessions,
    "make": Control.make,
    "remove": Control.remove,
    "history": Control.history,
    "begin_history": Control.begin_history,
}
"""The verbs that inject nothing -> what carries them out."""

FAULTS: dict[str, Callable[..., None]] = {
    "expire": Control.expire,
    "disconnect": Control.disconnect,
    "delay": Control.delay,
    "drop_next_reply": Control.drop_next_reply,
    "lose_next_request": Control.lose_next_request,
    "pause": Control.pause,
    "resume": Control.resume,
    "kill": Control.kill,
    "start": Control.start,
    "quorum_loss": Control.quorum_loss,
    "lag": Control.lag,
    "cut": Control.cut,
    "heal": Control.heal,
}
"""The verbs that return the number of a fault -> what carries them out."""

LASTING = frozenset(
    {
        *("delay", "drop_next_reply", "lose_next_request"),
        *("pause", "kill", "quorum_loss", "lag", "cut"),
    }
)
"""The verbs of what lasts until it is ended."""
