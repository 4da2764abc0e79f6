"""The judge of what brokers tell their clients of ISRs.

A leader changes the ISR of a partition in ZooKeeper. Every broker answers clients with the ISRs
that a controller has sent it last. At the end of a run both are compared, but for states that
were written a moment ago. Clients of 0.8 do not need ISRs: only clusters are judged whose
scenario says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Finding, Property, Subject
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.replication.requests import DELETED
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

KNOWN_ISRS = Property(
    "ISRs are known",
    "end",
    "at the end each live broker knows the ISR that each partition has had for ten seconds",
    exercise="with `isr_in_metadata`: a live broker that has learned ISRs, and a partition that "
    "has had one for so long",
    is_optional=True,
)
ISRS: tuple[Property, ...] = (KNOWN_ISRS,)

LATEST_US = 10_000_000
"""How long a broker may not know of an ISR."""


@dataclass(slots=True)
class State:
    """The ISR of a partition, and when it was written."""

    isr: frozenset[int]
    since_us: int


@dataclass(slots=True)
class Cluster:
    """What the registry of a cluster has, and what its running brokers know."""

    states: dict[Partition, State] = field(default_factory=dict)
    known: dict[str, dict[Partition, frozenset[int]]] = field(default_factory=dict)
    """Running broker -> partition -> the ISR that it has learned last."""


class IsrsJudge:
    """Judges the brokers of all clusters of a run."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.history = history
        self.evidence = Evidence(ISRS)
        self.clusters: dict[str, Cluster] = {}
        self.cluster_of: dict[str, str] = {}
        for cluster in plan.clusters:
            if cluster.replication is not None and cluster.replication.isr_in_metadata:
                self.clusters[cluster.name] = Cluster()
                names = cluster.operators(plan.prefix_of(cluster.name))
                self.cluster_of |= dict.fromkeys(names, cluster.name)
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.APPLIED: self._applied,
            EventKind.STARTED: self._started,
            EventKind.ENDED: self._ended,
            EventKind.METADATA_UPDATED: self._told,
        }

    def _of(self, node: str) -> Cluster | None:
        return self.clusters.get(self.cluster_of.get(node, ""))

    def _applied(self, event: Event) -> None:
        cluster = self._of(self.history.holders.get(event.session, ""))
        if cluster is None and len(self.clusters) == 1:
            [cluster] = self.clusters.values()  # an operator's hand in the only cluster
        for what, path, *rest in () if cluster is None else event.detail["did"]:
            assert cluster is not None, "the loop is empty otherwise"
            partition = paths.parse_state(path)
            if partition is None:
                continue
            if what == "deleted":
                cluster.states.pop(partition, None)
                continue
            try:
                state = PartitionState.decode(path, (rest[1] or "").encode())
            except BadPayload:
                continue
            cluster.states[partition] = State(frozenset(state.isr), event.t_us)

    def _started(self, event: Event) -> None:
        cluster = self._of(event.node)
        if cluster is not None:
            cluster.known[event.node] = {}

    def _ended(self, event: Event) -> None:
        cluster = self._of(event.node)
        if cluster is not None:
            cluster.known.pop(event.node, None)

    def _told(self, event: Event) -> None:
        cluster = self._of(event.node)
        known = {} if cluster is None else cluster.known.get(event.node, {})
        for topic, name, leader in () if cluster is None else event.detail["leaders"]:
            if leader == DELETED:
                known.pop(Partition(topic, name), None)
        for topic, name, isr in () if cluster is None else event.detail["isrs"]:
            known[Partition(topic, name)] = frozenset(isr)

    def close(self, end_us: int) -> None:
        """The run is over: compare what brokers know with the registry."""
        if self.history.faults_in_force:
            return
        for cluster in self.clusters.values():
            for node, known in cluster.known.items():
                for partition, state in sorted(cluster.states.items()):
                    if known and state.since_us <= end_us - LATEST_US:
                        self._judge(node, partition, known.get(partition), state, end_us)

    def _judge(
        self,
        node: str,
        partition: Partition,
        told: frozenset[int] | None,
        state: State,
        end_us: int,
    ) -> None:
        self.evidence.exercise(KNOWN_ISRS)
        if told == state.isr:
            return
        knows = "no ISR" if told is None else f"the ISR {sorted(told)}"
        text = f"{node} knows {knows} of {partition}, the registry has {sorted(state.isr)}"
        about = Subject(
            (node,),
            partitions=(partition,),
            topic=partition.topic,
            paths=(paths.partition_state(partition),),
        )
        self.evidence.violate(KNOWN_ISRS, end_us, "an ISR that is not known", text, about)

    def findings(self) -> Iterator[Finding]:
        """The finding on the property."""
        return self.evidence.findings()
