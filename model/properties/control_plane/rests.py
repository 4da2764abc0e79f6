"""The judge of control planes that looks at each rest, before an event changes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.control_plane.controllers import (
    CONTROL_PLANE,
    DELETIONS,
    SETTINGS,
    ClusterJudge,
)
from watchkeeper.model.properties.control_plane.leaders import (
    CALM_ENDS,
    LEADERS,
    NO_DEAD_LEADERS,
    REQUESTS,
    LeadersJudge,
    ends_calm,
)
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.quiescence import NEVER, RestTracker, cluster_rests
from watchkeeper.model.properties.verdicts import Finding
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event


class ControlPlaneJudge:
    """Judges the control planes of all clusters of a run."""

    KINDS = frozenset(
        {
            *RestTracker.KINDS,
            *CALM_ENDS,
            EventKind.APPLIED,
            EventKind.FAILOVER_COMPLETED,
            EventKind.CONTROLLER_RESIGNED,
        }
    )

    def __init__(self, plan: Plan, history: History) -> None:
        self.history = history
        self.evidence = Evidence(CONTROL_PLANE)
        self.replicates = plan.replicates
        clusters = [cluster for cluster in plan.clusters if cluster.controller is not None]
        self.judges = {cluster.name: ClusterJudge(cluster, self.evidence) for cluster in clusters}
        self.of_leaders = Evidence(LEADERS)
        self.leaders = {
            cluster.name: LeadersJudge(cluster, self.judges[cluster.name], self.of_leaders)
            for cluster in clusters
        }
        self._brokers = {broker.node for cluster in clusters for broker in cluster.brokers}
        self._cluster_of: dict[str, str] = {}
        """Process -> its cluster, of those that may write its registry."""
        self._trackers: dict[str, RestTracker] = {}
        for cluster, tracker in cluster_rests(plan):
            if cluster.name in self.judges:
                self._trackers[cluster.name] = tracker
                self._cluster_of.update(dict.fromkeys(tracker.concerned, cluster.name))
        self._handlers: dict[str, Callable[[Event], None]] = {
            EventKind.APPLIED: self._applied,
            EventKind.SESSION_EXPIRED: self._session_ended,
            EventKind.SESSION_CLOSED: self._session_ended,
            EventKind.FAILOVER_COMPLETED: self._failed_over,
            EventKind.CONTROLLER_RESIGNED: self._ceased,
            EventKind.STARTED: self._ceased,
            EventKind.ENDED: self._ceased,
        }

    def before(self, event: Event) -> None:
        """Judge the rests that have lasted long enough, before an event changes anything."""
        for name, tracker in self._trackers.items():
            if event.t_us >= tracker.due_us:
                tracker.due_us = NEVER
                self._judge_rest(name)
        if ends_calm(event):
            for leaders in self.leaders.values():
                leaders.end_calm(event.t_us, self.history)

    def _judge_rest(self, name: str) -> None:
        self.judges[name].judge_rest(self.history)
        self.leaders[name].judge_rest(self.history.now_us)

    def after(self, event: Event) -> None:
        """Follow an event that the history knows already."""
        if event.kind in RestTracker.KINDS:
            for tracker in self._trackers.values():
                tracker.look(event, self.history)
        handler = self._handlers.get(event.kind)
        if handler is not None:
            handler(event)

    def close(self, end_us: int) -> None:
        """The run is over."""
        for name, tracker in self._trackers.items():
            if end_us >= tracker.due_us:
                self._judge_rest(name)
            tracker.close(end_us)
            self.leaders[name].end_calm(end_us, self.history)

    def findings(self) -> Iterator[Finding]:
        """The finding on each property."""
        yield from self.evidence.findings()
        for finding in self.of_leaders.findings():
            if finding.claim is NO_DEAD_LEADERS or self.replicates:
                yield finding

    # --- events ------------------------------------------------------------------------

    def _applied(self, event: Event) -> None:
        writer = self.history.holders.get(event.session, "")
        name = self._cluster_of.get(writer)
        if name is None:
            self._applied_by_hand(event)
            return
        for change in event.detail["did"]:
            self._changed(name, writer, change[1], _data_of(change), event.t_us)

    def _changed(self, name: str, writer: str, path: str, data: str | None, at_us: int) -> None:
        if data is None:
            self.judges[name].deleted(path)
        else:
            self.judges[name].written(path, writer, data, at_us)
        self.leaders[name].changed(path, data, by_broker=writer in self._brokers)

    def _applied_by_hand(self, event: Event) -> None:
        """An operator has requested something or changed settings, in the only cluster."""
        if len(self.judges) != 1:
            return
        [name] = self.judges
        for change in event.detail["did"]:
            path, data = change[1], _data_of(change)
            if data is not None and path.startswith((DELETIONS, SETTINGS)):
                self.judges[name].written(path, "", data, event.t_us)
            if path in REQUESTS:
                self.leaders[name].changed(path, data, by_broker=False)

    def _session_ended(self, event: Event) -> None:
        name = self._cluster_of.get(self.history.holders.get(event.session, ""))
        if name is not None:
            for _, path, _ in event.detail["did"]:
                self.judges[name].vanished(path)
                self.leaders[name].changed(path, None, by_broker=False)

    def _failed_over(self, event: Event) -> None:
        judge = self._judge_of(event.node)
        if judge is not None:
            judge.failed_over(event.node, event.detail["epoch"])

    def _ceased(self, event: Event) -> None:
        judge = self._judge_of(event.node)
        if judge is not None:
            judge.ceased(event.node)

    def _judge_of(self, node: str) -> ClusterJudge | None:
        return self.judges.get(self._cluster_of.get(node, ""))


def _data_of(change: Sequence[Any]) -> str | None:
    """The data that was written to a znode; None if it was deleted."""
    return None if change[0] == "deleted" else change[3] or ""


def control_plane_judge(plan: Plan, history: History) -> ControlPlaneJudge | None:
    """The judge of a run's control planes; None if no broker elects a controller."""
    return ControlPlaneJudge(plan, history) if plan.elects_controllers else None
