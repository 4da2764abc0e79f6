"""What was true at each moment of a run, read off its trace.

The judges of `properties` do not look at a world; they look at its trace, which is the
same table in every world. This is the one place where events are put together again into
a state: whose sessions are alive, who fetches what, which claims stand, which brokers
serve, and who is at rest.

A member's session is the one it was connected with last; the ensemble may have begun others
for it, of which it never heard. It is *dead* from the moment the ensemble ends it, whether
or not the member knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from model import registry
from model.answers import Order
from model.asks import Partition
from model.plan import Plan
from model.trace import Event

Claim = tuple[str, Partition]
"""A group and a partition."""


@dataclass(slots=True)
class NodeState:
    """What is known of a process."""

    name: str
    group: str = ""
    is_alive: bool = False
    is_busy: bool = False
    is_connected: bool = False
    is_paused: bool = False
    session: int = 0
    notes_under_way: int = 0
    plans: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Topic -> hashes of what it last saw and decided."""
    fetching: dict[Partition, int] = field(default_factory=dict)
    """Partition -> stream."""


class History:
    """The state of a run at one moment, moved on by one event at a time."""

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
        """Claim -> the session whose znode it is."""
        self.fetchers: dict[Claim, dict[str, None]] = {}
        self.serving: dict[Partition, dict[str, None]] = {}
        self.offsets: dict[Claim, int] = {}
        self.faults_in_force: dict[int, str] = {}
        self._group_of = plan.group_of()
        self._handlers: dict[str, Callable[[Event], None]] = {
            "starts": self._starts,
            "ends": self._ends,
            "waits": self._waits,
            "wakes": self._wakes,
            "fires": self._fires,
            "hears": self._hears,
            "connected": self._connected,
            "suspended": self._disconnected,
            "expired": self._disconnected,
            "session opened": self._session_opened,
            "session expired": self._session_ended,
            "session closed": self._session_ended,
            "applied": self._applied,
            "hosting": self._hosting,
            "fetching": self._fetching,
            "assigned": self._assigned,
            "fault": self._fault,
            "fault ends": self._fault_ends,
        }

    def handles(self, kind: str) -> bool:
        """Whether events of this kind change anything here."""
        return kind in self._handlers

    def handler(self, kind: str) -> Callable[[Event], None]:
        """What takes events of this kind into account."""
        return self._handlers[kind]

    def node(self, name: str) -> NodeState:
        """What is known of a process, by its name."""
        state = self.nodes.get(name)
        if state is None:
            state = self.nodes[name] = NodeState(name, self._group_of.get(name, ""))
        return state

    def has_live_session(self, name: str) -> bool:
        """Whether the ensemble holds the session of this node to be alive."""
        return self.node(name).session in self.alive

    # --- processes ---------------------------------------------------------------------

    def _starts(self, event: Event) -> None:
        before = self.node(event.node)
        self.nodes[event.node] = NodeState(event.node, before.group, is_alive=True, is_busy=True)

    def _ends(self, event: Event) -> None:
        state = self.node(event.node)
        state.is_alive = False
        state.is_paused = False

    def _waits(self, event: Event) -> None:
        self.node(event.node).is_busy = False

    def _wakes(self, event: Event) -> None:
        self.node(event.node).is_busy = True

    def _fires(self, event: Event) -> None:
        state = self.node(event.node)
        if event.session == state.session:  # else it goes to a process that is no more
            state.notes_under_way += 1

    def _hears(self, event: Event) -> None:
        state = self.node(event.node)
        if "path" in event.detail:
            state.notes_under_way -= 1
        if event.detail.get("what") != Order.COMMIT.value:
            state.is_busy = True

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
        if event.detail["verb"] == "pause" and event.node in self.nodes:
            self.node(event.node).is_paused = True

    def _fault_ends(self, event: Event) -> None:
        self.faults_in_force.pop(event.detail["number"], None)
        if event.detail["verb"] == "pause" and event.node in self.nodes:
            self.node(event.node).is_paused = False

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
            self._forget_claim(path)

    def _applied(self, event: Event) -> None:
        for change in event.detail["did"]:
            if change[0] == "deleted":
                self._forget_claim(change[1])
            else:
                self._note_write(change[1], change[2], change[3])

    def _forget_claim(self, path: str) -> None:
        found = registry.parse_owner(path)
        if found is not None:
            self.claims.pop(found, None)

    def _note_write(self, path: str, owner: int, data: str | None) -> None:
        claim = registry.parse_owner(path)
        if claim is not None:
            self.claims[claim] = owner
            return
        place = registry.parse_offset(path)
        if place is not None and data is not None:
            offset = registry.offset_in(data)
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
        partition = Partition(event.topic, event.partition)
        claim = (event.group, partition)
        state = self.node(event.node)
        fetchers = self.fetchers.setdefault(claim, {})
        if event.detail["does"] == "begins":
            fetchers[event.node] = None
            state.fetching[partition] = event.detail["stream"]
        else:
            fetchers.pop(event.node, None)
            state.fetching.pop(partition, None)

    def _assigned(self, event: Event) -> None:
        plans: dict[str, Any] = event.detail["plans"]
        for topic, (saw, decided) in plans.items():
            self.node(event.node).plans[topic] = (saw, decided)
