"""Regions of the registry, and who may still write there.

Once there can be no more faults, brokers that are at rest stay so, and members that are
registered stay registered. Then `/brokers` and the ids of a group never change again, and
to read there concerns nobody else.
"""

from __future__ import annotations

from explore.local import Cast, Local
from explore.process import Process
from model import registry
from model.asks import NextNote
from model.member import Memory
from model.operations import WRITES, GetEphemerals, Operation, Pipelined

NOTES, BROKERS, IDS, OFFSETS, REST = 1, 2, 4, 8, 16
"""What a process was sent; three parts of the registry; and all else."""


class Regions:
    """The regions of one cluster."""

    def __init__(self, *, messages: int) -> None:
        self.messages = messages

    def of_path(self, path: str) -> int:
        """The region of a path."""
        if path.startswith("/brokers/"):
            return BROKERS
        if registry.parse_offset(path) is not None:
            return OFFSETS
        parts = path.split("/")
        if len(parts) > 3 and parts[1] == "consumers" and parts[3] == "ids":
            return IDS
        return REST

    def of_changes(self, cast: Cast) -> int:
        """The regions that changed; a child that comes or goes changes its parent's as well."""
        found = 0
        for change in cast:
            found |= self.of_path(change.path)
            found |= self.of_path(change.path.rpartition("/")[0] or "/")
        return found

    def looked_at(self, process: Process, local: Local) -> int:
        """The region in which a process is about to look, if it does no more than that."""
        if local.phase != "running" or local.link != "up" or not local.is_alive:
            return 0
        ask = process.ask(local)
        if isinstance(ask, NextNote):
            return NOTES if local.channel else 0
        if isinstance(ask, Pipelined):
            ask = ask.operations[len(local.batch)]
        if not isinstance(ask, Operation) or type(ask) in WRITES:
            return 0
        return NOTES if isinstance(ask, GetEphemerals) else self.of_path(ask.path)

    def may_write(self, process: Process, local: Local, *, is_consumer: bool) -> int:
        """The regions to which a process may come to write while there are no more faults."""
        if local.orphans or local.ghosts:
            return BROKERS | IDS | OFFSETS | REST
        if local.phase != "running":
            return 0
        if not is_consumer:
            return 0 if self._is_at_rest(process, local) else BROKERS | REST
        writes = REST | (OFFSETS if self.messages else 0)
        return writes if self._stays_registered(process, local) else writes | IDS

    def _is_at_rest(self, process: Process, local: Local) -> bool:
        waits = isinstance(process.ask(local), NextNote)
        is_well = local.link == "up" and local.is_alive
        return waits and is_well and not local.channel and not local.inbox

    def _stays_registered(self, process: Process, local: Local) -> bool:
        memory = process.unfolding.nodes[local.node].memory
        if not isinstance(memory, Memory) or local.link != "up" or not local.is_alive:
            return False
        is_fenced = process.unfolding.program.me.variant.fenced
        is_sure = memory.guard is not None or not is_fenced
        return memory.is_registered and is_sure and not memory.is_leaving
