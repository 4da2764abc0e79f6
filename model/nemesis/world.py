"""What the actions of a timeline may touch in a world, and nothing more.

A world implements these Protocols; so an action that is written once works in a simulation
and in a live run, and the code of the faults does not depend on the code of the worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.events import Command
from watchkeeper.model.actor.operations import Delete, SetData
from watchkeeper.model.nemesis.load import Load
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.model.registry.payloads import TopicAssignment

OPERATOR = "operator"
"""What a trace calls the writer of `delete_znode` and its like; its rows have no session."""
ServerRole = Literal["leader", "follower", "none"]
Undo = Callable[[], object]
"""Ends what an action began."""


class Target(Protocol):
    """An operating-system process that faults affect: of a member or of a server."""

    def kill(self, effect: FaultEffect) -> None:
        """Kill it, unless it is down already; count what broke."""

    def pause(self, effect: FaultEffect, for_us: int) -> Undo | None:
        """Pause it, and return the call that resumes it; None if it does not run."""


class Server(Target, Protocol):
    """One server of a ZooKeeper ensemble."""

    @property
    def name(self) -> str:
        """Its name in the scenario: `zookeeper/1`."""

    @property
    def role(self) -> ServerRole:
        """Its role in the ensemble now; a single server leads."""

    @property
    def is_up(self) -> bool:
        """Whether its process exists, paused or not."""

    def start(self, effect: FaultEffect) -> None:
        """Start it again, unless it is up."""


class Cluster(Protocol):
    """A cluster at run time: its servers, and the topics on its brokers."""

    @property
    def plan(self) -> ClusterPlan:
        """Its part of the plan."""

    @property
    def prefix(self) -> str:
        """What the names of its processes begin with; empty where it is the only one."""

    @property
    def administrator(self) -> str:
        """The name of its administrator; empty in the 0.7 layout, which has none."""

    @property
    def servers(self) -> Sequence[Server]:
        """The servers of its ensemble."""

    @property
    def controller_id(self) -> int | None:
        """0.8: the broker id in `/controller`; None if no broker is the controller."""

    def leader_of(self, partition: Partition) -> int | None:
        """0.8: the broker id that leads a partition in the registry; None without a leader."""

    @property
    def disks(self) -> dict[int, dict[str, int]]:
        """0.7: broker -> topic -> partitions it has on disk."""

    @property
    def homes(self) -> dict[str, TopicAssignment]:
        """0.8: topic -> which brokers hold which partition."""

    @property
    def deleted(self) -> dict[str, dict[str, None]]:
        """Broker -> the deleted topics that are still on its disk."""

    def operate(self, operation: Delete | SetData, done: Callable[[str], object]) -> None:
        """Change a znode from a session of an operator; a set creates what is not there.

        Calls back with an empty text when it has taken effect, else with the reason.
        """

    def undo_of(self, path: str) -> Delete | SetData:
        """The write that brings a znode back to its state of now: its data, or its absence."""

    def serve(self, broker: str, partitions: list[Partition]) -> None:
        """Let a broker that is up serve more partitions."""

    def remove(self, broker: str, topic: str) -> None:
        """Let a broker that is up serve nothing of a topic any more."""


class World(Protocol):
    """A run, as far as the actions of every world need it."""

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """Its clusters, by name."""

    # --- time and trace ----------------------------------------------------------------

    def now_us(self) -> int:
        """The moment of the run, in microseconds."""

    def at(self, due_us: int, call: Callable[[], object]) -> None:
        """Call this at that moment."""

    def write(
        self, node: str, kind: str, detail: Mapping[str, Any] = ..., *, topic: str = ""
    ) -> None:
        """Write an event into the trace."""

    def later(self, effect: FaultEffect, delay_us: int, undo: Undo) -> None:
        """Undo an action after a delay, and write its end into the trace."""

    # --- processes ---------------------------------------------------------------------

    def cluster_of(self, name: str) -> Cluster:
        """The cluster of a member."""

    def process(self, name: str) -> Target | None:
        """The process of a member; None while it does not run."""

    def start(self, name: str, *, new_id: bool = False) -> object:
        """Start the process of a member; falsy if it runs already."""

    def order(self, name: str, order: Command) -> bool:
        """Put an order into the inbox of a process; False if it could not take it."""

    def abandon(self, name: str) -> bool:
        """End the program of a process that runs, and nothing else; False if it is over."""

    def when_ended(self, name: str, call: Callable[[], object]) -> None:
        """Call this once a process that runs now has ended by itself."""

    def readdress(self, broker: str, host: str, port: int | None) -> None:
        """Give a broker another host, and another port unless that is None."""

    # --- load --------------------------------------------------------------------------

    def produce(self, cluster: str, topic: str, load: Load, producers: str | None) -> Undo:
        """Send messages to a topic from now on: by these producers, or by the first."""
