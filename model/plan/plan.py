"""The plan of a run: clusters, groups and a timeline, as frozen values.

A scenario file is read and checked elsewhere and becomes a plan. Times are integer
microseconds from the start of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from watchkeeper.model.actor.program import Program
from watchkeeper.model.clients.producer.settings import ProducerSettings
from watchkeeper.model.clients_08.settings import ProducerSettings08
from watchkeeper.model.controller.state_machines.variants import (
    AddedPartitions,
    ControllerVariant,
)
from watchkeeper.model.group.settings import ConsumerSettings
from watchkeeper.model.group.state import configured_name
from watchkeeper.model.group.variants import Variant
from watchkeeper.model.log.settings import BrokerLogSettings
from watchkeeper.model.offset_manager.migration import Store
from watchkeeper.model.offset_manager.settings import ReplicatedOffsetSettings
from watchkeeper.model.plan.delivery_guarantee import DeliveryGuarantee
from watchkeeper.model.plan.faults import Action
from watchkeeper.model.plan.roles import role_of
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import Layout
from watchkeeper.model.registry.subscription import Subscription
from watchkeeper.model.replication.settings import AutoCreation, FetchLayout, ReplicationSettings
from watchkeeper.model.replication.variants import ReplicationVariant


@dataclass(frozen=True, slots=True)
class ZooKeeperPlan:
    """An ensemble."""

    servers: int = 3
    tick_us: int = 500_000
    can_list_ephemerals: bool = True
    """Whether the servers know opcode 103, as servers from 3.6 on do."""


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic: how many partitions, by broker (0.7) or in all (0.8)."""

    name: str
    by_broker: tuple[tuple[int, int], ...]
    replicas: tuple[tuple[int, tuple[int, ...]], ...]
    """0.8: partition -> brokers."""

    @property
    def size(self) -> int:
        """How many partitions it has."""
        return sum(count for _, count in self.by_broker) or len(self.replicas)


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """A broker."""

    node: str
    broker_id: int
    host: str
    port: int
    starts_us: int | None = 0
    """None for a process that only the timeline starts."""


@dataclass(frozen=True, slots=True)
class StoragePlan:
    """The machines on which the brokers of a cluster keep their logs."""

    machine: str = "page"
    """Which kind, by its name."""
    memory_bytes: int = 0
    """For the pagecache; 0: as much as that kind has."""
    sends_files: bool = True
    """Whether fetches are answered with sendfile; otherwise through the broker's memory."""
    settings: BrokerLogSettings = field(default_factory=BrokerLogSettings)
    """Without the number of partitions of a topic, which the plan of the topic holds."""

    def settings_with(self, counts: Mapping[str, int]) -> BrokerLogSettings:
        """The settings of a broker that has these numbers of partitions of each topic."""
        own = {
            topic: replace(self.settings.of(topic), partitions=count)
            for topic, count in counts.items()
        }
        topics = {**dict(self.settings.topics), **own}
        return replace(self.settings, topics=tuple(sorted(topics.items())))


@dataclass(frozen=True, slots=True)
class ControllerPlan:
    """The controller that the brokers of a cluster elect."""

    variant: ControllerVariant
    allows_unclean: bool = True
    """Whether a replica that is not in the ISR may lead: `unclean.leader.election.enable`."""


