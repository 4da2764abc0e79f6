"""Carries out the strikes of a plan in a world, and counts what they struck.

A strike waits until its request has been received, then for its moment. Requests are counted as
the servers receive them, pings left out. A strike that finds nothing to strike counts nothing:
the report of a run says which of its faults had an effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from watchkeeper.model.actor.operations import Operation
from watchkeeper.model.ensemble.control import ControlError
from watchkeeper.virtual.threads.lock import NS
from watchkeeper.virtual.threads.process import Process
from watchkeeper.virtual.world.faults import FaultKind, Strike

if TYPE_CHECKING:
    from watchkeeper.model.ensemble.connection import Connection
    from watchkeeper.model.wire.requests import Request
    from watchkeeper.virtual.world.world import World

SLOWEST_MESSAGE_S = 0.5
OWN_FAULTS = 1_000_000
"""Faults that the servers do not know are numbered from here on in a trace."""


@dataclass(eq=False, slots=True)
class Blow:
    """A strike of the plan, and what it has struck."""

    strike: Strike
    effects: Counter[str] = field(default_factory=Counter)
    at_us: int | None = None
    end: Callable[[], object] | None = None

    def count(self, effect: str, number: int = 1) -> None:
        """It has struck."""
        self.effects[effect] += number


class Nemesis:
    """The faults of one run."""

    def __init__(self, world: World, plan: tuple[Strike, ...]) -> None:
        self._world = world
        self.blows = [Blow(strike) for strike in plan]
        self.requests = 0
        """How many requests the servers have received."""
        self._due: dict[int, list[Blow]] = {}
        for blow in self.blows:
            self._due.setdefault(blow.strike.request, []).append(blow)
        self.last_effect_us = 0
        """When the last fault struck or ended."""

    def begin(self) -> None:
        """Arm what comes with the begin of the run."""
        for blow in self._due.pop(0, ()):
            self._launch(blow, None)

    def received(self, connection: Connection, request: Request) -> None:
        """A server has received a request: the strikes that come with it are due."""
        if not isinstance(request.body, Operation):
            return
        self.requests += 1
        for blow in self._due.pop(self.requests, ()):
            self._launch(blow, connection)

    def end_all(self) -> None:
        """End what still lasts."""
        for blow in self.blows:
            self._end(blow)

    def _launch(self, blow: Blow, connection: Connection | None) -> None:
        if blow.strike.fault.is_aimed:
            self._strike(blow, connection)  # the request that it comes with may be struck itself
            return
        delay_ns = int(blow.strike.after_s * NS)
        self._world.scheduler.call_later(delay_ns, lambda: self._strike(blow, connection))

    def _strike(self, blow: Blow, connection: Connection | None) -> None:
        blow.at_us = self._world.now_us
        with suppress(ControlError):  # as "there is no leader now": it has no effect
            STRIKES[blow.strike.fault.kind](self, blow, connection)
        self._touch()
        if blow.end is not None:
            self._world.scheduler.call_later(
                int(blow.strike.lasts_s * NS), lambda: self._end(blow)
            )

    def _end(self, blow: Blow) -> None:
        if blow.end is not None:
            end, blow.end = blow.end, None
            end()
            self._touch()

    def _touch(self) -> None:
        self.last_effect_us = self._world.now_us
        self._world.look()

    # --- victims -----------------------------------------------------------------------

    def _victim(self, blow: Blow) -> Process | None:
        wanted = blow.strike.fault.victims
        alive = [
            process
            for process in self._world.scheduler.processes
            if process.is_alive and process.tasks and (not wanted or process.name in wanted)
        ]
        return alive[int(blow.strike.aim * len(alive))] if alive else None

    def _report(self, blow: Blow, name: str, node: str, **detail: Any) -> None:
        number = OWN_FAULTS + self.blows.index(blow)
        self._world.report_fault(name, node, number=number, **detail)

    def _do(self, verb: str, blow: Blow, **arguments: Any) -> Callable[[], object] | None:
        """Carry out a verb of the ensemble's control; returns what ends it."""
        control = self._world.zookeeper.control
        number = control.do(verb, arguments)

        def end() -> None:
            blow.effects.update(control.end(number))

        self._world.at_end(lambda: blow.effects.update(control.effects(number)))
        return end

    # --- strikes -----------------------------------------------------------------------

    def _lose(self, blow: Blow, connection: Connection | None) -> None:
        fault = blow.strike.fault
        arguments: dict[str, Any] = {"operation": fault.operation, "path": fault.path}
        if fault.operation is None and fault.path is None and connection is not None:
            arguments["session"] = connection.session
        verb = "drop_next_reply" if fault.kind is FaultKind.LOST_REPLY else "lose_next_request"
        if fault.kind is FaultKind.LATE_REQUEST:
            arguments["lands_after_s"] = blow.strike.lasts_s
        self._do(verb, blow, **arguments)

    def _sessions_of(self, process: Process) -> list[int]:
        return self._world.sessions_of(process)

    def _expire(self, blow: Blow, connection: Connection | None) -> None:
        process = self._victim(blow)
        for session in self._sessions_of(process) if process else ():
            self._do("expire", blow, session=session)

    def _disconnect(self, blow: Blow, connection: Connection | None) -> None:
        process = self._victim(blow)
        for session in self._sessions_of(process) if process else ():
            self._do("disconnect", blow, session=session, for_s=blow.strike.lasts_s)

    def _cut(self, blow: Blow, connection: Connection | None) -> None:
        process = self._victim(blow)
        if process is None:
            return
        network, one_way = self._world.network, blow.strike.fault.one_way
        servers = self._world.server_addresses
        # Which of the two directions a one-way cut takes is part of the aim.
        is_outward = not one_way or int(blow.strike.aim * 1000) % 2 == 0
        ends = [
            (process.address, server) if is_outward else (server, process.address)
            for server in servers
        ]
        for a, b in ends:
            network.cut(a, b, one_way=one_way)
        blow.count("links cut", len(ends))
        self._report(blow, "cut", process.name, lasts=blow.strike.lasts_s)

        def heal() -> None:
            for a, b in ends:
                network.heal(a, b)
            self._report(blow, "cut", process.name)

        blow.end = heal

    def _delay(self, blow: Blow, connection: Connection | None) -> None:
        process = self._victim(blow)
        if process is None:
            return
        network = self._world.network
        extra_ns = int(blow.strike.aim * SLOWEST_MESSAGE_S * NS)
        for server in self._world.server_addresses:
            network.delay(process.address, server, extra_ns)
        blow.count("links slowed", len(self._world.server_addresses))
        self._report(blow, "delay", process.name, lasts=blow.strike.lasts_s)

        def end() -> None:
            for server in self._world.server_addresses:
                network.delay(process.address, server, 0)
            self._report(blow, "delay", process.name)

        blow.end = end

    def _pause(self, blow: Blow, connection: Connection | None) -> None:
        process = self._victim(blow)
        if process is None or process.is_paused:
            return
        scheduler = self._world.scheduler
        scheduler.pause(process)
        blow.count("processes paused")
        self._report(blow, "pause", process.name, lasts=blow.strike.lasts_s)

        def resume() -> None:
            if process.is_alive:
                scheduler.resume(process)
                self._report(blow, "pause", process.name)

        blow.end = resume

    def _crash(self, blow: Blow, connection: Connection | None) -> None:
        process = self._victim(blow)
        if process is None:
            return
        self._report(blow, "crash", process.name)
        self._world.scheduler.crash(process)
        blow.count("processes crashed")
        if blow.strike.fault.restarts:
            blow.end = lambda: self._world.restart(process)

    def _skew(self, blow: Blow, connection: Connection | None) -> None:
        process = self._victim(blow)
        if process is None:
            return
        sign = 1 if int(blow.strike.aim * 1000) % 2 else -1
        process.wall_offset_ns += sign * int(blow.strike.lasts_s * NS)
        blow.count("clocks moved")
        self._report(blow, "clock skew", process.name, by_s=sign * blow.strike.lasts_s)

    def _lag(self, blow: Blow, connection: Connection | None) -> None:
        followers = [
            server
            for server in self._world.zookeeper.ensemble.servers
            if server.state.value == "follower"
        ]
        if followers:
            number = followers[int(blow.strike.aim * len(followers))].number
            blow.end = self._do("lag", blow, server=number, by_s=max(blow.strike.lasts_s, 0.001))

    def _lose_leader(self, blow: Blow, connection: Connection | None) -> None:
        blow.end = self._do("kill", blow, server="leader")

    def _lose_quorum(self, blow: Blow, connection: Connection | None) -> None:
        blow.end = self._do("quorum_loss", blow)


STRIKES: dict[FaultKind, Callable[[Nemesis, Blow, Any], None]] = {
    FaultKind.LOST_REPLY: Nemesis._lose,
    FaultKind.LOST_REQUEST: Nemesis._lose,
    FaultKind.LATE_REQUEST: Nemesis._lose,
    FaultKind.EXPIRE: Nemesis._expire,
    FaultKind.DISCONNECT: Nemesis._disconnect,
    FaultKind.CUT: Nemesis._cut,
    FaultKind.DELAY: Nemesis._delay,
    FaultKind.PAUSE: Nemesis._pause,
    FaultKind.CRASH: Nemesis._crash,
    FaultKind.CLOCK_SKEW: Nemesis._skew,
    FaultKind.LAG: Nemesis._lag,
    FaultKind.LEADER_LOSS: Nemesis._lose_leader,
    FaultKind.QUORUM_LOSS: Nemesis._lose_quorum,
}
"""What carries out each kind."""
