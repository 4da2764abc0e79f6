"""The control plane of a 0.8 cluster as it was read: controller, partitions, requests, settings.

Nothing here is judged. A znode that does not parse is left out, with its path and the reason in
`bad`; what is known of the others stays known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import (
    NO_LEADER,
    Controller,
    ControllerEpoch,
    PartitionState,
    PreferredReplicaElection,
    Reassignment,
    TopicAssignment,
    TopicConfig,
    TopicDeletion,
)

Payload = TypeVar("Payload")


@dataclass(frozen=True, slots=True)
class PartitionView:
    """An assigned partition with its state."""

    partition: Partition
    replicas: tuple[int, ...]
    """The assigned brokers in their order; the first one is the preferred leader."""
    state: PartitionState | None
    """None if it has none, or one that does not parse."""
    is_unreadable: bool = False
    """Whether its state exists and does not parse."""

    @property
    def preferred(self) -> int | None:
        """The broker that leads it if possible."""
        return self.replicas[0] if self.replicas else None

    @property
    def leader(self) -> int:
        """The broker that leads it, or NO_LEADER."""
        return NO_LEADER if self.state is None else self.state.leader

    @property
    def is_led_as_preferred(self) -> bool:
        """Whether its first replica leads it."""
        return self.leader == self.preferred

    @property
    def isr(self) -> tuple[int, ...]:
        """The replicas in sync."""
        return () if self.state is None else self.state.isr


@dataclass(slots=True)
class TopicView:
    """A topic with its partitions."""

    name: str
    partitions: dict[int, PartitionView] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)
    """Names below `partitions` that are not assigned."""
    is_unreadable: bool = False
    """Whether its assignment does not parse."""

    @property
    def assignment(self) -> dict[int, tuple[int, ...]]:
        """Partition -> replicas."""
        return {index: one.replicas for index, one in self.partitions.items()}


@dataclass(slots=True)
class ControlPlane:
    """Everything that the controller reads and writes in ZooKeeper."""

    snapshot: Snapshot
    brokers: frozenset[int] = frozenset()
    """The registered brokers."""
    topics: dict[str, TopicView] = field(default_factory=dict)
    configs: dict[str, TopicConfig] = field(default_factory=dict)
    controller: Controller | None = None
    epoch: int | None = None
    reassignment: Reassignment | None = None
    """The request that is pending; None if there is none, or one that does not parse."""
    election: PreferredReplicaElection | None = None
    deletions: tuple[str, ...] = ()
    """The topics that are to be deleted."""
    bad: dict[str, str] = field(default_factory=dict)
    """Path -> the problem of its data."""

    @property
    def is_present(self) -> bool:
        """Whether a controller has ever been here, or is requested to do something."""
        signs = (
            *(paths.CONTROLLER, paths.CONTROLLER_EPOCH),
            *(paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION),
        )
        return bool(self.deletions) or any(path in self.snapshot.nodes for path in signs)

    def partitions(self) -> Iterator[PartitionView]:
        """Every assigned partition, by topic and number."""
        for topic in self.topics.values():
            yield from topic.partitions.values()

    def moves(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """Partition -> its target, of the reassignment that is pending."""
        requested = () if self.reassignment is None else self.reassignment.moves
        return {(topic, index): replicas for topic, index, replicas in requested}


def read_control_plane(snapshot: Snapshot) -> ControlPlane:
    """Read a snapshot."""
    names = snapshot.children(paths.BROKER_IDS)
    seen = ControlPlane(snapshot, frozenset(int(name) for name in names if name.isdecimal()))
    seen.controller = _decoded(seen, paths.CONTROLLER, Controller.decode)
    epoch = _decoded(seen, paths.CONTROLLER_EPOCH, ControllerEpoch.decode)
    seen.epoch = None if epoch is None else epoch.epoch
    seen.reassignment = _decoded(seen, paths.REASSIGN_PARTITIONS, Reassignment.decode)
    seen.election = _decoded(
        seen, paths.PREFERRED_REPLICA_ELECTION, PreferredReplicaElection.decode
    )
    seen.deletions = _deletions(seen)
    for name in snapshot.children(paths.TOPIC_CONFIGS):
        config = _decoded(seen, paths.topic_config(name), TopicConfig.decode)
        if config is not None:
            seen.configs[name] = config
    for name in snapshot.children(paths.TOPICS):
        topic = _topic(seen, name)
        if topic is not None:
            seen.topics[name] = topic
    return seen


def _decoded(
    seen: ControlPlane, path: str, decode: Callable[[str, bytes | None], Payload]
) -> Payload | None:
    """Read the payload of a znode; None if it is missing or does not parse."""
    if path not in seen.snapshot.nodes:
        return None
    try:
        return decode(path, seen.snapshot.data(path))
    except BadPayload as error:
        seen.bad[path] = str(error)
        return None


def _deletions(seen: ControlPlane) -> tuple[str, ...]:
    """The children of the znode, as shipped, and the topics in its data, as a page has them."""
    named = list(seen.snapshot.children(paths.DELETE_TOPICS))
    node = seen.snapshot.nodes.get(paths.DELETE_TOPICS)
    if node is not None and node.data:
        listed = _decoded(seen, paths.DELETE_TOPICS, TopicDeletion.decode)
        named += () if listed is None else listed.topics
    return tuple(dict.fromkeys(named))


def _topic(seen: ControlPlane, name: str) -> TopicView | None:
    """A topic of the 0.8 layout; None for one that is registered in the 0.7 layout only."""
    path = paths.topic(name)
    data = seen.snapshot.data(path)
    below = seen.snapshot.children(paths.partitions(name))
    is_07 = any(child.isdecimal() for child in seen.snapshot.children(path))
    if not below and (not data or (is_07 and b"partitions" not in data)):
        return None
    topic = TopicView(name)
    assigned = _decoded(seen, path, TopicAssignment.decode) if data else TopicAssignment(())
    if assigned is None:
        topic.is_unreadable = True
        return topic
    for index, replicas in assigned.replicas:
        partition = Partition(name, str(index))
        where = paths.partition_state(partition)
        state = _decoded(seen, where, PartitionState.decode)
        view = PartitionView(partition, replicas, state, is_unreadable=where in seen.bad)
        topic.partitions[index] = view
    known = {str(index) for index in topic.partitions}
    topic.strays = [child for child in below if child not in known]
    return topic
