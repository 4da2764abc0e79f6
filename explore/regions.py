"""Regions of the registry, and who may still write there.

Once there can be no more faults, brokers that are at rest stay so, and members that are
registered stay registered. Then `/brokers` and the list of a group's ids never change
again. The registration of a member is a region of its own: nobody writes there but that
member, when it registers and when it raises its fence, and what it has left behind.
"""

from __future__ import annotations

from explore.local import Cast, Local
from explore.process import Process
from model import registry
from model.answers import LEAVE, Fired, Happening, Ordered, SessionNote
from model.asks import FetchExactly, NextNote
from model.errors import ConnectionLoss, Failure, SessionExpired
from model.member import Memory, id_path
from model.operations import WRITES, Create, Delete, GetEphemerals, Multi, Operation, Pipelined

OWN, BROKERS, IDS, OFFSETS, REST, FIRST_ID = 1, 2, 4, 8, 16, 32
"""What nobody else can write; parts of the registry; all else; the first of the ids."""
MOST_IDS = 40
"""Regions of single ids; if there are more, some share one."""
EVERY_ID = FIRST_ID * ((1 << MOST_IDS) - 1)
NOTE_OF = {ConnectionLoss: SessionNote.SUSPENDED, SessionExpired: SessionNote.EXPIRED}
EVERYWHERE = BROKERS | IDS | OFFSETS | REST | EVERY_ID


class Regions:
    """The regions of one cluster."""

    def __init__(self, *, messages: int, fences_may_be_late: bool) -> None:
        self.messages = messages
        self.fences_may_be_late = fences_may_be_late
        """Whether a request that raises a fence may arrive after a later one."""
        self._region_of: dict[str, int] = {}
        self._ids = 0

    # --- which region ------------------------------------------------------------------

    def of_path(self, path: str) -> int:
        """The region of a path."""
        region = self._region_of.get(path)
        if region is None:
            region = self._region_of[path] = self._of_new(path)
        return region

    def _of_new(self, path: str) -> int:
        if path.startswith("/brokers/"):
            return BROKERS
        if registry.parse_offset(path) is not None:
            return OFFSETS
        parts = path.split("/")
        if len(parts) < 4 or parts[1] != "consumers" or parts[3] != "ids":
            return REST
        if len(parts) == 4:
            return IDS
        self._ids += 1
        return FIRST_ID << (self._ids - 1) % MOST_IDS

    def of_changes(self, cast: Cast) -> int:
        """The regions that changed; a child that comes or goes changes its parent's as well."""
        found = 0
        for change in cast:
            found |= self._of_change(change.path, is_listed=change.what is not Happening.CHANGED)
        return found

    def _of_change(self, path: str, *, is_listed: bool) -> int:
        region = self.of_path(path)
        return region | self.of_path(registry.parent_of(path)) if is_listed else region

    # --- who looks where ---------------------------------------------------------------

    def looked_at(self, process: Process, local: Local) -> int:
        """The regions in which a process is about to look, if it does no more than that."""
        if local.phase != "running" or not local.is_alive:
            return 0
        ask = process.ask(local)
        if local.link == "down":
            return 0 if local.watches or isinstance(ask, FetchExactly) else OWN
        if local.link != "up":
            return 0
        if isinstance(ask, NextNote):
            return self._told_of(local) if local.channel else 0
        if isinstance(ask, Pipelined):
            is_last = len(local.batch) + 1 == len(ask.operations)
            region = self._read(local, ask.operations[len(local.batch)])
        else:
            is_last, region = True, self._read(local, ask)
        return region | self._told_of(local) if region and is_last else region

    def _read(self, local: Local, operation: object) -> int:
        """The region that a read reads; 0 for anything else."""
        if not isinstance(operation, Operation) or type(operation) in WRITES:
            return 0
        if isinstance(operation, GetEphemerals):
            return OWN | REST if local.ghosts else OWN
        return self.of_path(operation.path)

    def _told_of(self, local: Local) -> int:
        """The regions of which a process will be told."""
        told = OWN
        for _, path in local.watches:
            told |= self.of_path(path)
        return told

    # --- who may write where -----------------------------------------------------------

    def left_writes(self, local: Local) -> int:
        """The regions to which what is left behind writes: late requests, ends of sessions."""
        if local.orphans:
            return EVERYWHERE
        written = 0
        for _, operation in local.ghosts:
            for part in operation.operations if isinstance(operation, Multi) else (operation,):
                is_listed = isinstance(part, Create | Delete)
                written |= self._of_change(part.path, is_listed=is_listed)
        return written

    def may_write(self, process: Process, local: Local, *, is_consumer: bool) -> int:
        """The regions to which a process may come to write while there are no more faults."""
        left = self.left_writes(local)
        if local.phase != "running":
            return left
        if not is_consumer:
            return left if self._is_at_rest(process, local) else left | BROKERS | REST
        if self._may_leave_its_session_behind(process, local):
            return EVERYWHERE
        writes = left | REST | (OFFSETS if self.messages else 0)
        return writes | self._of_registration(process, local)

    def _is_at_rest(self, process: Process, local: Local) -> bool:
        waits = isinstance(process.ask(local), NextNote)
        is_well = local.link == "up" and local.is_alive
        return waits and is_well and not local.channel and not local.inbox

    def _may_leave_its_session_behind(self, process: Process, local: Local) -> bool:
        """Whether a member is to leave, and has no connection to end its session by."""
        if local.link != "down" or not local.is_alive:
            return False
        memory = process.unfolding.nodes[local.node].memory
        is_leaving = isinstance(memory, Memory) and memory.is_leaving
        return is_leaving or LEAVE in self._told_in_this_turn(process, local)

    def _of_registration(self, process: Process, local: Local) -> int:
        """What a member may still have to do about its registration."""
        me, memory = process.unfolding.program.me, process.unfolding.nodes[local.node].memory
        if not isinstance(memory, Memory) or not memory.consumer_id:
            return IDS | EVERY_ID
        own = self.of_path(id_path(me, memory))
        is_in = memory.is_registered and local.link in ("up", "down") and local.is_alive
        told = self._told_in_this_turn(process, local)
        if not is_in or memory.is_leaving or told & {LEAVE, SessionNote.EXPIRED}:
            return IDS | own
        if not me.variant.fenced:
            return 0
        is_sure = memory.guard is not None and local.link == "up" and not told
        return own if self.fences_may_be_late or not is_sure else 0

    def _told_in_this_turn(self, process: Process, local: Local) -> set[object]:
        """What a process was told that is no watch of its own, and is not in its memory yet."""
        told: set[object] = {note for note in local.inbox if not isinstance(note, Fired)}
        for answer in process.unfolding.nodes[local.node].answers:
            if isinstance(answer, SessionNote | Ordered):
                told.add(answer)
            elif isinstance(answer, Failure) and answer.kind in NOTE_OF:
                told.add(NOTE_OF[answer.kind])
        return told


def finds_out(process: Process, local: Local) -> bool:
    """Whether a process is about to find out that its session is dead, and nothing else."""
    if local.phase != "running" or local.is_alive or local.orphans or local.ghosts:
        return False
    if local.link in ("up", "down"):
        return not local.watches
    return local.link == "expired" and isinstance(process.ask(local), FetchExactly)
