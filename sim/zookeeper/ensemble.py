"""The ensemble: one order of writes, made by a leader and followed by the others.

Theory of operation
  The leader applies each write to `head`, the newest tree, as soon as it arrives, and so
  knows the answer at once. The result is an `Entry`. It is *committed* when a majority
  has it in its log, and each server takes it over some time after that; only then do its
  clients hear of it. All servers go through the same trees in the same order, so a tree
  is built once and shared.

  When a leader is lost, an entry that was not yet committed survives exactly if the next
  leader had it in its log by then. The client has lost its connection by that
  time and cannot know: such a write *may have happened*.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from watchkeeper.model.actor.errors import ConnectionLoss, Failure
from watchkeeper.model.actor.operations import Create, Delete, DeleteContainer, Operation, SetData
from watchkeeper.model.nemesis.world import OPERATOR
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.text import described_changes, described_operation
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.tree import Change, Session, Tree, Written, empty_tree
from watchkeeper.model.zookeeper.znode import NO_SESSION
from watchkeeper.sim.engine.kernel import EPOCH_US, Kernel
from watchkeeper.sim.zookeeper.connection import Connection
from watchkeeper.sim.zookeeper.election import Election
from watchkeeper.sim.zookeeper.lifetimes import LifetimeTimer
from watchkeeper.sim.zookeeper.network import Network
from watchkeeper.sim.zookeeper.server import Server
from watchkeeper.sim.zookeeper.sessions import SHORTEST_TICKS, Sessions

OPERATOR_SESSION = -1
"""The session of an operator, which is open for one write at a time."""


def no_reply(answer: Any, zxid: int) -> None:
    """Ignore an answer: no client waits for it."""


class Entry:
    """A write in the leader's log."""

    __slots__ = (
        "answer",
        "changes",
        "detail",
        "done",
        "ends_session",
        "is_acknowledged",
        "kind",
        "logged_us",
        "node",
        "origin",
        "session",
        "syncs",
        "tree",
        "zxid",
    )

    def __init__(self, tree: Tree, session: int, node: str, kind: str) -> None:
        self.tree = tree
        self.zxid = tree.zxid
        self.session = session
        self.node = node
        """Whose session it is."""
        self.kind = kind
        self.answer: Any = None
        self.changes: tuple[Change, ...] = ()
        self.detail: dict[str, Any] = {}
        self.origin: Server | None = None
        self.done: Callable[[Any, int], object] = no_reply
        self.ends_session = False
        self.logged_us: dict[int, int] = {}
        """Server -> when it has this in its log."""
        self.is_acknowledged = False
        """Whether the leader knows that a majority has it."""
        self.syncs: list[Callable[[], None]] = []
        """Whom to answer once this is committed, because it was under way when they asked."""


