"""The judge of what controllers cost: reigns, writes and requests, against what has changed.

A controller works because something has changed: a broker has started or left or lost its
connection, a topic has other partitions, an administrator requests something. These are the
*causes*. The most expensive one is a request to move every partition, during a failover. So
one cause may cost at most

    reigns     one
    writes     of the state of each partition: two of its epoch and its leader, and one for each
               broker that leaves the ISR
    requests   to each broker: those of all steps of a move for each partition, and those of a
               failover; and one for each notification of a leader that has changed ISRs

What controllers do without a cause goes beyond each bound in time. The evidence has the counts:
they are far below the bounds where all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.control_plane.controllers import DELETIONS
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Finding, Property, counted
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

CONTROLLER_WORK = Property(
    "controller work bound",
    "end",
    "controllers begin no more reigns than there are causes for one, write the states of "
    "partitions no more often, and send no more requests, than a multiple of the causes",
    exercise="an elected controller",
    is_optional=True,
)
COSTS: tuple[Property, ...] = (CONTROLLER_WORK,)

WRITES_OF_A_PARTITION = 2
"""Beside one for each broker."""
REQUESTS_OF_A_MOVE = 13
"""To lead and to know who leads at each of five steps, to stop, to delete, and the last word."""
REQUESTS_OF_A_FAILOVER = 8
"""Four batches to everyone, each to lead and to know who leads."""

REQUESTED = (paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION)
OF_CONTROLLERS = frozenset({"write state", "create state"})
"""The purposes of writes of states by controllers; a leader writes for another one."""


@dataclass(slots=True)
class Work:
    """What the controllers of a cluster have done, and why."""

    brokers: int
    causes: int = 0
    reigns: int = 0
    writes: int = 0
    requests: int = 0
    announced: int = 0
    """Notifications of leaders that have changed ISRs."""
    partitions: dict[Partition, None] = field(default_factory=dict)

    def bounds(self) -> Mapping[str, tuple[int, int]]:
        """What was done, and how much of it is allowed."""
        partitions = len(self.partitions)
        to_a_broker = REQUESTS_OF_A_MOVE * partitions + REQUESTS_OF_A_FAILOVER
        writes = (WRITES_OF_A_PARTITION + self.brokers) * partitions
        return {
            "reign": (self.reigns, self.causes),
            "write": (self.writes, writes * self.causes),
            "request": (
                self.requests,
                (to_a_broker * self.causes + self.announced) * self.brokers,
            ),
        }


class CostsJudge:
    """Judges the work of the controllers of all clusters of a run."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.history = history
        self.evidence = Evidence(COSTS)
        self.work: dict[str, Work] = {}
        self.cluster_of: dict[str, str] = {}
        """Broker -> its cluster."""
        for cluster in plan.clusters:
            if cluster.controller is not None:
                self.work[cluster.name] = Work(len(cluster.brokers))
                self.cluster_of |= {broker.node: cluster.name for broker in cluster.brokers}
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.STARTED: self._caused,
            EventKind.SUSPENDED: self._caused,
            EventKind.SHUT_DOWN: self._caused,
            EventKind.SESSION_EXPIRED: self._session_ended,
            EventKind.SESSION_CLOSED: self._session_ended,
            EventKind.CONTROLLER_ELECTED: self._elected,
            EventKind.CONTROL_SENT: self._sent,
            EventKind.APPLIED: self._applied,
        }

    def _of(self, node: str) -> Work | None:
        return self.work.get(self.cluster_of.get(node, ""))

    def _caused(self, event: Event) -> None:
        work = self._of(event.node)
        if work is not None:
            work.causes += 1

    def _session_ended(self, event: Event) -> None:
        work = self._of(self.history.holders.get(event.session, ""))
        if work is not None:
            work.causes += 1

    def _elected(self, event: Event) -> None:
        work = self._of(event.node)
        if work is not None:
            work.reigns += 1

    def _sent(self, event: Event) -> None:
        work = self._of(event.node)
        if work is not None:
            work.requests += 1

    def _applied(self, event: Event) -> None:
        """Count a change: of a broker as its work, of any other program as a cause.

        The log of an external server does not say what a write is for; there none is counted as
        a controller's.
        """
        work = self._of(self.history.holders.get(event.session, ""))
        is_of_broker = work is not None
        if work is None and len(self.work) == 1:
            [work] = self.work.values()
        for what, path, *_ in () if work is None else event.detail["did"]:
            assert work is not None, "the loop is empty otherwise"
            partition = paths.parse_state(path)
            work.announced += what == "created" and path.startswith(paths.ISR_CHANGE)
            if partition is not None and what != "deleted":
                work.partitions[partition] = None
                work.writes += is_of_broker and event.detail.get("purpose") in OF_CONTROLLERS
            elif not is_of_broker and is_cause(what, path):
                work.causes += 1

    def close(self, end_us: int) -> None:
        """The run is over: compare the work with its causes."""
        for name, work in self.work.items():
            if not work.reigns:
                continue
            self.evidence.exercise(CONTROLLER_WORK)
            self.evidence.measure(CONTROLLER_WORK, f"; {_in_words(work)}")
            for what, (number, most) in work.bounds().items():
                if number > most:
                    text = f"{name}: {_in_words(work)}; {counted(most, what)} allowed"
                    shape = f"controllers make more {what}s than the causes need"
                    self.evidence.violate(CONTROLLER_WORK, end_us, shape, text)

    def findings(self) -> Iterator[Finding]:
        """The finding on the property."""
        return self.evidence.findings()


def is_cause(what: str, path: str) -> bool:
    """Whether a change by another program than a broker gives controllers something to do."""
    if what == "deleted":
        return path == paths.CONTROLLER or paths.parse_topic(path) is not None
    return path in REQUESTED or path.startswith(DELETIONS) or paths.parse_topic(path) is not None


def _in_words(work: Work) -> str:
    return (
        f"{counted(work.reigns, 'reign')}, {counted(work.writes, 'write')} and "
        f"{counted(work.requests, 'request')} for {counted(work.causes, 'cause')}, "
        f"{counted(len(work.partitions), 'partition')} and {counted(work.brokers, 'broker')}"
    )
