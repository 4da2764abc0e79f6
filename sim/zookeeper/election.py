"""The election of a leader, and what happens while there is none.

what happens                 what follows
the leader is killed         within 9-26 ms all its clients, and those of its followers,
                             are disconnected; 0.25-0.5 s later another leads
the leader stands still or   its followers notice after `SYNC_LIMIT` ticks, elect another
is cut off                   and drop their clients; the old one serves stale reads for
                             some milliseconds after it wakes
a follower is killed         its clients are disconnected
a follower is cut off        it serves stale reads for `SYNC_LIMIT` ticks, then drops all
the majority is gone         the leader drops its clients within a tick; nothing is
                             served, and no session ends, until there is one again
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from watchkeeper.model.trace.kinds import EventKind

if TYPE_CHECKING:
    from watchkeeper.sim.zookeeper.ensemble import Ensemble
    from watchkeeper.sim.zookeeper.server import Server

SYNC_LIMIT = 4
"""`syncLimit`: ticks after which leader and follower give each other up."""


class Election:
    """The roles of an ensemble's servers."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self.kernel = ensemble.kernel
        self.elections = 0
        self._waiting_for_resume: list[Callable[[], None]] = []
        self._waiting_for_touch: list[tuple[Server, Callable[[], None]]] = []
        self._is_electing = False
        self._lost_us = 0

    def begin(self) -> None:
        """The run begins with a leader."""
        servers = self.ensemble.servers
        self._lead(servers[self.ensemble.chance.below(len(servers))], servers)

    def when_resumed(self, call: Callable[[], None]) -> None:
        """Do something once the leader, which stands still, goes on."""
        self._waiting_for_resume.append(call)

    def when_in_touch(self, server: Server, call: Callable[[], None]) -> None:
        """Do something once a server and the leader, which are cut off, are in touch again."""
        self._waiting_for_touch.append((server, call))

    # --- servers come and go -----------------------------------------------------------

    def kill(self, server: Server) -> int:
        """A server's process is killed; how many connections it had."""
        was_leader = server is self.ensemble.leader
        self._tell(server, "down")
        server.state = "down"
        if server.is_paused:
            self.ensemble.network.servers_paused -= 1
        server.is_paused = server.is_deposed = False
        server.forget_backlog()
        self._leave(server)
        broken = server.hang_up_on_all()
        if was_leader:
            self._lose_leader()
        else:
            self.reconsider()
        return broken

    def revive(self, server: Server) -> None:
        """A server's process is started; it can take part some time later."""
        delay = self.ensemble.chance.draw(self.kernel.profile.restart)
        self.kernel.after(delay, self._revived, server)

    def _revived(self, server: Server) -> None:
        if server.state == "down":
            server.state = "looking"
            self._tell(server, "up")
            self.reconsider()

    def pause(self, server: Server) -> None:
        """A server stands still."""
        self._tell(server, "paused")
        server.is_paused = True
        self.ensemble.network.pause_server()
        server.paused_us = self.kernel.now_us
        self.reconsider()

    def resume(self, server: Server) -> None:
        """A server goes on. A leader first ends the sessions that were due meanwhile."""
        self._tell(server, "resumed")
        server.is_paused = False
        self.ensemble.network.servers_paused -= 1
        if server is self.ensemble.leader:
            self.ensemble.sessions.end_overdue()
        elif server.is_deposed:
            delay = self.ensemble.chance.draw(self.kernel.profile.stale_service)
            self.kernel.after(delay, self._step_down, server)
        elif self._was_given_up(server):
            self._look(server)
        server.work_off_backlog()
        if server is self.ensemble.leader:
            waiting, self._waiting_for_resume = self._waiting_for_resume, []
            for call in waiting:
                call()
        self._catch_up(server)
        self.reconsider()

    def _was_given_up(self, server: Server) -> bool:
        """Whether a follower stood still for so long that its leader dropped it."""
        silent_us = self.kernel.now_us - server.paused_us
        too_long = silent_us > SYNC_LIMIT * self.ensemble.tick_us
        return server.state == "following" and (
            too_long or server.joined_epoch != self.ensemble.epoch
        )

    def links_break(self) -> None:
        """Servers are about to be cut off; what has reached them until now they have."""
        for server in self.ensemble.servers:
            self._catch_up(server)

    def links_changed(self) -> None:
        """Servers were cut off from one another, or are in touch again."""
        for server in self.ensemble.servers:
            if server.is_deposed and not server.is_paused:
                self._step_down(server)
            self._catch_up(server)
        waiting, self._waiting_for_touch = self._waiting_for_touch, []
        for server, call in waiting:
            if self.ensemble.hears_leader(server):
                call()
            else:
                self.when_in_touch(server, call)
        self.reconsider()

    def _catch_up(self, server: Server) -> None:
        """Apply what was committed while a follower could not hear of it."""
        if server.state == "following":
            server.take_over(server.generation)

    # --- roles -------------------------------------------------------------------------

    def reconsider(self) -> None:
        """Check the roles again after a server or a link has changed."""
        ensemble = self.ensemble
        leader = ensemble.leader
        if leader is None:
            self._elect_soon()
            return
        limit_us = SYNC_LIMIT * ensemble.tick_us
        if leader.is_paused:
            self.kernel.after(limit_us, self._check_leader, ensemble.epoch)
            return
        followers = [server for server in ensemble.servers if self._follows(server, leader)]
        if len(followers) + 1 >= ensemble.quorum:
            self._join_all(leader)
            ensemble.replicate_again()
            for server in ensemble.servers:
                if server.state == "following" and not ensemble.in_touch(server, leader):
                    self.kernel.after(limit_us, self._check_follower, (ensemble.epoch, server))
        else:
            cut_off = any(
                server.state == "following" for server in ensemble.servers if server is not leader
            )
            patience = limit_us if cut_off else ensemble.tick_us * 3 // 4
            self.kernel.after(patience, self._check_leader, ensemble.epoch)

    def _follows(self, server: Server, leader: Server) -> bool:
        """Whether a server is a follower that the leader can count on, or could become one."""
        return (
            server is not leader
            and server.state in ("following", "looking")
            and not server.is_paused
            and self.ensemble.in_touch(server, leader)
        )

    def _check_leader(self, epoch: int) -> None:
        """The patience with a leader is used up: is it still out of touch?"""
        ensemble = self.ensemble
        leader = ensemble.leader
        if epoch != ensemble.epoch or leader is None or ensemble.quorum == 1:
            return  # a single server has no rival: it leads whatever happens
        followers = sum(self._follows(server, leader) for server in ensemble.servers)
        if not leader.is_paused and followers + 1 >= ensemble.quorum:
            return
        others = [server for server in ensemble.servers if server is not leader]
        if self._majority(others):
            leader.is_deposed = True
            self._depose(leader)
        else:
            self._lose_leader()

    def _check_follower(self, message: tuple[int, Server]) -> None:
        epoch, server = message
        leader = self.ensemble.leader
        if epoch != self.ensemble.epoch or leader is None or server.state != "following":
            return
        if not self.ensemble.in_touch(server, leader):
            self._look(server)

    def _look(self, server: Server) -> None:
        """A server has no leader: it drops its clients and serves no requests."""
        self._leave(server)
        server.state = "looking"
        server.hang_up_on_all()

    def _leave(self, server: Server) -> None:
        server.generation += 1
        server.behind.clear()

    def _step_down(self, server: Server) -> None:
        """A deposed leader has found out."""
        if server.is_deposed and not server.is_paused:
            server.is_deposed = False
            self._look(server)
            self.reconsider()

    def _depose(self, leader: Server) -> None:
        """The majority gives its leader up; the leader itself does not know."""
        self._forget_leader(leader)
        for server in self.ensemble.servers:
            if server is not leader and server.state == "following":
                self._look(server)
        if not leader.is_paused:
            self._step_down(leader)
        self._elect_soon()

    def _lose_leader(self) -> None:
        """There is no leader, or it has no majority: soon every server has noticed."""
        leader = self.ensemble.leader
        if leader is None:
            return
        leader.is_deposed = leader.is_paused
        self._forget_leader(leader)
        delay = self.ensemble.chance.draw(self.kernel.profile.break_spreads)
        self.kernel.after(delay, self._break_all, self.ensemble.epoch)

    def _break_all(self, epoch: int) -> None:
        if epoch == self.ensemble.epoch:
            for server in self.ensemble.servers:
                if server.is_serving and not server.is_paused:
                    self._look(server)
            self._elect_soon()

    def _forget_leader(self, leader: Server) -> None:
        self.kernel.write(leader.name, EventKind.LEADER_LOST)
        self.ensemble.leader = None
        self.ensemble.epoch += 1
        self._waiting_for_resume.clear()
        self._waiting_for_touch.clear()
        self._lost_us = self.kernel.now_us

    # --- electing ----------------------------------------------------------------------

    def _majority(self, servers: list[Server]) -> list[Server]:
        """Servers that are up, awake and all in touch with one of them, if they are enough."""
        awake = [
            server
            for server in servers
            if server.state != "down" and not server.is_paused and not server.is_deposed
        ]
        for centre in awake:
            near = [
                other
                for other in awake
                if other is centre or self.ensemble.in_touch(centre, other)
            ]
            if len(near) >= self.ensemble.quorum:
                return near
        return []

    def _elect_soon(self) -> None:
        if self._is_electing or self.ensemble.leader is not None:
            return
        if self._majority(self.ensemble.servers):
            self._is_electing = True
            delay = self.ensemble.chance.draw(self.kernel.profile.election)
            self.kernel.after(delay, self._elect, None)

    def _elect(self, _: None) -> None:
        self._is_electing = False
        if self.ensemble.leader is not None:
            return
        voters = self._majority(self.ensemble.servers)
        if voters:
            self._lead(max(voters, key=self._log_length), voters)

    def _log_length(self, server: Server) -> tuple[int, int]:
        """How much of the undecided log a server has, and its number to break ties."""
        logged = 0
        # What reached a log after the leader was lost does not count: it was never sent.
        for entry in self.ensemble.uncommitted:
            if entry.logged_us.get(server.index, 1 << 62) > self._lost_us:
                break
            logged += 1
        return logged, server.index

    def _lead(self, leader: Server, voters: list[Server]) -> None:
        ensemble = self.ensemble
        self.elections += 1
        survivors = self._log_length(leader)[0] if ensemble.uncommitted else 0
        # The new leader's log decides: entries that it has are committed now, the others
        # are lost, although some follower may have logged them.
        for _ in range(survivors):
            ensemble.settle(ensemble.uncommitted.popleft(), leader)
        ensemble.uncommitted.clear()
        self._new_epoch()
        ensemble.leader = leader
        ensemble.epoch += 1
        leader.state = "leading"
        leader.joined_epoch = ensemble.epoch
        leader.tree = ensemble.committed
        leader.touch_shift_us = 0
        for server in voters:
            if server is not leader:
                self._join(server)
        self.kernel.write(
            leader.name, EventKind.LEADER_ELECTED, {"epoch": self.elections, "kept": survivors}
        )
        ensemble.sessions.after_election()

    def _new_epoch(self) -> None:
        """A zxid is the epoch in its upper half and a count in its lower half."""
        ensemble = self.ensemble
        if len(ensemble.servers) > 1:
            ensemble.committed = replace(ensemble.committed, zxid=self.elections << 32)
        ensemble.head = ensemble.committed

    def _join_all(self, leader: Server) -> None:
        for server in self.ensemble.servers:
            if (
                server.state == "looking"
                and self._follows(server, leader)
                and not server.is_deposed
            ):
                self._join(server)

    def _join(self, server: Server) -> None:
        """A server takes over the leader's tree and follows it."""
        server.generation += 1
        server.behind.clear()
        server.state = "following"
        server.joined_epoch = self.ensemble.epoch
        server.tree = self.ensemble.committed
        server.touch_shift_us = self.ensemble.chance.below(self.ensemble.tick_us // 2)

    def _tell(self, server: Server, state: str) -> None:
        self.kernel.write(server.name, EventKind.SERVER_STATE, {"state": state})
