"""The judge of who leads at rest: the replicas that should, and no dead broker by name.

The first replica of a partition is its *preferred* one. A controller lets it lead again when an
administrator requests that, and by itself: from time to time it looks at each broker, and acts
where more than a tenth of what should be led there is not. So after a *calm* that is longer than
this time, in which nothing has happened that concerns a controller, no broker leads too little.
"""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import ClusterPlan
from watchkeeper.model.properties.control_plane.controllers import ClusterJudge
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.quiescence import QUIET_TICKS
from watchkeeper.model.properties.verdicts import Property, Subject
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import NO_LEADER, PreferredReplicaElection
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

PREFERRED = Property(
    "preferred leaders",
    "at rest",
    "the preferred replica of a partition leads if it is alive and in the ISR: when an "
    "administrator has requested that, and where a broker leads too little for longer than "
    "controllers take to see it; no such request is left",
    exercise="a request for it, or a calm that is longer than that time",
    is_optional=True,
)
NO_DEAD_LEADERS = Property(
    "no dead leaders",
    "at rest",
    "a partition that no live replica may lead names no broker as its leader",
    exercise="a rest with a partition that no live replica may lead",
    is_optional=True,
)

LEADERS: tuple[Property, ...] = (NO_DEAD_LEADERS, PREFERRED)

LARGEST_IMBALANCE_PERCENT = 10
"""`leader.imbalance.per.broker.percentage`."""
FIRST_LOOK_MS = 5_000
"""How long after its election a controller looks at who leads for the first time."""
REQUESTS = frozenset({paths.PREFERRED_REPLICA_ELECTION, paths.REASSIGN_PARTITIONS})
"""While one of them is there, a controller does not look at who leads."""
OF_BROKERS = ("/brokers/", "/controller", "/admin/")
"""Where a change concerns a controller."""
CALM_ENDS = frozenset(
    {
        EventKind.STARTED,
        EventKind.ENDED,
        EventKind.SUSPENDED,
        EventKind.CONNECTED,
        EventKind.FAULT,
        EventKind.FAULT_ENDED,
        EventKind.SESSION_EXPIRED,
        EventKind.SESSION_CLOSED,
        EventKind.CONTROLLER_ELECTED,
        EventKind.FAILOVER_COMPLETED,
        EventKind.CONTROLLER_RESIGNED,
        EventKind.SHUT_DOWN,
    }
)
"""The kinds of event that end a calm, beside changes of znodes."""


def calm_us(cluster: ClusterPlan) -> int | None:
    """How long a calm has to be; None where controllers do not look by themselves."""
    if cluster.replication is None or cluster.replication.rebalance_ms is None:
        return None
    looks_us = max(cluster.replication.rebalance_ms, FIRST_LOOK_MS) * 1000
    return looks_us + QUIET_TICKS * cluster.zookeeper.tick_us


def ends_calm(event: Event) -> bool:
    """Whether an event gives controllers something to do."""
    if event.kind == EventKind.APPLIED:
        return any(change[1].startswith(OF_BROKERS) for change in event.detail["did"])
    return event.kind in CALM_ENDS