@dataclass(frozen=True, slots=True)
class ReplicationPlan:
    """How the brokers of a cluster replicate partitions."""

    variant: ReplicationVariant
    min_in_sync: int = 1
    lag_time_ms: int = 10_000
    lag_messages: int = 4_000
    fetch_wait_ms: int = 500
    fetch_layout: FetchLayout = FetchLayout.WITH_EPOCHS
    rebalance_ms: int | None = 300_000
    """How often the controller looks whether preferred replicas lead; None for never."""
    shutdown_backoff_ms: int | None = 5_000
    """How long a broker that leaves waits before it tries again to hand over what it leads; None
    if it hands nothing over.
    """
    deletes_topics: bool = True
    """Whether controllers carry out requests to delete topics."""
    isr_in_metadata: bool = False
    """Whether it is judged that brokers know the ISRs."""
    auto_creation: AutoCreation | None = None
    """How topics are created that a client wants and that do not exist; None if none are."""
    offsets: ReplicatedOffsetSettings = field(default_factory=ReplicatedOffsetSettings)
    """How the brokers keep the offsets of groups."""


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Brokers and the ensemble they register with."""

    name: str
    zookeeper: ZooKeeperPlan
    layout: Layout
    variant: Variant
    brokers: tuple[BrokerPlan, ...]
    topics: tuple[TopicPlan, ...]
    session_timeout_ms: int = 6000
    storage: StoragePlan | None = None
    """None if logs hold no messages but only grow at a rate."""
    controller: ControllerPlan | None = None
    """None if the administrator elects the leaders."""
    replication: ReplicationPlan | None = None
    """None if brokers carry out no requests, and leaders are what ZooKeeper says."""

    def replication_of(self, broker: BrokerPlan) -> ReplicationSettings:
        """The configuration of replication in one broker."""
        plan = self.replication
        assert plan is not None, "its brokers replicate"
        return ReplicationSettings(
            broker.broker_id,
            plan.variant,
            min_in_sync=plan.min_in_sync,
            allows_unclean=self.controller is None or self.controller.allows_unclean,
            lag_time_ms=plan.lag_time_ms,
            lag_messages=plan.lag_messages,
            fetch_wait_ms=plan.fetch_wait_ms,
            fetch_layout=plan.fetch_layout,
            auto_creation=plan.auto_creation,
        )

    @property
    def tools_take_ids_for_places(self) -> bool:
        """Whether tools place new partitions by the id of a broker (KAFKA-2146)."""
        plan = self.controller
        return plan is not None and plan.variant.added_partitions is AddedPartitions.BY_ID

    @property
    def has_messages(self) -> bool:
        """Whether its brokers store messages; elsewhere a log is only a rate."""
        return self.storage is not None or self.replication is not None

    @property
    def leader_brokers(self) -> tuple[str, ...]:
        """The addresses of brokers that know leaders: of those that replicate."""
        return () if self.replication is None else self.addresses

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the brokers, as the scenario has them."""
        return tuple(f"{broker.host}:{broker.port}" for broker in self.brokers)

    def writer(self, prefix: str) -> str:
        """The name of the process that sends the loads of a replicated cluster, else empty."""
        return "" if self.replication is None else f"{prefix}writer"

    def administrator(self, prefix: str) -> str:
        """The name of its administrator; empty in the 0.7 layout, which has none.

        `prefix` begins the names of its processes.
        """
        return "" if self.layout == "0.7" else f"{prefix}administrator"

    def operators(self, prefix: str) -> tuple[str, ...]:
        """The names of its administrator and of its brokers, which write its registry."""
        return (self.administrator(prefix), *(broker.node for broker in self.brokers))


@dataclass(frozen=True, slots=True)
class ConsumerPlan:
    """A consumer."""

    node: str
    host: str
    configured_id: str
    subscription: Subscription
    variant: Variant
    settings: ConsumerSettings
    starts_us: int | None = 0
    program: Program | None = None
    """A program of the user's own in place of the shipped consumer."""


class ConsumerFetches(StrEnum):
    """How the consumers of a group fetch from brokers that replicate."""

    RECORDS = "records"
    """In a layout of this project."""
    KAFKA_08 = "as in 0.8"
    """With the requests of 0.8, as consumers in applications do."""


@dataclass(frozen=True, slots=True)
class Handling:
    """How the application of a member handles the messages it receives."""

    each_us: int = 0
    """Time for one message."""
    commits: Literal["as configured", "before", "after", "with the result"] = "as configured"
    """When the position is stored, relative to the handling of a fetched chunk."""
    store: Literal["database", "segments"] = "database"
    """Where results are stored, if the position is stored with them."""


