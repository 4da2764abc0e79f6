"""Footprints: the regions of the registry that a process reads next and may still write.

The registry is divided into regions, one bit each: `/brokers`, the list of a group's ids,
the offsets, each single id, and the rest. A footprint is a set of them, as one integer.

Once no more faults can come, quiescent brokers stay so and registered members stay
registered; then `/brokers` and the list of a group's ids never change again. (Where brokers
elect a controller, any of them may write `/brokers` as long as it runs.) The registration
of a member is written by that member alone (when it registers and when it raises its fence),
and by its own late requests. The reduction rests on these facts, and verifies them.
"""

from __future__ import annotations

from watchkeeper.checker.actors.actor import Actor
from watchkeeper.checker.actors.actor_state import ActorState, Broadcast
from watchkeeper.model.actor.effects import FetchExactly, NextEvent
from watchkeeper.model.actor.errors import ConnectionLoss, Failure, SessionExpired
from watchkeeper.model.actor.events import (
    LEAVE,
    Command,
    Fired,
    SessionEvent,
    WatchEventType,
    is_quiet,
)
from watchkeeper.model.actor.operations import (
    WRITES,
    Create,
    Delete,
    GetEphemerals,
    Multi,
    Operation,
    Pipelined,
)
from watchkeeper.model.group.state import ConsumerState, id_path
from watchkeeper.model.registry import paths
from watchkeeper.model.zookeeper.tree import Change

OWN, BROKERS, IDS, OFFSETS, REST, FIRST_ID = 1, 2, 4, 8, 16, 32
"""OWN is what no other process can write; REST is the registry without the other regions."""
MOST_IDS = 40
"""How many ids have a region of their own; beyond that, several share one."""
EVERY_ID = FIRST_ID * ((1 << MOST_IDS) - 1)
NOTIFICATION_OF = {ConnectionLoss: SessionEvent.SUSPENDED, SessionExpired: SessionEvent.EXPIRED}
EVERYWHERE = BROKERS | IDS | OFFSETS | REST | EVERY_ID


