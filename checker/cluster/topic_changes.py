"""Changes of topics during a search: which topic is created, grown or deleted, and by what order.

In the 0.7 layout a broker registers the partitions that it has on its own disk, so each broker
receives an order of its own. In the 0.8 layout the administrator receives the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from watchkeeper.model.actor.events import Command, CommandKind
from watchkeeper.model.plan.bounds import TOPIC_CHANGES, FaultKind
from watchkeeper.model.plan.plan import ClusterPlan, Plan, TopicPlan

ORDERS = {
    FaultKind.CREATE_TOPIC: CommandKind.CREATE_TOPIC,
    FaultKind.ADD_PARTITIONS: CommandKind.ADD_PARTITIONS,
    FaultKind.DELETE_TOPIC: CommandKind.DELETE_TOPIC,
}


@dataclass(frozen=True, slots=True)
class TopicChanges:
    """The changes of topics that a search tries, in one cluster."""

    cluster: ClusterPlan
    topics: Mapping[FaultKind, str]
    """Kind of change -> the topic that it concerns."""

    @property
    def is_any(self) -> bool:
        """Whether the search changes topics at all."""
        return bool(self.topics)

    @property
    def initial_topics(self) -> tuple[TopicPlan, ...]:
        """The topics that exist when the search begins."""
        created = self.topics.get(FaultKind.CREATE_TOPIC)
        return tuple(topic for topic in self.cluster.topics if topic.name != created)

    def for_broker(self, broker_id: int) -> dict[FaultKind, Command]:
        """Return the orders that a broker may receive: none in the 0.8 layout."""
        if self.cluster.layout != "0.7":
            return {}
        return {kind: self._order(kind, self._on_disk(broker_id, kind)) for kind in self.topics}

    def for_administrator(self) -> dict[FaultKind, Command]:
        """Return the orders that the administrator may receive."""
        return {
            kind: self._order(kind, self._number(kind, self._planned(kind)))
            for kind in self.topics
        }

    def _order(self, kind: FaultKind, number: int) -> Command:
        is_deletion = kind is FaultKind.DELETE_TOPIC
        return Command(ORDERS[kind], self.topics[kind], 0 if is_deletion else number)

    def _on_disk(self, broker_id: int, kind: FaultKind) -> int:
        topic = self._topic(kind)
        return self._number(kind, 0 if topic is None else dict(topic.by_broker).get(broker_id, 0))

    def _planned(self, kind: FaultKind) -> int:
        topic = self._topic(kind)
        return 0 if topic is None else topic.size

    def _topic(self, kind: FaultKind) -> TopicPlan | None:
        name = self.topics[kind]
        return next((topic for topic in self.cluster.topics if topic.name == name), None)

    @staticmethod
    def _number(kind: FaultKind, planned: int) -> int:
        """The number of partitions after a change; a created topic has at least one."""
        return planned + 1 if kind is FaultKind.ADD_PARTITIONS else max(planned, 1)


def topic_changes(plan: Plan, cluster: ClusterPlan, faults: Mapping[str, int]) -> TopicChanges:
    """Return the changes of topics that a budget of faults allows.

    The topic is that of the first such action of the plan's timeline, or else the last topic of
    the cluster; one that is created does not exist before.
    """
    of_timeline = {action.verb.name: action.target for action in reversed(plan.timeline)}
    last = cluster.topics[-1].name if cluster.topics else ""
    topics = {
        kind: of_timeline.get(kind.value, last) for kind in TOPIC_CHANGES if faults.get(kind, 0)
    }
    return TopicChanges(cluster, {kind: name for kind, name in topics.items() if name})
