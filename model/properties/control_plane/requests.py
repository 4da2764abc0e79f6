"""The judge of what controllers send to brokers: one sender an epoch, and none that is deposed.

A state that is written has to pass ZooKeeper. A request to a broker has to pass that broker
alone, which remembers in memory the greatest controller epoch of a request. So here a broker is
a process: one that has just started knows of no epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Finding, Property, Subject
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

ONE_SENDER = Property(
    "one sender an epoch",
    "always",
    "the requests of each controller epoch come from one broker",
    exercise="a request of a controller",
    is_optional=True,
)
NONE_DEPOSED = Property(
    "no deposed requests",
    "always",
    "no broker carries out a request of a controller of whose successor it has carried out one",
    exercise="a request that a broker carries out when it knows of two reigns",
    is_optional=True,
)
REQUESTS: tuple[Property, ...] = (ONE_SENDER, NONE_DEPOSED)


class RequestsJudge:
    """Judges the requests of the controllers of all clusters of a run."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.evidence = Evidence(REQUESTS)
        self.cluster_of = {
            broker.node: cluster.name
            for cluster in plan.clusters
            if cluster.replication is not None
            for broker in cluster.brokers
        }
        self.senders: dict[tuple[str, int], str] = {}
        """Cluster and epoch -> the broker that has sent a request first."""
        self.known: dict[str, tuple[int, int]] = {}
        """Broker -> the least and the greatest epoch of what its process has carried out."""
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.STARTED: self._started,
            EventKind.CONTROL_SENT: self._sent,
            EventKind.CONTROL_TAKEN: self._taken,
        }

    def _started(self, event: Event) -> None:
        self.known.pop(event.node, None)

    def _sent(self, event: Event) -> None:
        name, epoch = self.cluster_of.get(event.node), event.detail["epoch"]
        if name is None:
            return
        self.evidence.exercise(ONE_SENDER)
        first = self.senders.setdefault((name, epoch), event.node)
        if first != event.node:
            text = (
                f"{event.node} sends {event.detail['request']} to broker {event.detail['to']} in "
                f"epoch {epoch}, in which {first} has sent requests"
            )
            about = Subject((event.node, first), paths=(paths.CONTROLLER, paths.CONTROLLER_EPOCH))
            shape = "two senders in an epoch"
            self.evidence.violate(ONE_SENDER, event.t_us, shape, text, about)

    def _taken(self, event: Event) -> None:
        if event.node not in self.cluster_of:
            return
        epoch = event.detail["epoch"]
        least, greatest = self.known.get(event.node, (epoch, epoch))
        self.known[event.node] = min(least, epoch), max(greatest, epoch)
        if least == greatest == epoch:
            return
        self.evidence.exercise(NONE_DEPOSED)
        if epoch < greatest:
            sender = event.detail["controller"]
            text = (
                f"{event.node} carries out {event.detail['request']} of broker {sender} in epoch "
                f"{epoch}, after one of epoch {greatest}"
            )
            about = Subject((event.node,), paths=(paths.CONTROLLER, paths.CONTROLLER_EPOCH))
            shape = "a request of a deposed controller"
            self.evidence.violate(NONE_DEPOSED, event.t_us, shape, text, about)

    def close(self, end_us: int) -> None:
        """The run is over; there is nothing to add."""

    def findings(self) -> Iterator[Finding]:
        """The finding on each property."""
        return self.evidence.findings()
