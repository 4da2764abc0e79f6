"""The cluster as ZooKeeper has it, in the layout of 0.8.

A broker of Kafka learns from its controller what it leads. Where no controller runs, as in a
cluster of brokers of this kind alone, a broker reads it: at a metadata request, and from time to
time. It *claims* a partition that has no leader and no other replica, by writing the state of the
partition as a controller would; with a controller in the registry it claims nothing.

Kafka 0.8.2.2: KafkaApis.handleTopicMetadataRequest, AdminUtils.createTopic,
PartitionStateMachine.initializeLeaderAndIsrForPartition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.errors import BadVersion, Failure, NodeExists, NoNode, ZooKeeperError
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import (
    Create,
    Exists,
    GetChildren,
    GetData,
    Operation,
    Pipelined,
    Purpose,
    SetData,
)
from watchkeeper.model.actor.retry import Direct, create_with_parents
from watchkeeper.model.admin.auto_creation import create_if_missing
from watchkeeper.model.broker.upkeep import alone
from watchkeeper.model.broker_08.cluster import ClusterView, PartitionView
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import NO_LEADER, PartitionState, TopicAssignment
from watchkeeper.model.replication.settings import AutoCreation
from watchkeeper.model.wire_08.metadata import BrokerEndpoint

T = TypeVar("T")
NO_CONTROLLER_EPOCH = 0
"""In a state that no controller wrote. A controller that comes later has a higher epoch."""
Assigned = Mapping[Partition, tuple[int, ...]]
States = dict[Partition, tuple[PartitionState, int]]
"""Partition -> its state, and the version of the znode."""


class RegistryCluster:
    """The view of one broker of the registry."""

    def __init__(self, me: int, how: AutoCreation) -> None:
        self.view = ClusterView()
        self._me = me
        self._how = how

    async def refresh(self) -> None:
        """Read the registry, and claim what only this broker can lead.

        A registry that cannot be read leaves the view as it is: a broker goes on to serve what it
        led, as one of Kafka does that is cut off from ZooKeeper.
        """
        with suppress(ZooKeeperError, BadPayload):
            await alone("registry", self._refresh)

    async def _refresh(self) -> None:
        brokers = await _brokers()
        topics = await _assignments()
        assigned = {
            Partition(topic, str(index)): replicas
            for topic, each in topics.items()
            for index, replicas in each.replicas
        }
        states = await _states(assigned)
        if await Exists(paths.CONTROLLER, False, "read cluster") is None:
            for partition in self._to_claim(assigned, states):
                await self._claim(partition, states)
        self.view = ClusterView(brokers, _views(topics, states))

    async def create(self, topic: str, how: AutoCreation | None = None) -> None:
        """Create a topic with replicas on the live brokers, unless it exists."""
        await create_if_missing(how or self._how, topic)
        await self.refresh()

    # --- partitions without a leader ---------------------------------------------------

    def _to_claim(self, assigned: Assigned, states: States) -> Iterator[Partition]:
        for partition, replicas in assigned.items():
            has_leader = partition in states and states[partition][0].leader != NO_LEADER
            if replicas == (self._me,) and not has_leader:
                yield partition

    async def _claim(self, partition: Partition, states: States) -> None:
        """Write this broker into the state of a partition, unless another one was faster."""
        path = paths.partition_state(partition)
        before = states.get(partition)
        epoch = 0 if before is None else before[0].leader_epoch + 1
        state = PartitionState(self._me, (self._me,), epoch, NO_CONTROLLER_EPOCH)
        with suppress(NodeExists, BadVersion):
            if before is None:
                created = Create(path, state.encode(), purpose="create state")
                await create_with_parents(Direct(), created)
                version = 0
            else:
                version = await SetData(path, state.encode(), before[1], "create state")
            states[partition] = (state, version)


def _views(
    topics: Mapping[str, TopicAssignment], states: States
) -> dict[str, dict[int, PartitionView]]:
    found: dict[str, dict[int, PartitionView]] = {}
    for topic, assignment in topics.items():
        for index, replicas in assignment.replicas:
            known = states.get(Partition(topic, str(index)))
            state = known[0] if known is not None else PartitionState(NO_LEADER, ())
            view = PartitionView(replicas, state.leader, state.isr)
            found.setdefault(topic, {})[index] = view
    return found


# --- reading ---------------------------------------------------------------------------


async def _brokers() -> dict[int, BrokerEndpoint]:
    names = await _children(paths.BROKER_IDS, "read brokers")
    found = {}
    for path, data in await _read((paths.broker(int(name)) for name in names), "read brokers"):
        info = paths.decode_broker(path, data.data)
        broker = int(path.rpartition("/")[2])
        found[broker] = BrokerEndpoint(broker, info.host, info.port)
    return found


async def _assignments() -> dict[str, TopicAssignment]:
    names = await _children(paths.TOPICS, "read partitions")
    return {
        path.rpartition("/")[2]: TopicAssignment.decode(path, data.data)
        for path, data in await _read(map(paths.topic, names), "read partitions")
    }


async def _states(partitions: Iterable[Partition]) -> States:
    wanted = {paths.partition_state(partition): partition for partition in partitions}
    return {
        wanted[path]: (PartitionState.decode(path, view.data), view.version)
        for path, view in await _read(wanted, "read partitions")
    }


async def _children(path: str, purpose: Purpose) -> tuple[str, ...]:
    try:
        return tuple(sorted(await GetChildren(path, False, purpose)))
    except NoNode:
        return ()


async def _read(wanted: Iterable[str], purpose: Purpose) -> list[tuple[str, ZnodeView]]:
    """Read znodes in one batch; those that are not there are left out."""
    reads: tuple[Operation[Any], ...] = tuple(GetData(path, False, purpose) for path in wanted)
    if not reads:
        return []
    found: list[tuple[str, ZnodeView]] = []
    for read, answer in zip(reads, await Pipelined(reads), strict=True):
        if type(answer) is not Failure:
            found.append((read.path, answer))
        elif answer.kind is not NoNode:
            raise answer.error()
    return found
