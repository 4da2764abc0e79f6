"""What is wrong with a state in which nothing has to come any more.

Everybody has to wait for a note: whoever waits for anything else waits in vain. The groups
are judged by the same judge as those of a trace.
"""

from __future__ import annotations

from explore.local import Local
from model.asks import Partition
from model.calm import CalmJudge
from model.history import History
from model.plan import Plan
from model.registry import partition_07
from model.verdicts import Verdict


class RestJudge:
    """Judges states at rest."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def judge(self, processes: dict[str, Local]) -> str:
        """The first property that is violated; empty for none."""
        for finding in self.findings(processes):
            return finding[0]
        return ""

    def findings(self, processes: dict[str, Local]) -> list[tuple[str, str]]:
        """Every property that is violated, and how."""
        history = self._history(processes)
        calm = CalmJudge(self.plan)
        for group in self.plan.groups:
            calm.look(history, group)
        return [
            (finding.claim.name, finding.evidence)
            for finding in calm.findings()
            if finding.verdict is Verdict.VIOLATED
        ]

    def _history(self, processes: dict[str, Local]) -> History:
        """The state as the judges of traces know it."""
        history = History(self.plan)
        group_of = self.plan.group_of()
        for name, local in processes.items():
            node = history.node(name)
            node.is_alive = local.phase == "running"
            node.plans = dict(local.plans)
            node.fetching = {one.partition: one.stream for one in local.fetching}
            for partition in node.fetching:
                history.fetchers.setdefault((group_of[name], partition), {})[name] = None
        for broker in self.plan.clusters[0].brokers:
            if processes[broker.node].phase == "running":
                for partition in self._served_by(broker.broker_id):
                    history.serving.setdefault(partition, {})[broker.node] = None
        return history

    def _served_by(self, broker: int) -> list[Partition]:
        cluster = self.plan.clusters[0]
        if cluster.layout == "0.7":
            return [
                partition_07(topic.name, broker, index)
                for topic in cluster.topics
                for index in range(dict(topic.by_broker).get(broker, 0))
            ]
        return [
            Partition(topic.name, str(index))
            for topic in cluster.topics
            for index, replicas in topic.replicas
            if broker in replicas
        ]
