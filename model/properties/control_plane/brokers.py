"""Judges of brokers that replicate: what they know, what they hold, and how they leave.

What a broker knows is compared with the registry at the end of a run. A process that starts
knows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import ClusterPlan, Plan
from watchkeeper.model.properties.control_plane.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Finding, Property, Subject, counted
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import (
    NO_LEADER,
    PartitionState,
    TopicAssignment,
    TopicConfig,
)
from watchkeeper.model.replication.requests import DELETED
from watchkeeper.model.trace.assignments import assignment_of
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

METADATA = Property(
    "metadata agrees",
    "end",
    "at the end each live broker knows who leads each partition, and no partition of a deleted "
    "topic",
    exercise="a live broker that has learned who leads",
    is_optional=True,
)
LEADERS_LEAD = Property(
    "leaders lead",
    "end",
    "at the end each live broker leads the partitions of which the registry names it the leader, "
    "in that epoch, and no other ones",
    exercise="a partition whose leader is alive",
    is_optional=True,
)
SETTINGS = Property(
    "settings are applied",
    "end",
    "at the end each live broker that has replicas of a topic follows the settings that the "
    "registry has",
    exercise="a topic with settings, and a live broker that has replicas of it",
    is_optional=True,
)
NOTHING_LEFT = Property(
    "nothing is left",
    "end",
    "at the end no live broker has the log of a partition that is not assigned to it",
    exercise="a partition that was moved or deleted, and a live broker that had it",
    is_optional=True,
)
HANDED_OVER = Property(
    "leaving brokers hand over",
    "always",
    "a broker that leaves in good order leads no partition, and leaves none without a leader, "
    "that another live member of the ISR could lead, or that a live replica could not follow "
    "because it was never told where",
    exercise="a broker that has asked the controller to take over",
    is_optional=True,
)
RISING = Property(
    "high watermark rises",
    "always",
    "the high watermark of a leader never falls while it leads in one epoch",
    exercise="a message that was committed",
    is_optional=True,
)
ONE_ID = Property(
    "one cluster id",
    "always",
    "all brokers of a cluster know one id, of 22 characters",
    exercise="a broker that has read the id of its cluster",
    is_optional=True,
)

BROKERS: tuple[Property, ...] = (
    METADATA,
    LEADERS_LEAD,
    SETTINGS,
    NOTHING_LEFT,
    HANDED_OVER,
    RISING,
    ONE_ID,
)
"""The properties of brokers that replicate."""

CLUSTER_ID = re.compile(r"[a-zA-Z0-9_-]{22}")


@dataclass(slots=True)
class Registry:
    """What the registry of one cluster has."""

    states: dict[Partition, PartitionState] = field(default_factory=dict)
    last_leaders: dict[Partition, int] = field(default_factory=dict)
    """Who leads each partition, or has led it before it had no leader."""
    replicas: dict[Partition, tuple[int, ...]] = field(default_factory=dict)
    settings: dict[str, TopicConfig | None] = field(default_factory=dict)
    """Of topics; None if they cannot be read."""
    cluster_id: str = ""
    """The id that a broker has read first."""

    def topics(self) -> set[str]:
        """Return the topics that there are."""
        return {partition.topic for partition in self.replicas}


@dataclass(slots=True)
class Knowledge:
    """What one process of a broker knows, and what is on its disk."""

    leaders: dict[Partition, int] = field(default_factory=dict)
    leads: dict[Partition, int] = field(default_factory=dict)
    """The partitions that it leads, with the epochs."""
    not_found: dict[Partition, int] = field(default_factory=dict)
    """The partitions that it cannot follow: it was not told where their leaders are."""
    settings: dict[str, Mapping[str, str]] = field(default_factory=dict)
    logs: dict[Partition, None] = field(default_factory=dict)
    """The partitions of which it has a log."""
    had: dict[Partition, None] = field(default_factory=dict)
    """Those of which it ever had one."""


class BrokersJudge:
    """Judges the brokers of all clusters of a run."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.history = history
        self.clusters = [cluster for cluster in plan.clusters if cluster.replication is not None]
        self.cluster_of: dict[str, str] = {}
        self.nodes: dict[str, dict[int, str]] = {}
        self.planned: dict[str, dict[str, TopicAssignment]] = {}
        for cluster in self.clusters:
            self._know(cluster, plan.prefix_of(cluster.name))
        self.registries = {cluster.name: Registry() for cluster in self.clusters}
        self.known = {
            node: Knowledge() for nodes in self.nodes.values() for node in nodes.values()
        }
        self.live: dict[str, None] = {}
        self.marks: dict[tuple[str, Partition, int], int] = {}
        """Broker, partition and epoch -> the high watermark."""
        self.highest: dict[tuple[str, Partition], int] = {}
        """Cluster and partition -> the greatest high watermark of any leader."""
        self.falls = 0
        """How often a leader began below that: consumers see an earlier end."""
        self.evidence = Evidence(BROKERS)
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.APPLIED: self._applied,
            EventKind.STARTED: self._started,
            EventKind.ENDED: self._ended,
            EventKind.REPLICA_OPENED: self._has_log,
            EventKind.APPENDED: self._has_log,
            EventKind.REPLICA_DELETED: self._deleted,
            EventKind.BECAME_LEADER: self._leads,
            EventKind.BECAME_FOLLOWER: self._follows,
            EventKind.LEADER_UNKNOWN: self._does_not_find,
            EventKind.METADATA_UPDATED: self._told,
            EventKind.SETTINGS_APPLIED: self._settings,
            EventKind.COMMITTED: self._committed,
            EventKind.SHUT_DOWN: self._shut_down,
            EventKind.CLUSTER_ID: self._cluster_id,
        }

    def _know(self, cluster: ClusterPlan, prefix: str) -> None:
        self.cluster_of.update(dict.fromkeys(cluster.operators(prefix), cluster.name))
        self.nodes[cluster.name] = {one.broker_id: one.node for one in cluster.brokers}
        self.planned[cluster.name] = {
            one.name: TopicAssignment(one.replicas) for one in cluster.topics
        }

    # --- the registry ------------------------------------------------------------------

    def _applied(self, event: Event) -> None:
        name = self.cluster_of.get(self.history.holders.get(event.session, ""))
        if name is None and len(self.clusters) == 1:
            name = self.clusters[0].name  # an operator's hand in the only cluster
        if name is None:
            return
        for change in event.detail["did"]:
            self._changed(name, change[1], None if change[0] == "deleted" else change[3] or "")

    def _changed(self, name: str, path: str, data: str | None) -> None:
        """A znode was written, or deleted where there is no data."""
        registry = self.registries[name]
        partition = paths.parse_state(path)
        topic = paths.parse_topic(path)
        if partition is not None:
            registry.states.pop(partition, None)
            if data is None:
                self.highest.pop((name, partition), None)
            state = None if data is None else _decoded(PartitionState.decode, path, data)
            if state is not None:
                registry.states[partition] = state
                if state.leader != NO_LEADER:
                    registry.last_leaders[partition] = state.leader
        elif topic is not None:
            self._assigned(name, path, topic, data)
        elif path.startswith(f"{paths.TOPIC_CONFIGS}/"):
            registry.settings[path.rpartition("/")[2]] = (
                TopicConfig() if data is None else _decoded(TopicConfig.decode, path, data)
            )

    def _assigned(self, name: str, path: str, topic: str, data: str | None) -> None:
        registry = self.registries[name]
        if data is None:
            for partition in [one for one in registry.replicas if one.topic == topic]:
                del registry.replicas[partition]
            return
        found = assignment_of(path, data) or self.planned[name].get(topic)
        for index, replicas in () if found is None else found.replicas:
            registry.replicas[Partition(topic, str(index))] = replicas

    # --- brokers -----------------------------------------------------------------------

    def _started(self, event: Event) -> None:
        if event.node in self.known:
            self.live[event.node] = None
            before = self.known[event.node]
            self.known[event.node] = Knowledge(logs=before.logs, had=before.had)

    def _ended(self, event: Event) -> None:
        self.live.pop(event.node, None)

    def _has_log(self, event: Event) -> None:
        known = self.known.get(event.node)
        if known is not None:
            partition = Partition(event.topic, event.detail["partition"])
            known.logs[partition] = known.had[partition] = None

    def _deleted(self, event: Event) -> None:
        known = self.known.get(event.node)
        if known is not None:
            partition = Partition(event.topic, event.detail["partition"])
            known.logs.pop(partition, None)
            known.leads.pop(partition, None)
            known.not_found.pop(partition, None)
            self.marks = {
                key: mark
                for key, mark in self.marks.items()
                if key[:2] != (event.node, partition)
            }

    def _leads(self, event: Event) -> None:
        known = self.known.get(event.node)
        if known is not None:
            partition = Partition(event.topic, event.detail["partition"])
            known.leads[partition] = event.detail["epoch"]
            known.not_found.pop(partition, None)
            highest = self.highest.get((self.cluster_of[event.node], partition), 0)
            self.falls += event.detail["high_watermark"] < highest

    def _follows(self, event: Event) -> None:
        known = self.known.get(event.node)
        if known is not None:
            partition = Partition(event.topic, event.detail["partition"])
            known.leads.pop(partition, None)
            known.not_found.pop(partition, None)

    def _does_not_find(self, event: Event) -> None:
        known = self.known.get(event.node)
        if known is not None:
            partition = Partition(event.topic, event.detail["partition"])
            known.not_found[partition] = event.detail["said"]

    def _told(self, event: Event) -> None:
        known = self.known.get(event.node)
        for topic, name, leader in () if known is None else event.detail["leaders"]:
            assert known is not None, "only brokers learn of it"
            if leader == DELETED:
                known.leaders.pop(Partition(topic, name), None)
            else:
                known.leaders[Partition(topic, name)] = leader

    def _settings(self, event: Event) -> None:
        known = self.known.get(event.node)
        if known is not None:
            known.settings[event.topic] = event.detail["settings"]

    # --- always ------------------------------------------------------------------------

    def _committed(self, event: Event) -> None:
        if event.node not in self.known:
            return
        self.evidence.exercise(RISING)
        detail = event.detail
        partition = Partition(event.topic, detail["partition"])
        key = event.node, partition, detail["epoch"]
        mark, before = detail["high_watermark"], self.marks.get(key, 0)
        self.marks[key] = mark
        place = self.cluster_of[event.node], partition
        self.highest[place] = max(mark, self.highest.get(place, 0))
        if mark < before:
            text = (
                f"the high watermark of {partition} at {event.node} falls from {before} to {mark}"
            )
            about = _about(event.node, partition)
            self.evidence.violate(RISING, event.t_us, "a high watermark that falls", text, about)

    def _shut_down(self, event: Event) -> None:
        name = self.cluster_of.get(event.node)
        if name is None:
            return
        self.evidence.exercise(HANDED_OVER)
        registry, nodes = self.registries[name], self.nodes[name]
        own = next(broker for broker, node in nodes.items() if node == event.node)
        live = {broker: node for broker, node in nodes.items() if node in self.live}
        for partition, state in registry.states.items():
            if registry.last_leaders.get(partition) != own:
                continue
            able = [one for one in state.isr if one != own and one in live]
            lost = [
                one
                for one, node in live.items()
                if self.known[node].not_found.get(partition) == own
            ]
            if able or lost:
                why = (
                    f"broker {able[0]} of the ISR could lead"
                    if able
                    else f"broker {lost[0]} could not follow: it was never told where"
                )
                what = "leads" if state.leader == own else "leaves without a leader"
                text = f"{event.node} leaves and {what} {partition}, which {why}"
                about = _about(event.node, partition)
                self.evidence.violate(
                    HANDED_OVER, event.t_us, "a leader that leaves", text, about
                )

    def _cluster_id(self, event: Event) -> None:
        name = self.cluster_of.get(event.node)
        if name is None:
            return
        self.evidence.exercise(ONE_ID)
        found, registry = event.detail["id"], self.registries[name]
        registry.cluster_id = registry.cluster_id or found
        if found != registry.cluster_id or not CLUSTER_ID.fullmatch(found):
            text = (
                f"{event.node} reads the id {found!r}, and {registry.cluster_id!r} was read "
                "first; an id has 22 characters and never changes"
            )
            about = Subject((event.node,), paths=(paths.CLUSTER_ID,))
            self.evidence.violate(ONE_ID, event.t_us, "another cluster id", text, about)

    # --- at the end --------------------------------------------------------------------

    def close(self, end_us: int) -> None:
        """The run is over: compare what brokers know and hold with the registry."""
        if self.falls:
            times = counted(self.falls, "time")
            self.evidence.measure(RISING, f"; a new leader began lower {times}")
        if self.history.faults_in_force:
            return
        for name, nodes in self.nodes.items():
            for broker, node in nodes.items():
                if node in self.live:
                    self._judge_end(self.registries[name], broker, node, end_us)

    def _judge_end(self, registry: Registry, broker: int, node: str, end_us: int) -> None:
        known = self.known[node]
        self._judge_metadata(registry, node, known, end_us)
        self._judge_leads(registry, broker, node, end_us)
        self._judge_settings(registry, broker, node, end_us)
        for partition in known.had:
            if broker in registry.replicas.get(partition, ()):
                continue
            self.evidence.exercise(NOTHING_LEFT)
            if partition in known.logs:
                text = f"{node} has the log of {partition}, which is not assigned to it"
                about = _about(node, partition)
                self.evidence.violate(NOTHING_LEFT, end_us, "a log that is left", text, about)

    def _judge_metadata(
        self, registry: Registry, node: str, known: Knowledge, end_us: int
    ) -> None:
        if not known.leaders:
            return
        self.evidence.exercise(METADATA)
        wanted = {one: state.leader for one, state in registry.states.items()}
        for partition in sorted({*wanted, *known.leaders}):
            told, leads = known.leaders.get(partition), wanted.get(partition)
            if told == leads or (told is None and leads == NO_LEADER):
                continue
            text = (
                f"{node} knows {_in_words(told)} of {partition}, the registry has "
                f"{_in_words(leads)}"
            )
            about = _about(node, partition)
            self.evidence.violate(METADATA, end_us, "metadata that differs", text, about)
            return

    def _judge_leads(self, registry: Registry, broker: int, node: str, end_us: int) -> None:
        leads = self.known[node].leads
        for partition, state in sorted(registry.states.items()):
            wanted = state.leader_epoch if state.leader == broker else None
            if wanted is not None:
                self.evidence.exercise(LEADERS_LEAD)
            if leads.get(partition) != wanted:
                text = (
                    f"{node} {_leading(partition, leads.get(partition))}, and the registry has "
                    f"{_in_words(state.leader)} in epoch {state.leader_epoch}"
                )
                about = _about(node, partition)
                shape = "a leader that does not lead"
                self.evidence.violate(LEADERS_LEAD, end_us, shape, text, about)

    def _judge_settings(self, registry: Registry, broker: int, node: str, end_us: int) -> None:
        topics = registry.topics()
        for topic, config in registry.settings.items():
            holds = any(
                one.topic == topic and broker in replicas
                for one, replicas in registry.replicas.items()
            )
            if config is None or topic not in topics or not holds:
                continue
            self.evidence.exercise(SETTINGS)
            wanted: Mapping[str, Any] = dict(config.overrides)
            follows = self.known[node].settings.get(topic, {})
            if dict(follows) != wanted:
                text = (
                    f"{node} follows {_settings_in_words(follows)} for {topic}, the registry has "
                    f"{_settings_in_words(wanted)}"
                )
                znodes = (paths.topic_config(topic), paths.CONFIG_CHANGES)
                about = Subject((node,), topic=topic, paths=znodes)
                self.evidence.violate(SETTINGS, end_us, "settings that differ", text, about)

    def findings(self) -> Iterator[Finding]:
        """The finding on each property."""
        return self.evidence.findings()


def _about(node: str, partition: Partition) -> Subject:
    """What a violation is about: a broker, and a partition with its state."""
    znodes = (paths.partition_state(partition), paths.topic(partition.topic))
    return Subject((node,), partitions=(partition,), topic=partition.topic, paths=znodes)


def _decoded(decode: Callable[[str, bytes | None], Any], path: str, data: str) -> Any:
    try:
        return decode(path, data.encode())
    except BadPayload:
        return None


def _leading(partition: Partition, epoch: int | None) -> str:
    return (
        f"does not lead {partition}" if epoch is None else f"leads {partition} in epoch {epoch}"
    )


def _in_words(leader: int | None) -> str:
    if leader is None:
        return "nothing"
    return "no leader" if leader == NO_LEADER else f"leader {leader}"


def _settings_in_words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(settings.items())) or "no settings"