class Ensemble:
    """The servers of one cluster's ZooKeeper and the order of their writes."""

    def __init__(
        self, kernel: Kernel, network: Network, plan: ClusterPlan, prefix: str, number: int
    ) -> None:
        self.number = number
        """Its place among the ensembles of a run, from 0."""
        self.kernel = kernel
        self.network = network
        self.prefix = prefix
        self.tick_us = plan.zookeeper.tick_us
        self.can_list_ephemerals = plan.zookeeper.can_list_ephemerals
        self.head = empty_tree()
        self.committed = self.head
        self.leader: Server | None = None
        self.epoch = 0
        self.uncommitted: deque[Entry] = deque()
        self.last_commit_us = 0
        self._connections = 0
        self._last_there_us = 0
        self.chance = kernel.streams(f"{prefix}ensemble")
        self.servers = [Server(self, index) for index in range(plan.zookeeper.servers)]
        self.quorum = len(self.servers) // 2 + 1
        """How many servers are a majority."""
        self.sessions = Sessions(self)
        self.election = Election(self)
        self.lifetimes = LifetimeTimer(self)

    def count_connection(self) -> int:
        """A number for a connection that is about to be made."""
        self._connections += 1
        return self._connections

    def server(self, name: str) -> Server:
        """The server of this name."""
        return next(server for server in self.servers if server.name == name)

    def in_touch(self, one: Server, other: Server) -> bool:
        """Whether two servers can exchange messages now."""
        return not (
            self.network.is_cut(one.name, other.name) or self.network.is_cut(other.name, one.name)
        )

    def hears_leader(self, server: Server) -> bool:
        """Whether there is a leader, and messages pass between it and this server."""
        leader = self.leader
        if leader is None:
            return False
        return not self.network.cuts or self.in_touch(server, leader)

    # --- writes ------------------------------------------------------------------------

    def submit(
        self,
        server: Server,
        connection: Connection,
        operation: Operation[Any],
        done: Callable[[Any, int], object],
    ) -> None:
        """Take a client's write to the leader."""
        if server is self.leader:
            self._propose(server, connection, operation, done)
        else:
            self.forward(server, lambda: self._propose(server, connection, operation, done))

    def forward(self, server: Server, call: Callable[[], None]) -> None:
        """Do something at the leader as soon as a follower's message can be there.

        While the two are out of touch the message is held up, and while the leader stands
        still it lies in its socket. Nothing comes of it when there is another leader by
        then; a leader that was deposed without knowing it forwards to no server.
        """
        if server.is_deposed or self.leader is None:
            return
        if not self.hears_leader(server):
            self.election.when_in_touch(server, lambda: self.forward(server, call))
            return
        epoch = self.epoch
        arrival_us = self.kernel.now_us + self.network.hop_us()
        if arrival_us < server.forwarded_us:
            arrival_us = server.forwarded_us
        server.forwarded_us = arrival_us

        def arrive(_: None) -> None:
            if self.epoch != epoch or self.leader is None:
                return
            if self.leader.is_paused:
                self.election.when_resumed(lambda: arrive(None))
            else:
                call()

        self.kernel.at(arrival_us, arrive, None)

    def _propose(
        self,
        server: Server,
        connection: Connection,
        operation: Operation[Any],
        done: Callable[[Any, int], object],
    ) -> None:
        session = connection.session
        if not self.sessions.may_write(session, connection):
            return
        written = writes.write(self.head, session, operation, now_ms=self.now_ms())
        entry = self._entry(written, session, connection.client.node.name, operation)
        entry.origin = server
        entry.done = done
        self.add(entry)

    def operate(
        self, operation: Create | Delete | SetData, done: Callable[[Any, int], object]
    ) -> Failure | None:
        """Carry out a write of an operator, in a session that is open for it alone.

        Return the failure of a write that is refused; the trace has nothing of it. Without a
        leader nothing is written, and the failure is ConnectionLoss.
        """
        if self.leader is None:
            return Failure(ConnectionLoss, operation.path)
        settings = Session(SHORTEST_TICKS * self.tick_us // 1000)
        opened = writes.open_session(self.head, OPERATOR_SESSION, settings)
        written = writes.write(opened, OPERATOR_SESSION, operation, now_ms=self.now_ms())
        if isinstance(written.answer, Failure):
            return written.answer
        entry = self._entry(written, NO_SESSION, OPERATOR, operation)
        entry.tree = writes.close_session(written.tree, OPERATOR_SESSION).tree
        entry.origin = self.leader
        entry.done = done
        self.add(entry)
        return None

    def delete_container(self, path: str, leader: Server) -> None:
        """Carry out the leader's own request to delete a znode whose lifetime is over."""
        operation = DeleteContainer(path)
        written = writes.write(self.head, NO_SESSION, operation, now_ms=self.now_ms())
        self.add(self._entry(written, NO_SESSION, leader.name, operation))

    def now_ms(self) -> int:
        """The wall clock of the leader."""
        return (EPOCH_US + self.kernel.now_us) // 1000

    def _entry(
        self, written: Written, session: int, node: str, operation: Operation[Any]
    ) -> Entry:
        """The entry of a write: its effect, and what the trace says of it."""
        before = self.head
        refused = type(written.answer) is Failure
        kind = EventKind.REFUSED if refused else EventKind.APPLIED
        entry = Entry(written.tree, session, node, kind)
        entry.answer = written.answer
        entry.changes = written.changes
        entry.detail = dict(described_operation(operation))
        if refused:
            entry.detail["error"] = written.answer.name
        else:
            entry.detail["did"] = described_changes(before, written)
            if type(operation) is Create:
                entry.detail["path"] = written.answer
        return entry

    def add(self, entry: Entry) -> None:
        """Put an entry at the end of the log and begin to replicate it."""
        self.head = entry.tree
        self.uncommitted.append(entry)
        self._replicate(entry)

    def _replicate(self, entry: Entry) -> None:
        """Send an entry to the followers; it is committed when a majority has logged it.

        One draw stands for the path to a follower's disk and back. The followers have it
        in their logs one hop before the leader hears of it.
        """
        leader = self.leader
        assert leader is not None, "only a leader adds to the log"
        network, now = self.network, self.kernel.now_us
        committed = now + network.sync_us()
        if committed < leader.last_logged_us:
            committed = leader.last_logged_us
        leader.last_logged_us = entry.logged_us[leader.index] = committed
        followers = self.followers()
        if len(followers) + 1 < self.quorum:
            return
        if followers:
            back = network.hop_us()
            there = now + network.hop_us() + network.sync_us()
            if there < self._last_there_us:
                there = self._last_there_us
            self._last_there_us = there
            for server in followers:
                entry.logged_us[server.index] = there
            if there + back > committed:
                committed = there + back
        if committed < self.last_commit_us:
            committed = self.last_commit_us
        self.last_commit_us = committed
        self.kernel.at(committed, self._commit, (self.epoch, entry))

    def followers(self) -> list[Server]:
        """The followers that hear of the leader now."""
        following = [
            server
            for server in self.servers
            if server.state == "following" and not server.is_paused
        ]
        if not self.network.cuts:
            return following
        return [server for server in following if self.hears_leader(server)]

    def replicate_again(self) -> None:
        """Followers are back in touch: replicate what could not be committed without them."""
        for entry in self.uncommitted:
            if len(entry.logged_us) < self.quorum:
                self._replicate(entry)

    def _commit(self, message: tuple[int, Entry]) -> None:
        """A majority has an entry; it is committed once all that came before it are."""
        epoch, entry = message
        leader = self.leader
        if epoch != self.epoch or leader is None:
            return
        if leader.is_paused:
            self.election.when_resumed(lambda: self._commit(message))
            return
        # Acknowledgements may come out of order after a partition heals; the log does not.
        entry.is_acknowledged = True
        uncommitted = self.uncommitted
        while uncommitted and uncommitted[0].is_acknowledged:
            self._take_effect(uncommitted.popleft(), leader)

    def _take_effect(self, entry: Entry, leader: Server) -> None:
        self.settle(entry, leader)
        leader.apply(entry)
        for server in self.servers:
            if server.state == "following":
                server.follow(entry)
        for answer in entry.syncs:
            answer()

    def settle(self, entry: Entry, server: Server) -> None:
        """A write is decided: from now on it has happened."""
        self.committed = entry.tree
        self.lifetimes.wait(entry.tree)
        if entry.ends_session:
            self.sessions.leases.pop(entry.session, None)
        entry.detail["by"] = entry.node
        self.kernel.write(
            server.name, entry.kind, entry.detail, session=entry.session, zxid=entry.zxid
        )

    def sync(self, server: Server, done: Callable[[], None]) -> None:
        """Bring a follower up to what is committed when the leader hears of it, then call back.

        The question and the answer travel on the same way as writes and commits, and the
        leader answers behind the commit of whatever is under way.
        """

        def at_leader() -> None:
            if self.uncommitted:
                self.uncommitted[-1].syncs.append(answer)
            else:
                answer()

        def answer() -> None:
            at = max(self.kernel.now_us + self.network.hop_us(), server.last_applied_us)
            self.kernel.at(at, arrive, server.generation)

        def arrive(generation: int) -> None:
            if server.generation != generation:
                return
            if self.hears_leader(server):
                server.take_over(generation)
                done()
            else:
                self.election.when_in_touch(server, lambda: arrive(generation))

        self.forward(server, at_leader)
