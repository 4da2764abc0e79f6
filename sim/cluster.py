"""One cluster of a simulated world: its ensemble, its logs, and what is on whose disk."""

from __future__ import annotations

from model.asks import Partition
from model.hosting import disks_of, partitions_on
from model.payloads import TopicAssignment
from model.plan import ClusterPlan
from sim.calls import Calls
from sim.ensemble import Ensemble
from sim.logs import Logs
from sim.sites import Sites


class Cluster:
    """One cluster at run time."""

    def __init__(self, calls: Calls, plan: ClusterPlan, number: int, *, is_alone: bool) -> None:
        self.plan = plan
        self.prefix = "" if is_alone else f"{plan.name}:"
        self.ensemble = Ensemble(calls.kernel, calls.network, plan, self.prefix, number)
        self.logs = Logs(calls.kernel, self.ensemble, plan.layout)
        self.disks = disks_of(plan)
        """What outlives the processes of brokers."""
        self.homes: dict[str, TopicAssignment] = {
            topic.name: TopicAssignment(topic.replicas) for topic in plan.topics
        }
        """0.8: topic -> which brokers hold which partition."""
        self.sites = (
            Sites(plan, calls, self.logs, self.disks) if plan.storage is not None else None
        )
        """Where brokers store messages; None where a log is but a rate."""

    def partitions_of(self, broker_id: int) -> list[Partition]:
        """The partitions that a broker has on its disk."""
        return partitions_on(broker_id, self.plan.layout, self.disks, self.homes)