def balancer(cluster: str) -> str:
    """Where a balancer listens that deals out connections to the brokers of a cluster."""
    return f"{cluster}-balancer.example:9092"


@dataclass(frozen=True, slots=True)
class ProducerPlan:
    """A process that sends messages at the rate that the timeline states."""

    node: str
    cluster: str
    settings: ProducerSettings | ProducerSettings08
    """Those of 0.8 if the brokers of its cluster replicate."""
    variant: Variant
    """Which clients of 0.7 it uses: those of Kafka 0.7.2, or the corrected ones."""
    keys: int = 0
    """The number of distinct keys of its messages; 0 for messages without a key."""
    is_balanced: bool = False
    """Whether a balancer deals its connections out to the brokers."""
    first_number: int = 0
    """Of its messages. No two messages of a cluster that replicates have the same number."""

    @property
    def replicates(self) -> bool:
        """Whether the brokers that it sends to replicate."""
        return isinstance(self.settings, ProducerSettings08)

    @property
    def name(self) -> str:
        """The producer's name in payloads and traces."""
        return self.node.replace("/", "-")

    @property
    def set(self) -> str:
        """The name that it shares with others of its kind."""
        return self.node.partition("/")[0]


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """A process in which several members run, each with a session of its own."""

    name: str
    members: tuple[str, ...]


def process_of(processes: Iterable[ProcessPlan], node: str) -> str:
    """The process in which a member runs with others; its own name if it runs alone."""
    return next((process.name for process in processes if node in process.members), node)


@dataclass(frozen=True, slots=True)
class Forwarding:
    """Where the consumers of a mirror send the messages they receive."""

    mirror: str
    to: str
    """The cluster that they send to."""
    expression: str
    """Of the topics."""
    settings: ProducerSettings
    commits: Literal["after", "before"] = "after"
    """Whether a position advances after its message has arrived, or when it is handed on."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A group of consumers."""

    name: str
    cluster: str
    consumers: tuple[ConsumerPlan, ...]
    fetch_every_us: int = 1_000_000
    guarantee: DeliveryGuarantee | None = None
    """The delivery guarantee of its messages."""
    handling: Handling = Handling()
    forwards: Forwarding | None = None
    """The target cluster, if the group is one of a mirror's."""
    fetches: ConsumerFetches = ConsumerFetches.RECORDS
    """How they fetch, if brokers replicate."""
    follows: str = ""
    """The group on another cluster that it takes over from: what that group consumed counts as
    consumed."""

    @property
    def is_committed_by_hand(self) -> bool:
        """Whether its applications order a commit for each delivery."""
        return self.forwards is None and self.handling.commits in ("before", "after")


def _name_of(group: GroupPlan, member: ConsumerPlan) -> str:
    return configured_name(member.variant, group.name, member.host, member.configured_id)


