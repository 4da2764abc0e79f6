"""The judge of high watermarks that outlive a process.

A high watermark says what is known to be committed. It is in the memory of a broker and in its
checkpoint. A replica that forgets it takes committed messages for ones that may be cut: it cuts
its log, and fetches again what it had, if there is a leader to fetch it from.

While it follows, a replica takes over the high watermark of its leader, which may be below its
own. So it is the one with which a broker has opened a replica that has to last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Finding, Property
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, struck_by

MARKS = Property(
    "high watermarks last",
    "always",
    "a replica is never cut below the high watermark with which its broker has opened it, nor "
    "opened with a lower one, unless its host was lost or an election was unclean",
    exercise="a replica that is cut, or opened again, after its broker has opened it",
    is_optional=True,
)
HIGH_WATERMARKS: tuple[Property, ...] = (MARKS,)

HOST_LOSS = "crash_host"
"""The verb of the fault that takes what a broker has not synced."""

Replica = tuple[str, Partition]
"""A broker's process, and a partition."""


class MarksJudge:
    """Judges the high watermarks of all clusters of a run."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.evidence = Evidence(HIGH_WATERMARKS)
        self.cluster_of = {
            broker.node: cluster.name
            for cluster in plan.clusters
            if cluster.replication is not None
            for broker in cluster.brokers
        }
        self.floors: dict[Replica, int] = {}
        """Replica -> the mark with which it was opened, or where it was cut since."""
        self.unclean: set[tuple[str, Partition]] = set()
        """Clusters and partitions of which messages may be lost."""
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.REPLICA_OPENED: self._opened,
            EventKind.TRUNCATED: self._truncated,
            EventKind.REPLICA_DELETED: self._deleted,
            EventKind.UNCLEAN_ELECTION: self._unclean,
            EventKind.FAULT: self._struck,
        }

    def _opened(self, event: Event) -> None:
        mark = event.detail["high_watermark"]
        self._judge(event, mark, f"opens {{}} with the high watermark {mark}")
        self.floors[_replica(event)] = mark

    def _truncated(self, event: Event) -> None:
        end, replica = event.detail["end"], _replica(event)
        if replica in self.floors:
            self._judge(event, end, f"cuts {{}} at {end}")
            self.floors[replica] = min(end, self.floors[replica])

    def _judge(self, event: Event, found: int, does: str) -> None:
        name, partition = self.cluster_of.get(event.node), _replica(event)[1]
        floor = self.floors.get(_replica(event))
        if name is None or floor is None or (name, partition) in self.unclean:
            return
        self.evidence.exercise(MARKS)
        if found < floor:
            text = (
                f"{event.node} {does.format(partition)}, and has opened it with the high "
                f"watermark {floor} before"
            )
            self.evidence.violate(MARKS, event.t_us, "a high watermark that is forgotten", text)

    def _deleted(self, event: Event) -> None:
        self.floors.pop(_replica(event), None)

    def _unclean(self, event: Event) -> None:
        name = self.cluster_of.get(event.node)
        if name is not None:
            self.unclean.add((name, _replica(event)[1]))

    def _struck(self, event: Event) -> None:
        if event.detail["verb"] == HOST_LOSS:
            struck = struck_by(event)
            self.floors = {one: at for one, at in self.floors.items() if one[0] not in struck}

    def close(self, end_us: int) -> None:
        """The run is over; there is nothing to add."""

    def findings(self) -> Iterator[Finding]:
        """The finding on the property."""
        return self.evidence.findings()


def _replica(event: Event) -> Replica:
    return event.node, Partition(event.topic, event.detail["partition"])
