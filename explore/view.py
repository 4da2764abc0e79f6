"""A state as claims about users' own protocols see it: who remembers what, and the znodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from explore.local import Link, Local, Phase
from explore.process import Process
from model.asks import NextNote, Sleep
from model.zookeeper.tree import Tree


@dataclass(frozen=True, slots=True)
class Stands:
    """Where a program stands."""

    phase: Phase
    """absent (to start later), running, gone (killed), over (it has ended)."""
    memory: Any = None
    """What its turn began with; None unless it runs."""
    link: Link = "none"
    """What it was told of its session last: none yet, up, down, expired."""
    has_session: bool = False
    """Whether its session is alive, whatever it was told."""
    is_waiting: bool = False
    """Whether it waits for a note, and none is under way to it."""

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self.phase == "running"


@dataclass(frozen=True, slots=True)
class SeenZnode:
    """A znode."""

    data: bytes | None
    owner: str
    """The program whose ephemeral it is; empty where it is nobody's."""
    is_current: bool
    """Whether it belongs to the session that its owner has now, not to an earlier one."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything at one moment."""

    programs: Mapping[str, Stands]
    """Every program by its name."""
    znodes: Mapping[str, SeenZnode]
    """Every znode by its path, but for the root and ZooKeeper's own."""

    def __getitem__(self, name: str) -> Stands:
        return self.programs[name]

    @property
    def running(self) -> Mapping[str, Stands]:
        """The programs that run, by name."""
        return {name: one for name, one in self.programs.items() if one.is_running}


Look = tuple[Stands, int]
"""Where a program stands, and the number of the session it has."""


def look_at(process: Process, local: Local) -> Look:
    """What claims can see of a program."""
    session = local.session if local.is_alive else 0
    if local.phase != "running":
        return Stands(local.phase), session
    node = process.unfolding.nodes[local.node]
    is_waiting = isinstance(node.ask, NextNote) and not local.inbox and not local.channel
    seen = Stands(local.phase, node.memory, local.link, local.is_alive, is_waiting)
    return seen, session


def view_of(tree: Tree, looks: Mapping[str, Look], name_of: Mapping[int, str]) -> State:
    """A state, to be read only."""
    current = {session for _, session in looks.values()}
    znodes = {
        path: SeenZnode(one.data, name_of.get(one.owner, ""), one.owner in current)
        for path, one in sorted(tree.nodes.items())
        if path != "/" and not path.startswith("/zookeeper")
    }
    return State(
        MappingProxyType({name: stands for name, (stands, _) in looks.items()}),
        MappingProxyType(znodes),
    )


def waits_in_vain(process: Process, local: Local) -> bool:
    """Whether a program that nothing comes to any more waits for something else than a note."""
    return local.phase == "running" and not isinstance(process.ask(local), NextNote | Sleep)