class Footprints:
    """The footprints of the processes of one cluster."""

    def __init__(self, *, messages: int, fences_may_be_late: bool, brokers_rest: bool) -> None:
        self.messages = messages
        self.brokers_rest = brokers_rest
        """Whether a quiescent broker stays so. One that may be the controller does not."""
        self.fences_may_be_late = fences_may_be_late
        """Whether a write that raises a fence may be executed after a later one."""
        self._region_of: dict[str, int] = {}
        self._ids = 0

    # --- which region ------------------------------------------------------------------

    def of_path(self, path: str) -> int:
        """Return the region of a path."""
        region = self._region_of.get(path)
        if region is None:
            region = self._region_of[path] = self._of_new(path)
        return region

    def _of_new(self, path: str) -> int:
        if path.startswith("/brokers/"):
            return BROKERS
        if paths.parse_offset(path) is not None:
            return OFFSETS
        parts = path.split("/")
        if len(parts) < 4 or parts[1] != "consumers" or parts[3] != "ids":
            return REST
        if len(parts) == 4:
            return IDS
        self._ids += 1
        return FIRST_ID << (self._ids - 1) % MOST_IDS

    def of_changes(self, broadcast: Broadcast) -> int:
        """Return the regions of some changes; a child that comes or goes changes its parent."""
        found = 0
        for change in broadcast:
            assert isinstance(change, Change), "the end of a process is not a change of a znode"
            found |= self._of_change(
                change.path, is_listed=change.what is not WatchEventType.CHANGED
            )
        return found

    def _of_change(self, path: str, *, is_listed: bool) -> int:
        region = self.of_path(path)
        return region | self.of_path(paths.parent_of(path)) if is_listed else region

    # --- reads -------------------------------------------------------------------------

    def reads_from(self, process: Actor, actor_state: ActorState) -> int:
        """Return the regions that the next step reads; 0 where it does more than read.

        A step that makes events visible reads their regions too: whether an event is there
        already depends on who has written.
        """
        if actor_state.phase != "running" or not actor_state.is_alive:
            return 0
        effect = process.effect_of(actor_state)
        if actor_state.link == "down":
            return 0 if actor_state.watches or isinstance(effect, FetchExactly) else OWN
        if actor_state.link != "up":
            return 0
        if isinstance(effect, NextEvent):
            return self._watched(actor_state) if actor_state.channel else 0
        if isinstance(effect, Pipelined):
            is_last = len(actor_state.batch) + 1 == len(effect.operations)
            region = self._read(actor_state, effect.operations[len(actor_state.batch)])
        else:
            is_last, region = True, self._read(actor_state, effect)
        return region | self._watched(actor_state) if region and is_last else region

    def _read(self, actor_state: ActorState, operation: object) -> int:
        """Return the region of a read; 0 for any other effect."""
        if not isinstance(operation, Operation) or type(operation) in WRITES:
            return 0
        if isinstance(operation, GetEphemerals):
            return OWN | REST if actor_state.late_requests else OWN
        return self.of_path(operation.path)

    def _watched(self, actor_state: ActorState) -> int:
        """Return the regions whose changes a process will be notified of."""
        learnt = OWN
        for _, path in actor_state.watches:
            learnt |= self.of_path(path)
        return learnt

    # --- writes ------------------------------------------------------------------------

    def leftover_writes(self, actor_state: ActorState) -> int:
        """Return the regions that late requests and orphaned sessions of a process may write."""
        if actor_state.orphans:
            return EVERYWHERE
        written = 0
        for _, operation in actor_state.late_requests:
            for part in operation.operations if isinstance(operation, Multi) else (operation,):
                is_listed = isinstance(part, Create | Delete)
                written |= self._of_change(part.path, is_listed=is_listed)
        return written

    def may_write(self, process: Actor, actor_state: ActorState, *, is_consumer: bool) -> int:
        """Return the regions that a process may write from here on without further faults.

        It has to shrink along every step: a region that comes back makes a read that was
        taken for ample depend on the order. Hence the cautious cases below.
        """
        left = self.leftover_writes(actor_state)
        if actor_state.phase != "running":
            return left
        if not is_consumer:
            rests = self.brokers_rest and self._is_quiescent(process, actor_state)
            return left if rests else left | BROKERS | REST
        if self._may_leave_its_session_behind(process, actor_state):
            return EVERYWHERE
        writes = left | REST | (OFFSETS if self.messages else 0)
        return writes | self._of_registration(process, actor_state)

    def _is_quiescent(self, process: Actor, actor_state: ActorState) -> bool:
        waits = isinstance(process.effect_of(actor_state), NextEvent)
        is_well = actor_state.link == "up" and actor_state.is_alive
        return waits and is_well and not actor_state.channel and not actor_state.inbox

    def _may_leave_its_session_behind(self, process: Actor, actor_state: ActorState) -> bool:
        """Whether a leaving member has no connection to close its session."""
        if actor_state.link != "down" or not actor_state.is_alive:
            return False
        state = process.compiled.nodes[actor_state.node].state
        is_leaving = isinstance(state, ConsumerState) and state.is_leaving
        return is_leaving or LEAVE in self._learnt_in_turn(process, actor_state)

    def _of_registration(self, process: Actor, actor_state: ActorState) -> int:
        """Return the regions that a member may still write for its registration."""
        me, state = process.compiled.program.me, process.compiled.nodes[actor_state.node].state
        if not isinstance(state, ConsumerState) or not state.consumer_id:
            return IDS | EVERY_ID
        own = self.of_path(id_path(me, state))
        is_in = (
            state.is_registered and actor_state.link in ("up", "down") and actor_state.is_alive
        )
        learnt = self._learnt_in_turn(process, actor_state)
        if not is_in or state.is_leaving or learnt & {LEAVE, SessionEvent.EXPIRED}:
            return IDS | own
        if not me.variant.fenced:
            return 0
        # A fence is raised again after any doubt about the session; only a member that has had
        # none since its last one leaves it alone.
        is_sure = state.fence_version is not None and actor_state.link == "up" and not learnt
        return own if self.fences_may_be_late or not is_sure else 0

    def _learnt_in_turn(self, process: Actor, actor_state: ActorState) -> set[object]:
        """Return the events that the program's state does not show yet.

        Neither watch events nor orders to commit are among them: they change nothing about
        the session and the registration.
        """
        learnt: set[object] = {
            notification
            for notification in actor_state.inbox
            if not isinstance(notification, Fired) and not is_quiet(notification)
        }
        for answer in process.compiled.nodes[actor_state.node].answers:
            if isinstance(answer, SessionEvent | Command):
                if not is_quiet(answer):
                    learnt.add(answer)
            elif isinstance(answer, Failure) and answer.kind in NOTIFICATION_OF:
                learnt.add(NOTIFICATION_OF[answer.kind])
        return learnt


def is_about_to_learn_expiry(process: Actor, actor_state: ActorState) -> bool:
    """Whether the next steps of a process can only reveal to it that its session is dead."""
    if (
        actor_state.phase != "running"
        or actor_state.is_alive
        or actor_state.orphans
        or actor_state.late_requests
    ):
        return False
    if actor_state.link in ("up", "down"):
        return not actor_state.watches
    return actor_state.link == "expired" and isinstance(
        process.effect_of(actor_state), FetchExactly
    )
