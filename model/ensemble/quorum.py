"""Which server leads, which ones follow, and which ones have no leader.

How it works
  The servers that run, do not stand still and are not cut off from one another form a *side*;
  at most one side has a majority. A killed server is missed at once, as its connections break.
  One that stands still or is cut off is missed after `sync_ticks` ticks without a sign of life.
  Then the state of each server is settled anew:

  - the leader is in the side with the majority: it goes on, servers outside of it look for a
    leader and close their connections, servers that have come back follow again;
  - it is not: it steps down, all connections of all servers are closed, and after an election
    the server of the majority's side with the highest number leads in a new epoch. Without a
    majority a server that may be read-only serves reads after a while, with what it has.

  A server logs what is committed when it is committed, and applies it later if it lags; so
  every server of that side has the whole history, and applies the rest of it before it leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from watchkeeper.model.ensemble.clock import Timer
from watchkeeper.model.ensemble.server import Server, ServerState

if TYPE_CHECKING:
    from watchkeeper.model.ensemble.ensemble import Ensemble


class Quorum:
    """The roles of an ensemble's servers."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self.leader: Server | None = None
        self.has_majority = False
        """Whether the leader reaches a majority, itself included, so that it can commit."""
        self._sides: dict[Server, int] = {}
        """Server -> the side of a cut that it is on; 0 without a cut."""
        self._silent_since_ms: dict[Server, float] = {}
        """The servers that send no sign of life, and since when."""
        self._timers: set[Timer] = set()

    @property
    def servers(self) -> tuple[Server, ...]:
        """The servers of the ensemble."""
        return self._ensemble.servers

    def begin(self) -> None:
        """Elect the first leader, with no delay."""
        self._elect()

    def stop(self) -> None:
        """Stop every timer."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def is_linked(self, one: Server, other: Server) -> bool:
        """Whether messages pass between two servers."""
        return self._sides.get(one, 0) == self._sides.get(other, 0)

    # --- what happens to servers -------------------------------------------------------

    def cut(self, servers: Iterable[Server]) -> None:
        """Cut these servers off from the others."""
        side = max(self._sides.values(), default=0) + 1
        for server in servers:
            self._sides[server] = side
        self._missed_in_time()

    def heal(self, servers: Iterable[Server] | None = None) -> None:
        """End the cuts around these servers; every cut without them."""
        for server in tuple(self._sides) if servers is None else servers:
            self._sides.pop(server, None)
        self._returned()
        if self._sides:  # a server that is still cut off may have lost the others of its side
            self._missed_in_time()

    def pause(self, server: Server) -> None:
        """Make a server stand still."""
        server.is_paused = True
        if server is self.leader:
            self._ensemble.sessions.stop()
        if len(self.servers) == 1:
            self._count()
        else:
            self._missed_in_time()

    def go_on(self, server: Server) -> None:
        """Let a server that stood still go on."""
        server.is_paused = False
        if server is self.leader:
            # Signs of life that lie in its sockets help no session: it looks at the clock first.
            self._ensemble.sessions.go_on()
        server.work_off()
        if server.is_deposed:
            self._later(self._ensemble.settings.tick_ms / 2, self._settle)
        else:
            self._returned()

    def kill(self, server: Server) -> None:
        """End a server's process."""
        server.die()
        self._settle()

    def start(self, server: Server) -> None:
        """Start a server that is down."""
        if server.state is ServerState.DOWN:
            self._look(server)
            self._returned()

    # --- settling ----------------------------------------------------------------------

    def _later(self, delay_ms: float, call: Callable[[], None]) -> None:

        def run() -> None:
            self._timers.discard(timer)
            call()

        timer = self._ensemble.clock.call_later(delay_ms, run)
        self._timers.add(timer)

    def _missed_in_time(self) -> None:
        """Some server is silent: entries wait, and after some ticks it is missed."""
        self._count()
        self._later(self._sync_ms, self._settle)

    def _returned(self) -> None:
        """Some server is back."""
        self._settle()
        self._ensemble.log_held()
        self._ensemble.flush()

    @property
    def _sync_ms(self) -> float:
        settings = self._ensemble.settings
        return settings.sync_ticks * settings.tick_ms

    def _majority(self) -> tuple[Server, ...]:
        """The servers of the side with a majority; none if there is no such side."""
        there = [server for server in self.servers if server.is_running and not server.is_paused]
        for server in there:
            side = tuple(other for other in there if self.is_linked(server, other))
            if 2 * len(side) > len(self.servers):
                return side
        return ()

    def _count(self) -> None:
        """Find out which servers are silent, and whether the leader can commit."""
        side = self._majority()
        leader = self.leader
        now_ms = self._ensemble.clock.now_ms()
        for server in self.servers:
            is_cut_off = leader is not None and not self.is_linked(server, leader)
            is_silent = (
                server.is_paused or is_cut_off or (server is leader and leader not in side)
            )
            if not is_silent:
                self._silent_since_ms.pop(server, None)
            else:
                self._silent_since_ms.setdefault(server, now_ms)
            server.is_connected = (
                server.is_serving and not server.is_deposed and leader is not None
            ) and not is_cut_off
        self.has_majority = leader is not None and leader in side

    def _is_missed(self, server: Server) -> bool:
        """Whether a server has been silent for so long that the others go on without it."""
        since_ms = self._silent_since_ms.get(server)
        if not server.is_running or len(self.servers) == 1:
            return not server.is_running
        return since_ms is not None and self._ensemble.clock.now_ms() - since_ms >= self._sync_ms

    def _settle(self) -> None:
        self._count()
        leader = self.leader
        running = sum(server.is_running for server in self.servers)
        if leader is None or self._is_missed(leader) or 2 * running <= len(self.servers):
            self._lose_leader()
        else:
            self._keep_leader()
        self._count()
        self._ensemble.flush()

    def _keep_leader(self) -> None:
        for server in self.servers:
            if self._is_missed(server):
                self._send_away(server)
            elif server not in self._silent_since_ms and (
                not server.is_serving or server.is_deposed
            ):
                self._follow(server)

    def _send_away(self, server: Server) -> None:
        """A server loses its leader; one that stands still learns of it when it goes on."""
        if server.is_serving and server.is_paused:
            server.depose()
        elif server.is_serving:
            self._look(server)

    def _look(self, server: Server) -> None:
        """A server looks for a leader, and may serve reads if it finds none."""
        server.enter(ServerState.LOOKING)
        settings, since_ms = self._ensemble.settings, server.looking_since_ms

        def serve_reads() -> None:
            is_looking = server.state is ServerState.LOOKING
            if is_looking and server.looking_since_ms == since_ms and not server.is_paused:
                server.enter(ServerState.READ_ONLY)

        if settings.read_only_mode:
            self._later(settings.read_only_after_ms, serve_reads)

    def _follow(self, server: Server) -> None:
        if server.is_deposed:  # it closes its connections first
            server.enter(ServerState.LOOKING)
        server.load()
        server.enter(ServerState.FOLLOWING)

    def _lose_leader(self) -> None:
        self.leader = None
        self.has_majority = False
        self._ensemble.sessions.stop()
        self._ensemble.forget_held()
        for server in self.servers:
            self._send_away(server)
        if self._majority():
            is_alone = len(self.servers) == 1
            self._later(0 if is_alone else self._ensemble.settings.election_ms, self._elect)

    def _elect(self) -> None:
        side = self._majority()
        if self.leader is not None or not side:
            return
        leader = self.leader = side[-1]
        leader.apply_all()
        self._ensemble.begin_epoch()
        is_alone = len(self.servers) == 1
        for server in side:
            server.load()
            if server is not leader:
                server.enter(ServerState.FOLLOWING)
        leader.enter(ServerState.STANDALONE if is_alone else ServerState.LEADING)
        self._count()
        self._ensemble.restart_sessions()
        self._ensemble.sessions.go_on()