class LeadersJudge:
    """Judges who leads in one cluster, by its registry as the judge of controllers follows it."""

    def __init__(self, plan: ClusterPlan, controllers: ClusterJudge, evidence: Evidence) -> None:
        self.controllers = controllers
        self.registry = controllers.registry
        self.evidence = evidence
        self.replicates = plan.replication is not None
        self.calm_us = calm_us(plan)
        self.since_us: int | None = None
        """When the calm began."""
        self.requests: dict[str, None] = {}
        """Those of REQUESTS that are there."""
        self.requested: dict[Partition, int] = {}
        """Partition -> its preferred replica, which an administrator has requested to lead."""
        self.due: dict[Partition, int] = {}
        """The same of requests that are carried out."""

    # --- what happens ------------------------------------------------------------------

    def changed(self, path: str, data: str | None, *, by_broker: bool) -> None:
        """A znode was written, or deleted where there is no data."""
        if path in REQUESTS:
            if data is None:
                self.requests.pop(path, None)
            else:
                self.requests[path] = None
        if path == paths.PREFERRED_REPLICA_ELECTION:
            if data is not None:
                self.requested = dict(self._wanted(path, data))
            else:
                self.due |= self.requested if by_broker else {}
                self.requested = {}
        for known in (self.requested, self.due):
            for partition, broker in list(known.items()):
                if not self._may_lead(partition, broker):
                    del known[partition]

    def _wanted(self, path: str, data: str) -> Iterator[tuple[Partition, int]]:
        """Yield the partitions of a request that can be led by their preferred replicas."""
        try:
            request = PreferredReplicaElection.decode(path, data.encode())
        except BadPayload:
            return
        for topic, index in request.partitions:
            partition = Partition(topic, str(index))
            replicas = self.registry.replicas.get(partition, ())
            if replicas and self._may_lead(partition, replicas[0]):
                yield partition, replicas[0]

    def _may_lead(self, partition: Partition, broker: int) -> bool:
        """Whether a broker is the preferred replica, is alive and in the ISR."""
        registry = self.registry
        state = registry.states.get(partition)
        is_preferred = registry.replicas.get(partition, ())[:1] == (broker,)
        is_there = state is not None and broker in state.isr and broker in registry.live
        return is_preferred and is_there

    # --- at rest -----------------------------------------------------------------------

    def judge_rest(self, at_us: int) -> None:
        """Judge what has to hold when nothing is pending."""
        if not self.registry.live:
            return
        if self.replicates:
            self._judge_requests(at_us)
        for partition in sorted(self.registry.replicas):
            if partition.topic not in self.registry.deletions:
                self._judge_named(partition, at_us)

    def _judge_requests(self, at_us: int) -> None:
        path = paths.PREFERRED_REPLICA_ELECTION
        if path in self.requests:
            self.evidence.exercise(PREFERRED)
            text = f"{path} is left, and nothing is pending"
            shape = "a preferred election that is left"
            self.evidence.violate(PREFERRED, at_us, shape, text, Subject(paths=(path,)))
        for partition, broker in self.due.items():
            if partition.topic not in self.registry.deletions:
                self.evidence.exercise(PREFERRED)
                self._judge_preferred(partition, broker, at_us, "was requested to lead")

    def _judge_preferred(self, partition: Partition, broker: int, at_us: int, why: str) -> None:
        leader = self.registry.states[partition].leader
        if leader != broker:
            text = (
                f"{partition} has the leader {leader}; broker {broker}, its preferred replica, "
                f"is alive and in the ISR, and {why}"
            )
            shape = "a preferred replica that does not lead"
            self.evidence.violate(PREFERRED, at_us, shape, text, _about(partition))

    def _judge_named(self, partition: Partition, at_us: int) -> None:
        state, live = self.registry.states.get(partition), self.registry.live
        if state is None or state.leader in live:
            return
        if any(one in live for one in self.controllers.able(partition, state)):
            return
        self.evidence.exercise(NO_DEAD_LEADERS)
        if state.leader != NO_LEADER:
            text = f"{partition} has the leader {state.leader}, which is dead"
            about = _about(partition)
            self.evidence.violate(NO_DEAD_LEADERS, at_us, "a dead leader", text, about)

    # --- after a calm ------------------------------------------------------------------

    def end_calm(self, at_us: int, history: History) -> None:
        """Something happens that concerns a controller, or the run is over: judge the calm."""
        since_us, self.since_us = self.since_us, at_us
        if self.calm_us is None or since_us is None or at_us - since_us < self.calm_us:
            return
        acts = self.registry.controller in self.registry.acting
        if acts and not history.faults_in_force and not self.requests:
            for broker in sorted(self.registry.live):
                self._judge_broker(broker, at_us)

    def _judge_broker(self, broker: int, at_us: int) -> None:
        """Judge whether a broker leads what it should."""
        registry = self.registry
        own = [
            partition
            for partition, replicas in sorted(registry.replicas.items())
            if replicas[:1] == (broker,) and partition.topic not in registry.deletions
        ]
        away = [
            one for one in own if one in registry.states and registry.states[one].leader != broker
        ]
        leads_too_little = 100 * len(away) > LARGEST_IMBALANCE_PERCENT * len(own)
        for partition in own:
            if self._may_lead(partition, broker):
                self.evidence.exercise(PREFERRED)
                if leads_too_little:
                    why = f"leads {len(own) - len(away)} of {len(own)} partitions"
                    self._judge_preferred(partition, broker, at_us, why)


def _about(partition: Partition) -> Subject:
    """What a violation is about: the partition, its state, and what makes a controller."""
    state = paths.partition_state(partition)
    return Subject(
        partitions=(partition,),
        topic=partition.topic,
        paths=(state, paths.CONTROLLER, paths.CONTROLLER_EPOCH),
    )
