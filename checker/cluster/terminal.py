"""Judges terminal states: those in which nothing has to come any more.

Every process there has to wait for a notification; one that waits for anything else waits in
vain. Groups are judged by the same judge as those of a trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from watchkeeper.checker.actors.actor_state import ActorState
from watchkeeper.checker.actors.actors import Actors
from watchkeeper.checker.cluster.control_plane import ControlPlane, RestOfControlPlane, violated
from watchkeeper.checker.cluster.topic_changes import TopicChanges
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.broker.registration import on_disk_after
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.at_quiescence import CalmJudge
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Property
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import partition_07
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.model.zookeeper.znode import Znode

Nodes = Mapping[str, Znode]
Replicas = tuple[tuple[int, tuple[int, ...]], ...]
"""Partition -> brokers."""


class RestJudgement(NamedTuple):
    """The judgement of a terminal state."""

    violation: str
    """The first property that it violates; empty for none."""
    is_exercised: bool
    """Whether a group has a member and a partition for it, or a controller may be elected."""


ANSWERED = Property(
    "answered orders",
    "at rest",
    "no application waits for the result of an order that it gave to its member",
    exercise="an application that orders a commit",
)


def _unanswered(processes: dict[str, ActorState]) -> list[tuple[str, str]]:
    """The applications that wait for a result; until they have it, no rest is judged."""
    waiting = [name for name, process in processes.items() if process.awaits]
    if not waiting:
        return []
    who = " and ".join(waiting)
    return [(ANSWERED.name, f"the application of {who} waits for a result of its commit")]


class TerminalJudge:
    """Judges terminal states."""

    def __init__(
        self,
        plan: Plan,
        changes: TopicChanges,
        control_plane: ControlPlane | None,
        actors: Actors,
    ) -> None:
        self.plan = plan
        self.changes = changes
        self.control_plane = control_plane
        self.actors = actors

    def judge(self, processes: dict[str, ActorState], nodes: Nodes) -> RestJudgement:
        """Return the first property that is violated, and whether there is anything to judge."""
        calm, brokers = self._judged(processes, nodes), self._brokers(processes, nodes)
        found = [*_unanswered(processes), *violated(calm.findings()), *brokers.violations]
        return RestJudgement(
            next((name for name, _ in found), ""),
            is_exercised=calm.partitions > 0 or brokers.is_exercised,
        )

    def findings(self, processes: dict[str, ActorState], nodes: Nodes) -> list[tuple[str, str]]:
        """Return every property that is violated, with the evidence."""
        brokers = self._brokers(processes, nodes)
        of_groups = _unanswered(processes) or violated(self._judged(processes, nodes).findings())
        return [*of_groups, *brokers.violations]

    def _brokers(self, processes: dict[str, ActorState], nodes: Nodes) -> RestOfControlPlane:
        if self.control_plane is None:
            return RestOfControlPlane([], is_exercised=False)
        return self.control_plane.judge_rest(self.actors, processes, nodes)

    def _judged(self, processes: dict[str, ActorState], nodes: Nodes) -> CalmJudge:
        history = self._history(processes, nodes)
        calm = CalmJudge(self.plan)
        for group in self.plan.groups:
            calm.look(history, group)
        return calm

    def _history(self, processes: dict[str, ActorState], nodes: Nodes) -> History:
        """The state as the judges of traces know it."""
        history = History(self.plan)
        group_of = self.plan.group_of()
        for name, actor_state in processes.items():
            node = history.node(name)
            node.is_alive = actor_state.phase in ("running", "abandoned")
            node.is_abandoned = actor_state.phase == "abandoned"
            if node.is_abandoned and actor_state.is_alive:
                history.holders[actor_state.session] = name
                history.sessions_of[name] = {actor_state.session}
            node.has_leave_command = actor_state.has_leave_command
            path = _registration(history, name, actor_state, nodes)
            if path:
                history.register(name, path)
            node.plans = dict(actor_state.plans)
            node.shares = dict(actor_state.shares)
            node.fetching = {fetch.partition: fetch.stream for fetch in actor_state.fetching}
            for partition in node.fetching:
                history.fetchers.setdefault((group_of[name], partition), {})[name] = None
        for path, znode in nodes.items() if history.holders else ():
            claim = paths.parse_owner(path)
            if claim is not None:
                history.claims[claim] = znode.owner
        for broker in self.plan.clusters[0].brokers:
            process = processes[broker.node]
            if process.phase == "running":
                for partition in self._served_by(broker.broker_id, process, nodes):
                    history.serving.setdefault(partition, {})[broker.node] = None
        return history

    def _served_by(self, broker: int, process: ActorState, nodes: Nodes) -> list[Partition]:
        """The partitions on a broker's disk; in the 0.8 layout, those assigned to it."""
        topics = self.changes.initial_topics
        if self.plan.clusters[0].layout == "0.7":
            before = {topic.name: dict(topic.by_broker).get(broker, 0) for topic in topics}
            return [
                partition_07(name, broker, index)
                for name, count in reduce(on_disk_after, process.orders, before).items()
                for index in range(count)
            ]
        assigned = (
            _assigned(nodes)
            if self.changes.is_any
            else {topic.name: topic.replicas for topic in topics}
        )
        return [
            Partition(name, str(index))
            for name, replicas in assigned.items()
            for index, brokers in replicas
            if broker in brokers
        ]


def _registration(history: History, name: str, actor_state: ActorState, nodes: Nodes) -> str:
    """The znode by which a process is registered; empty for none.

    It lives as long as the session. Where several have one id, the znode belongs to one of them.
    """
    path = history.shared_ids.get(name, name)
    is_own = path == name or (path in nodes and nodes[path].owner == actor_state.session)
    return path if actor_state.is_alive and is_own else ""


def _assigned(nodes: Nodes) -> dict[str, Replicas]:
    """The assignment of each topic in the registry of the 0.8 layout."""
    prefix = f"{paths.TOPICS}/"
    return {
        path.removeprefix(prefix): TopicAssignment.decode(path, znode.data).replicas
        for path, znode in nodes.items()
        if path.startswith(prefix) and "/" not in path.removeprefix(prefix)
    }