@dataclass(frozen=True, slots=True)
class Sometimes:
    """Something that is looked for in a run: that happened at least once, or never."""

    event: str
    node: str = ""
    partition: str = ""
    """The topic and the partition that it is about, as one word."""
    after: str = ""
    """The verb of an action after which it is looked for."""
    before: str = ""
    """The verb of an action with which the looking ends."""
    detail: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        words = [self.event]
        if self.node:
            words.append(f"of {self.node}")
        if self.partition:
            words.append(f"in {self.partition}")
        words.extend(f"{key}={value}" for key, value in self.detail)
        if self.after:
            words.append(f"after {self.after}")
        if self.before:
            words.append(f"before {self.before}")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run, except its seed."""

    name: str
    about: str
    variant: str
    clusters: tuple[ClusterPlan, ...]
    groups: tuple[GroupPlan, ...]
    timeline: tuple[Action, ...]
    settle_us: int
    producers: tuple[ProducerPlan, ...] = ()
    processes: tuple[ProcessPlan, ...] = ()
    """The processes of several members; every other member has a process of its own."""
    sometimes: tuple[Sometimes, ...] = ()
    """Events that must happen; without them the run shows nothing."""
    never: tuple[Sometimes, ...] = ()
    """Events that must not happen."""
    strict_ownership: bool = False
    """Whether the strict form of single ownership counts for the verdict."""
    progress_within_us: int | None = None
    work_factor: int = 4

    def cluster(self, name: str) -> ClusterPlan:
        """The cluster of this name."""
        return next(cluster for cluster in self.clusters if cluster.name == name)

    def senders_to(self, cluster: str) -> tuple[ProducerPlan, ...]:
        """The producers that send to a cluster."""
        return tuple(plan for plan in self.producers if plan.cluster == cluster)

    def prefix_of(self, cluster: str) -> str:
        """What the names of a cluster's processes begin with; empty where it is the only one."""
        return f"{cluster}:" if len(self.clusters) > 1 else ""

    @property
    def elects_controllers(self) -> bool:
        """Whether the brokers of a cluster elect a controller."""
        return any(cluster.controller is not None for cluster in self.clusters)

    @property
    def replicates(self) -> bool:
        """Whether the brokers of a cluster replicate."""
        return any(cluster.replication is not None for cluster in self.clusters)

    @property
    def keeps_offsets_in_kafka(self) -> bool:
        """Whether a member commits its offsets to Kafka."""
        return any(
            member.settings.storage.storage is Store.KAFKA for _, member in self.consumers()
        )

    def brokers_against(self, action: Action) -> tuple[str, ...]:
        """The brokers and roles of brokers from which an action cuts a broker off.

        Empty for another action, and where the other side is ZooKeeper or a client.
        """
        brokers = {broker.node for cluster in self.clusters for broker in cluster.brokers}

        def is_broker(name: str) -> bool:
            role = role_of(name)
            return name in brokers if role is None else role.target == "broker"

        other = action.option("from")
        if action.verb.name != "partition" or not is_broker(action.target) or other is None:
            return ()
        if other == "brokers":
            return tuple(sorted(brokers - {action.target}))
        return (other,) if is_broker(other) else ()

    def consumers(self) -> Iterator[tuple[GroupPlan, ConsumerPlan]]:
        """Every consumer with its group."""
        for group in self.groups:
            for consumer in group.consumers:
                yield group, consumer

    def group_of(self) -> Mapping[str, str]:
        """Node -> group, for every consumer."""
        return {consumer.node: group.name for group, consumer in self.consumers()}

    def members_of(self, name: str) -> tuple[str, ...]:
        """The members that run in a process; for the name of a member, that member."""
        for process in self.processes:
            if process.name == name:
                return process.members
        return (name,)

    def process_of(self, node: str) -> str:
        """The process in which a member runs with others; its own name if it runs alone."""
        return process_of(self.processes, node)

    def shared_ids(self) -> Mapping[str, str]:
        """Node -> the path of its registration, for consumers whose id another one has too."""
        found = {
            member.node: paths.member(group.name, _name_of(group, member))
            for group, member in self.consumers()
            if member.configured_id
        }
        numbers = Counter(found.values())
        return {node: path for node, path in found.items() if numbers[path] > 1}

    @property
    def has_own_program(self) -> bool:
        """Whether a consumer runs a program of the user's own."""
        return any(member.program is not None for _, member in self.consumers())

    @property
    def calm_us(self) -> int:
        """When every process has started and the last action that has a time is over.

        Faults by trigger may come later.
        """
        ends = [
            action.at_us + action.for_us for action in self.timeline if action.at_us is not None
        ]
        members = [member for _, member in self.consumers()]
        brokers = [broker for cluster in self.clusters for broker in cluster.brokers]
        ends += [member.starts_us for member in members if member.starts_us is not None]
        ends += [broker.starts_us for broker in brokers if broker.starts_us is not None]
        return max(ends, default=0)
