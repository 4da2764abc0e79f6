"""The judge of brokers that replicate and end themselves, though their disks work.

A broker that ends takes all partitions with it that it leads and follows. Of a follower whose log
is longer than its leader's, 0.8.2.2 ends the whole process (KAFKA-3924).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Finding, Property, Subject
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

GO_ON = Property(
    "brokers go on",
    "always",
    "no broker ends its process because a log of it is longer than that of the leader it follows",
    exercise="a broker that follows a leader",
    is_optional=True,
)
HALTS: tuple[Property, ...] = (GO_ON,)


class HaltsJudge:
    """Judges the brokers of all clusters of a run."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.nodes = frozenset(
            broker.node
            for cluster in plan.clusters
            if cluster.replication is not None
            for broker in cluster.brokers
        )
        self.evidence = Evidence(HALTS)
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.BECAME_FOLLOWER: self._follows,
            EventKind.FOLLOWER_HALTED: self._halts,
        }

    def _follows(self, event: Event) -> None:
        if event.node in self.nodes:
            self.evidence.exercise(GO_ON)

    def _halts(self, event: Event) -> None:
        if event.node not in self.nodes:
            return
        detail = event.detail
        partition = Partition(event.topic, detail["partition"])
        text = (
            f"{event.node} ends its process: its log of {partition} ends at {detail['end']}, "
            f"and that of its leader, broker {detail['leader']}, at {detail['leader_end']}"
        )
        about = Subject(
            (event.node,),
            partitions=(partition,),
            topic=partition.topic,
            paths=(paths.partition_state(partition),),
        )
        self.evidence.violate(GO_ON, event.t_us, "a broker that halts", text, about)

    def close(self, end_us: int) -> None:
        """The run is over; there is nothing to add."""

    def findings(self) -> Iterator[Finding]:
        """The finding on the property."""
        return self.evidence.findings()
