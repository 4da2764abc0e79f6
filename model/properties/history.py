"""The state of a run at each moment, derived from its trace.

The judges of `properties` never see a world; they see its trace, which is the same table in
every world. This is the one place where events are put together into a state: which sessions
are alive, who fetches what, which claims exist, which brokers serve, and who is at rest.

A member's session is the one it was connected with last; the ensemble may have opened others
for it that it never learned of. It is *dead* from the moment the ensemble ends it, whether or
not the member knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import CommandKind
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, struck_by

COMMIT, LEAVE = CommandKind.COMMIT.value, CommandKind.LEAVE.value

Claim = tuple[str, Partition]
"""A group and a partition."""


@lru_cache(maxsize=65_536)
def partition_named(topic: str, name: str) -> Partition:
    """Return the partition of these names: the same object each time, for tables of them."""
    return Partition(topic, name)


@dataclass(slots=True)
class NodeState:
    """The state of a process."""

    name: str
    group: str = ""
    is_alive: bool = False
    is_busy: bool = False
    is_connected: bool = False
    is_paused: bool = False
    is_abandoned: bool = False
    """Whether its program is over and its process goes on, and may keep the session alive."""
    session: int = 0
    notes_under_way: int = 0
    plans: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Topic -> hashes of its last view, without and with its order."""
    shares: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Topic -> the partitions of its last share."""
    has_leave_command: bool = False
    fetching: dict[Partition, int] = field(default_factory=dict)
    """Partition -> stream."""


class History:
    """The state of a run at one moment, advanced event by event."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now_us = 0
        self.nodes: dict[str, NodeState] = {}
        self.alive: set[int] = set()
        """Sessions that the ensemble has not ended, by number and cluster."""
        self.holders: dict[int, str] = {}
        """Session -> the node it was given to."""
        self.sessions_of: dict[str, set[int]] = {}
        """Node -> its sessions that are alive."""
        self.claims: dict[Claim, int] = {}
        """Claim -> the session that owns its znode."""
        self.registered: dict[str, set[str]] = {}
        """Node -> the znodes by which it is registered as a member."""
        self._registrars: dict[str, str] = {}
        """Such a znode -> its node."""
        self.shared_ids = plan.shared_ids()
        """Node -> the znode of its registration, where other nodes have the same id."""
        self.fetchers: dict[Claim, dict[str, None]] = {}
        self.serving: dict[Partition, dict[str, None]] = {}
        self.offsets: dict[Claim, int] = {}
        self.deleted_topics: set[tuple[str, str]] = set()
        """The prefix of the names of an ensemble's servers, and a topic that its registry had."""
        self.faults_in_force: dict[int, str] = {}
        self._group_of = plan.group_of()
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.STARTED: self._starts,
            EventKind.ENDED: self._ends,
            EventKind.ABANDONED: self._abandons,
            EventKind.WAITING: self._waits,
            EventKind.WOKEN: self._wakes,
            EventKind.WATCH_FIRED: self._fires,
            EventKind.NOTIFIED: self._hears,
            EventKind.CONNECTED: self._connected,
            EventKind.SUSPENDED: self._disconnected,
            EventKind.EXPIRED: self._disconnected,
            EventKind.SESSION_OPENED: self._session_opened,
            EventKind.SESSION_EXPIRED: self._session_ended,
            EventKind.SESSION_CLOSED: self._session_ended,
            EventKind.APPLIED: self._applied,
            EventKind.HOSTING: self._hosting,
            EventKind.FETCHING: self._fetching,
            EventKind.ASSIGNED: self._assigned,
            EventKind.FAULT: self._fault,
            EventKind.FAULT_ENDED: self._fault_ends,
        }

    def node(self, name: str) -> NodeState:
        """The state of a process, by its name."""
        state = self.nodes.get(name)
        if state is None:
            state = self.nodes[name] = NodeState(name, self._group_of.get(name, ""))
        return state

    def is_member(self, name: str) -> bool:
        """Whether this node is a live member: it is registered, or has no command to leave.

        A process may go on after its member has left in good order. A process whose id is
        registered by another one is no member before that registration is gone. A registration
        that outlives its program is no member: no program fetches for it.
        """
        state = self.node(name)
        if state.is_abandoned:
            return False
        if self.registered.get(name):
            return True
        return state.is_alive and not state.has_leave_command and not self.lacks_its_id(name)

    def lacks_its_id(self, name: str) -> bool:
        """Whether another node is registered under the id of this one."""
        return self._registrars.get(self.shared_ids.get(name, ""), name) != name

    def is_outlived(self, name: str) -> bool:
        """Whether the program of this node is over and its session is alive."""
        return self.node(name).is_abandoned and bool(self.sessions_of.get(name))

    def outlived_claims(self, name: str) -> int:
        """The number of claims of a session that outlives the program of this node."""
        sessions = self.sessions_of.get(name, ())
        return sum(owner in sessions for owner in self.claims.values())

    def outlived_owner(self, claim: Claim) -> str:
        """The node whose session holds a claim although its program is over; empty for none."""
        name = self.holders.get(self.claims.get(claim, 0), "")
        return name if name and self.is_outlived(name) else ""

    # --- processes ---------------------------------------------------------------------

    def _starts(self, event: Event) -> None:
        before = self.node(event.node)
        self.nodes[event.node] = NodeState(event.node, before.group, is_alive=True, is_busy=True)

    def _ends(self, event: Event) -> None:
        state = self.node(event.node)
        state.is_alive = False
        state.is_paused = False

    def _abandons(self, event: Event) -> None:
        state = self.node(event.node)
        state.is_abandoned = True
        state.is_busy = False
        state.notes_under_way = 0

    # Handlers of frequent kinds look a state up without a call; `node` makes one at first sight.

    def _waits(self, event: Event) -> None:
        (self.nodes.get(event.node) or self.node(event.node)).is_busy = False

    def _wakes(self, event: Event) -> None:
        (self.nodes.get(event.node) or self.node(event.node)).is_busy = True

    def _fires(self, event: Event) -> None:
        state = self.nodes.get(event.node) or self.node(event.node)
        # Otherwise it is addressed to a process, or to a program, that no longer exists.
        if event.session == state.session and not state.is_abandoned:
            state.notes_under_way += 1

    def _hears(self, event: Event) -> None:
        state = self.nodes.get(event.node) or self.node(event.node)
        detail = event.detail
        if "path" in detail:
            state.notes_under_way -= 1
        what = detail.get("what")
        if what != COMMIT:
            state.is_busy = True
        if what == LEAVE:
            state.has_leave_command = True

    def _connected(self, event: Event) -> None:
        state = self.node(event.node)
        state.is_connected = True
        state.session = event.session
        state.notes_under_way = 0

    def _disconnected(self, event: Event) -> None:
        state = self.node(event.node)
        state.is_connected = False
        state.notes_under_way = 0

    def _fault(self, event: Event) -> None:
        if event.detail["lasts"]:
            self.faults_in_force[event.detail["number"]] = event.detail["verb"]
        self._pause(event, is_paused=True)

    def _fault_ends(self, event: Event) -> None:
        self.faults_in_force.pop(event.detail["number"], None)
        self._pause(event, is_paused=False)

    def _pause(self, event: Event, *, is_paused: bool) -> None:
        """Note a pause of a process for each member that runs in it."""
        if event.detail["verb"] == "pause":
            for name in struck_by(event):
                if name in self.nodes:
                    self.node(name).is_paused = is_paused

    # --- sessions and claims -----------------------------------------------------------

    def _session_opened(self, event: Event) -> None:
        name = event.detail["by"]
        self.alive.add(event.session)
        self.holders[event.session] = name
        self.sessions_of.setdefault(name, set()).add(event.session)

    def _session_ended(self, event: Event) -> None:
        self.alive.discard(event.session)
        self.sessions_of[self.holders[event.session]].discard(event.session)
        for _, path, _ in event.detail["did"]:
            self._forget(path)

    def _applied(self, event: Event) -> None:
        for change in event.detail["did"]:
            topic = paths.parse_topic(change[1])
            if topic is not None:
                self._note_topic(event, topic, is_there=change[0] != "deleted")
            elif change[0] == "deleted":
                self._forget(change[1])
            else:
                self._note_write(change[1], change[2], change[3])

    def _note_topic(self, event: Event, topic: str, *, is_there: bool) -> None:
        """Note whether the registry has a topic: brokers may serve one that it has not."""
        place = event.node.rpartition("zookeeper")[0], topic
        if is_there:
            self.deleted_topics.discard(place)
        else:
            self.deleted_topics.add(place)

    def _forget(self, path: str) -> None:
        """Forget a claim or a registration that was deleted."""
        found = paths.parse_owner(path)
        if found is not None:
            self.claims.pop(found, None)
        registrar = self._registrars.pop(path, None)
        if registrar is not None:
            self.registered[registrar].discard(path)

    def register(self, name: str, path: str) -> None:
        """Note the znode by which a node is registered as a member."""
        self._registrars[path] = name
        self.registered.setdefault(name, set()).add(path)

    def _note_write(self, path: str, owner: int, data: str | None) -> None:
        claim = paths.parse_owner(path)
        if claim is not None:
            self.claims[claim] = owner
            return
        if owner and paths.parse_member(path) is not None:
            self.register(self.holders.get(owner, ""), path)
            return
        place = paths.parse_offset(path)
        if place is not None and data is not None:
            offset = paths.offset_in(data)
            if offset is not None:
                self.offsets[place] = offset

    # --- data --------------------------------------------------------------------------

    def _hosting(self, event: Event) -> None:
        servers = self.serving.setdefault(Partition(event.topic, event.partition), {})
        if event.detail["does"] == "begins":
            servers[event.node] = None
        else:
            servers.pop(event.node, None)

    def _fetching(self, event: Event) -> None:
        node, detail = event.node, event.detail
        partition = partition_named(event.topic, event.partition)
        claim = (event.group, partition)
        state = self.nodes.get(node) or self.node(node)
        fetchers = self.fetchers.get(claim)
        if fetchers is None:
            fetchers = self.fetchers[claim] = {}
        if detail["does"] == "begins":
            fetchers[node] = None
            state.fetching[partition] = detail["stream"]
        else:
            fetchers.pop(node, None)
            state.fetching.pop(partition, None)

    def _assigned(self, event: Event) -> None:
        plans: dict[str, Any] = event.detail["plans"]
        for topic, (saw, decided) in plans.items():
            self.node(event.node).plans[topic] = (saw, decided)
        for topic, partitions in event.detail.get("shares", {}).items():
            self.node(event.node).shares[topic] = tuple(partitions)
