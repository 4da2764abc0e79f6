"""The state that claims about users' protocols see: the state of each program, and the znodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from watchkeeper.checker.actors.actor import Actor
from watchkeeper.checker.actors.actor_state import ActorState, Link
from watchkeeper.model.actor.effects import NextEvent, Sleep
from watchkeeper.model.counterexample.counterexample import Phase
from watchkeeper.model.zookeeper.tree import Tree


@dataclass(frozen=True, slots=True)
class ProgramState:
    """One program at one moment."""

    phase: Phase
    """absent (to start later), running, gone (killed), over (it has ended)."""
    state: Any = None
    """The state with which its turn began; None unless it runs."""
    link: Link = "none"
    """What its client knows of its session: none yet, up, down, expired."""
    has_session: bool = False
    """Whether its session is alive at the service."""
    is_waiting: bool = False
    """Whether it waits for a notification, and none is under way to it."""

    @property
    def is_running(self) -> bool:
        """Whether its process runs."""
        return self.phase == "running"


@dataclass(frozen=True, slots=True)
class SeenZnode:
    """A znode."""

    data: bytes | None
    owner: str
    """The program whose ephemeral it is; empty if it is persistent."""
    is_current: bool
    """Whether it belongs to the session that its owner has now, not to an earlier one."""


@dataclass(frozen=True, slots=True)
class State:
    """All programs and znodes at one moment."""

    programs: Mapping[str, ProgramState]
    """Every program by its name."""
    znodes: Mapping[str, SeenZnode]
    """Every znode by its path, but for the root and ZooKeeper's own."""

    def __getitem__(self, name: str) -> ProgramState:
        return self.programs[name]

    @property
    def running(self) -> Mapping[str, ProgramState]:
        """The programs that run, by name."""
        return {name: program for name, program in self.programs.items() if program.is_running}


ProgramView = tuple[ProgramState, int]
"""Where a program stands, and the number of the session it has."""


def program_view(process: Actor, state: ActorState) -> ProgramView:
    """Return what claims can see of a program."""
    session = state.session if state.is_alive else 0
    if state.phase != "running":
        return ProgramState(state.phase), session
    node = process.compiled.nodes[state.node]
    is_waiting = isinstance(node.effect, NextEvent) and not state.inbox and not state.channel
    seen = ProgramState(state.phase, node.state, state.link, state.is_alive, is_waiting)
    return seen, session


def view_of(tree: Tree, views: Mapping[str, ProgramView], name_of: Mapping[int, str]) -> State:
    """Return a read-only state."""
    current = {session for _, session in views.values()}
    znodes = {
        path: SeenZnode(znode.data, name_of.get(znode.owner, ""), znode.owner in current)
        for path, znode in sorted(tree.nodes.items())
        if path != "/" and not path.startswith("/zookeeper")
    }
    return State(
        MappingProxyType({name: program for name, (program, _) in views.items()}),
        MappingProxyType(znodes),
    )


def waits_in_vain(process: Actor, state: ActorState) -> bool:
    """Whether a program in a terminal state waits for something other than a notification."""
    return state.phase == "running" and not isinstance(
        process.effect_of(state), NextEvent | Sleep
    )
