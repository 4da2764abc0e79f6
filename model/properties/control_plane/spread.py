"""The judge of tools that add partitions to a topic: the new ones are to spread the load.

The first replica of a partition is the one that should lead it. A tool of 0.8 takes the id of a
broker for its place among the brokers: one may get several of a topic's partitions, and another
none (KAFKA-2146). A topic is judged as long as tools alone have written its assignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Finding, Property, Subject
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.model.trace.assignments import assignment_of
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

SPREAD = Property(
    "added partitions are spread",
    "always",
    "a tool that adds partitions to a topic leaves the live brokers that should lead them with "
    "numbers that differ by at most one, if they did before",
    exercise="a tool that adds partitions to a topic that no controller has moved",
    is_optional=True,
)
SPREADS: tuple[Property, ...] = (SPREAD,)

BROKERS = f"{paths.BROKER_IDS}/"


@dataclass(slots=True)
class Cluster:
    """What the registry of a cluster has."""

    administrator: str
    live: dict[int, None] = field(default_factory=dict)
    assigned: dict[str, TopicAssignment | None] = field(default_factory=dict)
    """Topic -> its partitions; None once others than tools have written them, or the trace has
    not all of them."""


class SpreadJudge:
    """Judges the tools of all clusters of a run whose brokers elect a controller."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.history = history
        self.evidence = Evidence(SPREADS)
        self.clusters: list[Cluster] = []
        self.cluster_of: dict[str, Cluster] = {}
        for one in plan.clusters:
            if one.controller is not None:
                prefix = plan.prefix_of(one.name)
                cluster = Cluster(one.administrator(prefix))
                self.clusters.append(cluster)
                self.cluster_of |= dict.fromkeys(one.operators(prefix), cluster)
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.APPLIED: self._applied,
            EventKind.SESSION_EXPIRED: self._session_ended,
            EventKind.SESSION_CLOSED: self._session_ended,
        }

    def _of(self, writer: str) -> Cluster | None:
        if writer not in self.cluster_of and len(self.clusters) == 1:
            return self.clusters[0]  # an operator's hand in the only cluster
        return self.cluster_of.get(writer)

    def _applied(self, event: Event) -> None:
        writer = self.history.holders.get(event.session, "")
        cluster = self._of(writer)
        for change in () if cluster is None else event.detail["did"]:
            assert cluster is not None, "the loop is empty otherwise"
            is_deletion, path = change[0] == "deleted", change[1]
            topic = paths.parse_topic(path)
            if path.startswith(BROKERS) and writer in self.cluster_of:
                _register(cluster, path, is_deletion)
            elif topic is not None and is_deletion:
                cluster.assigned.pop(topic, None)
            elif topic is not None:
                self._assigned(event, cluster, writer, topic, change[3] or "")

    def _session_ended(self, event: Event) -> None:
        cluster = self.cluster_of.get(self.history.holders.get(event.session, ""))
        for _, path, _ in () if cluster is None else event.detail["did"]:
            if path.startswith(BROKERS):
                assert cluster is not None, "the loop is empty otherwise"
                _register(cluster, path, True)

    def _assigned(
        self, event: Event, cluster: Cluster, writer: str, topic: str, data: str
    ) -> None:
        is_known = topic in cluster.assigned
        before = cluster.assigned.get(topic)
        after = assignment_of(paths.topic(topic), data)
        if writer != cluster.administrator or after is None or (is_known and before is None):
            cluster.assigned[topic] = None
            return
        cluster.assigned[topic] = after
        if before is not None and _only_adds(before, after):
            self._judge(event, cluster, topic, before, after)

    def _judge(
        self,
        event: Event,
        cluster: Cluster,
        topic: str,
        before: TopicAssignment,
        after: TopicAssignment,
    ) -> None:
        earlier = list(_heads(before))
        if not set(earlier) <= cluster.live.keys() or _spread(earlier, cluster.live) > 1:
            return
        self.evidence.exercise(SPREAD)
        numbers = Counter(_heads(after))
        if _spread(numbers.elements(), cluster.live) > 1:
            shares = ", ".join(f"{numbers[one]} on broker {one}" for one in sorted(cluster.live))
            text = f"{cluster.administrator} adds partitions to {topic}: {shares}"
            about = Subject((cluster.administrator,), topic=topic, paths=(paths.topic(topic),))
            self.evidence.violate(SPREAD, event.t_us, "partitions in a heap", text, about)

    def close(self, end_us: int) -> None:
        """The run is over; there is nothing to add."""

    def findings(self) -> Iterator[Finding]:
        """The finding on the property."""
        return self.evidence.findings()


def _register(cluster: Cluster, path: str, is_deletion: bool) -> None:
    broker = int(path.removeprefix(BROKERS))
    if is_deletion:
        cluster.live.pop(broker, None)
    else:
        cluster.live[broker] = None


def _heads(assignment: TopicAssignment) -> Iterator[int]:
    """The broker that should lead each partition that has one."""
    return (replicas[0] for _, replicas in assignment.replicas if replicas)


def _only_adds(before: TopicAssignment, after: TopicAssignment) -> bool:
    rows = dict(after.replicas)
    kept = all(rows.get(index) == replicas for index, replicas in before.replicas)
    return kept and len(rows) > len(before.replicas)


def _spread(heads: Iterable[int], live: Collection[int]) -> int:
    """By how much the numbers of partitions differ that live brokers should lead."""
    numbers = Counter(heads)
    shares = [numbers[broker] for broker in live]
    return max(shares, default=0) - min(shares, default=0)
