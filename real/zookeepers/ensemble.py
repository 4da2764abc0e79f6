"""An ensemble that was started here, as far as runs and measurements use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from watchkeeper.real.zookeeper.server import Role, State

Undo = Callable[[], object]
"""Ends what a fault began."""
CountEffect = Callable[[str, int], object]
"""Counts an effect of a fault, in words."""


class Server(Protocol):
    """A server: its address, and what can be done to it."""

    @property
    def name(self) -> str:
        """Its name in the scenario: `zookeeper/1`."""

    @property
    def address(self) -> str:
        """Where clients connect to it."""

    @property
    def state(self) -> State:
        """Whether it runs, is paused, or is down."""

    @property
    def role(self) -> Role | None:
        """The role in the ensemble; None while the server does not serve."""

    @property
    def log_folder(self) -> Path:
        """The folder of its transaction log, in Apache's format."""

    def four_letter_word(self, word: str, timeout_s: float = ...) -> str:
        """The answer to a four-letter word; empty if there is none within `timeout_s`."""

    def start(self, *, timeout_s: float | None = ...) -> None:
        """Start it and wait until it serves; with None, do not wait."""

    def kill(self) -> bool:
        """Kill it; return whether it ran."""

    def pause(self) -> bool:
        """Let it stand still; return whether it ran."""

    def resume(self) -> bool:
        """Let it go on; return whether it stood still."""


class ServerFaults(Protocol):
    """The faults of what passes between the servers of an ensemble."""

    def cut(self, server: str, count_effect: CountEffect) -> Undo:
        """Cut a server off from the others; return the call that heals that."""

    def lag(self, server: str, by_s: float, count_effect: CountEffect) -> Undo:
        """Let a server apply later what is committed; return the call that ends that."""


class Ensemble(Protocol):
    """The servers of one ZooKeeper."""

    @property
    def servers(self) -> Sequence[Server]:
        """Its servers, in the order of their numbers."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """The client address of each server."""

    @property
    def hosts(self) -> str:
        """All addresses as a ZooKeeper connection string."""

    @property
    def version(self) -> str:
        """The version of ZooKeeper that the servers are, or whose behaviour they have."""

    @property
    def leader(self) -> Server | None:
        """The server that leads now, or the only server; None if there is no leader."""

    def wait_for_leader(self) -> Server:
        """Return the leader once there is one."""

    def start(self) -> None:
        """Start every server that is down and wait until all of them serve."""

    def stop(self) -> None:
        """End every server and remove what is temporary."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
