"""Judges of replication: what leaders append, what is committed, and what replicas keep.

They follow the log of every replica through the trace: what was appended, what was cut, and
what a broker found when it started again. The ISR is that of the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.plan.plan import ClusterPlan, Plan
from watchkeeper.model.properties.control_plane.controllers import DELETIONS
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import History
from watchkeeper.model.properties.verdicts import Finding, Property, Subject
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import PartitionState, TopicAssignment
from watchkeeper.model.replication.replica_log import NO_NUMBER
from watchkeeper.model.replication.requests import ALL
from watchkeeper.model.trace.assignments import assignment_of
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

ONE_LEADER = Property(
    "one leader an epoch",
    "always",
    "at most one broker takes messages for a partition in each leader epoch",
    exercise="a message that a leader has taken",
    is_optional=True,
)
IN_ISR = Property(
    "committed in the ISR",
    "always",
    "every member of the ISR has every message that a leader has committed",
    exercise="a message that was committed",
    is_optional=True,
)
KEPT = Property(
    "confirmed is kept",
    "always",
    "a message that was confirmed by the whole ISR is in the log of each later leader, at its "
    "offset, unless an election was unclean",
    exercise="a later leader of a partition with confirmed messages",
    is_optional=True,
)
UNCHANGED = Property(
    "committed never changes",
    "always",
    "no two leaders commit different messages at one offset",
    exercise="a message that was committed",
    is_optional=True,
)
READ = Property(
    "readers see what is committed",
    "always",
    "what a consumer is handed at an offset is a message that a leader has committed there",
    exercise="a message that is handed on",
    is_optional=True,
)
CAUGHT_UP = Property(
    "replicas catch up",
    "end",
    "at the end each live replica of a partition that has a live leader is in the ISR, and has "
    "what the leader has",
    exercise="a live follower at the end",
    is_optional=True,
)

CARRIED_OUT = Property(
    "requests are carried out",
    "end",
    "at the end no request of an administrator is left: no reassignment, no preferred election "
    "and no deletion",
    exercise="a request of an administrator, and all brokers alive at the end",
    is_optional=True,
)

REPLICATION: tuple[Property, ...] = (
    ONE_LEADER,
    IN_ISR,
    KEPT,
    UNCHANGED,
    READ,
    CAUGHT_UP,
    CARRIED_OUT,
)
"""The properties of clusters whose brokers replicate."""

REQUESTS = frozenset({paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION})

Entry = tuple[int, int]
"""The epoch of the leader that took a message, and the number of the message."""


@dataclass(slots=True)
class PartitionHistory:
    """What has become of one partition."""

    cluster: str
    partition: Partition
    logs: dict[str, list[Entry]] = field(default_factory=dict)
    """Broker -> its log."""
    leaders: dict[int, str] = field(default_factory=dict)
    """Leader epoch -> the broker that has taken messages in it."""
    committed: list[Entry] = field(default_factory=list)
    """What leaders have committed, as it was first."""
    former: tuple[list[Entry], ...] = ()
    """The same of topics of this name that were deleted: consumers may still hold messages."""
    agreed: dict[str, int] = field(default_factory=dict)
    """Broker -> up to where its log was found to be what is committed."""
    confirmed: dict[int, int] = field(default_factory=dict)
    """Offset -> the number of a message that the whole ISR has confirmed."""
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    leader: int = -1
    is_unclean: bool = False
    """Whether a replica outside of the ISR was elected: messages may be lost."""

    def entry_at(self, offset: int, epoch: int, number: int) -> Entry:
        """Return what a replica has at an offset, which may have been compacted elsewhere.

        Then a later message of the same key is in the log, and the epoch is that of the next
        message: what was there may have an earlier one. What was there before counts.
        """
        if number != NO_NUMBER:
            return epoch, number
        there = (log[offset] for log in self.logs.values() if offset < len(log))
        return max((entry for entry in there if entry[0] <= epoch), default=(epoch, number))


class ReplicationJudge:
    """Judges the replication of all clusters of a run."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.history = history
        clusters = [cluster for cluster in plan.clusters if cluster.replication is not None]
        self.nodes = {
            (cluster.name, broker.broker_id): broker.node
            for cluster in clusters
            for broker in cluster.brokers
        }
        self.cluster_of: dict[str, ClusterPlan] = {}
        for cluster in clusters:
            prefix = plan.prefix_of(cluster.name)
            senders = (sender.node for sender in plan.senders_to(cluster.name))
            names = (*cluster.operators(prefix), cluster.writer(prefix), *senders)
            self.cluster_of.update(dict.fromkeys(names, cluster))
        by_name = {cluster.name: cluster for cluster in clusters}
        self.readers = {
            member.node: by_name[group.cluster]
            for group in plan.groups
            if group.cluster in by_name
            for member in group.consumers
        }
        self.partitions: dict[tuple[str, Partition], PartitionHistory] = {}
        self.clusters = clusters
        self.live: dict[str, None] = {}
        self.requested: dict[str, None] = {}
        """The requests of administrators that there ever were, by their paths."""
        self.left: dict[str, None] = {}
        """Those that are still there."""
        self.evidence = Evidence(REPLICATION)
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.APPLIED: self._applied,
            EventKind.STARTED: self._started,
            EventKind.ENDED: self._ended,
            EventKind.REPLICA_OPENED: self._opened,
            EventKind.REPLICA_DELETED: self._deleted,
            EventKind.APPENDED: self._appended,
            EventKind.TRUNCATED: self._truncated,
            EventKind.COMMITTED: self._committed,
            EventKind.BECAME_LEADER: self._became_leader,
            EventKind.UNCLEAN_ELECTION: self._unclean,
            EventKind.ACKNOWLEDGED: self._acknowledged,
            EventKind.CONSUMED: self._consumed,
        }
        """Kind of event -> what is to be done about it."""

    # --- what happens ------------------------------------------------------------------

    def _of(self, event: Event) -> PartitionHistory | None:
        cluster = self.cluster_of.get(event.node)
        if cluster is None:
            return None
        partition = Partition(event.topic, event.detail["partition"])
        return self._history(cluster, partition)

    def _history(self, cluster: ClusterPlan, partition: Partition) -> PartitionHistory:
        return self.partitions.setdefault(
            (cluster.name, partition), PartitionHistory(cluster.name, partition)
        )

    def _applied(self, event: Event) -> None:
        if len(self.clusters) == 1:
            self._note_requests(event)
        cluster = self.cluster_of.get(self.history.holders.get(event.session, ""))
        if cluster is None:
            return
        for change in event.detail["did"]:
            partition = paths.parse_state(change[1])
            if partition is None:
                self._assigned(cluster, change)
                continue
            if change[0] == "deleted":
                known = self._history(cluster, partition)
                # What brokers have on their disks is not deleted with it.
                self.partitions[cluster.name, partition] = PartitionHistory(
                    cluster.name,
                    partition,
                    logs=known.logs,
                    replicas=known.replicas,
                    former=(*known.former, known.committed),
                )
                continue
            try:
                state = PartitionState.decode(change[1], (change[3] or "").encode())
            except BadPayload:
                continue
            known = self._history(cluster, partition)
            known.isr, known.leader = state.isr, state.leader
            self._judge_members(known, event.t_us, 0)

    def _note_requests(self, event: Event) -> None:
        """Note which requests of administrators come and go, of whatever process."""
        for change in event.detail["did"]:
            path = change[1]
            if path in REQUESTS or path.startswith(DELETIONS):
                self.requested[path] = None
                if change[0] == "deleted":
                    self.left.pop(path, None)
                else:
                    self.left[path] = None

    def _assigned(self, cluster: ClusterPlan, change: Sequence[Any]) -> None:
        """Note the replicas of the partitions of a topic, if that is what was written."""
        topic = paths.parse_topic(change[1])
        if topic is None or change[0] == "deleted":
            return
        planned = {one.name: TopicAssignment(one.replicas) for one in cluster.topics}
        found = assignment_of(change[1], change[3] or "") or planned.get(topic)
        for index, replicas in () if found is None else found.replicas:
            self._history(cluster, Partition(topic, str(index))).replicas = replicas

    def _started(self, event: Event) -> None:
        if event.node in self.cluster_of:
            self.live[event.node] = None

    def _ended(self, event: Event) -> None:
        self.live.pop(event.node, None)

    def _opened(self, event: Event) -> None:
        known = self._of(event)
        if known is not None:
            self._cut(known, event)

    def _cut(self, known: PartitionHistory, event: Event) -> None:
        end = event.detail["end"]
        del known.logs.setdefault(event.node, [])[end:]
        known.agreed[event.node] = min(known.agreed.get(event.node, 0), end)

    def _deleted(self, event: Event) -> None:
        known = self._of(event)
        if known is not None:
            known.logs.pop(event.node, None)
            known.agreed.pop(event.node, None)

    def _truncated(self, event: Event) -> None:
        known = self._of(event)
        if known is not None:
            self._cut(known, event)
            self._judge_members(known, event.t_us, event.detail["end"])

    def _appended(self, event: Event) -> None:
        known, detail = self._of(event), event.detail
        if known is None:
            return
        log = known.logs.setdefault(event.node, [])
        # A process that is killed may have cut or deleted more than it has said.
        del log[detail["start"] :]
        log.extend(
            known.entry_at(offset, epoch, number)
            for offset, (epoch, number) in enumerate(detail["records"], detail["start"])
        )
        if detail["leads"]:
            self._judge_leader(known, event)

    def _unclean(self, event: Event) -> None:
        known = self._of(event)
        if known is not None:
            known.is_unclean = True

    def _acknowledged(self, event: Event) -> None:
        known, detail = self._of(event), event.detail
        if known is not None and detail["acks"] == ALL:
            for at, number in enumerate(detail["numbers"]):
                known.confirmed[detail["start"] + at] = number

    def _consumed(self, event: Event) -> None:
        cluster = self.readers.get(event.node)
        if cluster is None:
            return
        known = self._history(cluster, Partition(event.topic, event.partition))
        for _, first, _, at, to, *_ in event.detail["ranges"]:
            for offset in range(at, to):
                self._judge_read(known, event, offset, first + offset - at)

    # --- always ------------------------------------------------------------------------

    def _judge_read(
        self, known: PartitionHistory, event: Event, offset: int, number: int
    ) -> None:
        self.evidence.exercise(READ)
        lives = (known.committed, *known.former)
        if any(offset < len(life) and life[offset][1] == number for life in lives):
            return
        committed = known.committed[offset : offset + 1]
        there = f"message {committed[0][1]} was" if committed else "nothing was"
        text = (
            f"{event.node} is handed message {number} at offset {offset} of {known.partition}, "
            f"where {there} committed"
        )
        about = _about(known, event.node, offset=offset)
        self.evidence.violate(READ, event.t_us, "a message that is not committed", text, about)

    def _judge_leader(self, known: PartitionHistory, event: Event) -> None:
        self.evidence.exercise(ONE_LEADER)
        epoch = event.detail["epoch"]
        other = known.leaders.setdefault(epoch, event.node)
        if other != event.node:
            text = (
                f"{other} and {event.node} have both taken messages for {known.partition} in "
                f"leader epoch {epoch}"
            )
            about = _about(known, other, event.node)
            self.evidence.violate(ONE_LEADER, event.t_us, "two leaders in an epoch", text, about)

    def _committed(self, event: Event) -> None:
        known = self._of(event)
        if known is None:
            return
        mark = event.detail["high_watermark"]
        log = known.logs.get(event.node, [])
        self._judge_unchanged(known, event, log, mark)
        first = len(known.committed)
        known.committed.extend(log[first:mark])
        self._judge_members(known, event.t_us, first)

    def _judge_unchanged(
        self, known: PartitionHistory, event: Event, log: Sequence[Entry], mark: int
    ) -> None:
        self.evidence.exercise(UNCHANGED)
        start = min(known.agreed.get(event.node, 0), mark)
        different = _first_difference(known.committed[start:mark], log[start:mark])
        known.agreed[event.node] = mark
        if different is not None:
            at = start + different
            known.agreed[event.node] = at
            text = (
                f"{event.node} commits message {log[at][1]} of epoch {log[at][0]} at offset {at} "
                f"of {known.partition}, where message {known.committed[at][1]} of epoch "
                f"{known.committed[at][0]} was committed"
            )
            about = _about(known, event.node, offset=at)
            self.evidence.violate(
                UNCHANGED, event.t_us, "another message at an offset", text, about
            )

    def _judge_members(self, known: PartitionHistory, at_us: int, first: int) -> None:
        """Judge what the members of the ISR have, from an offset on."""
        if not known.committed:
            return
        for broker in known.isr:
            self.evidence.exercise(IN_ISR)
            log = known.logs.get(self.nodes.get((known.cluster, broker), ""), [])
            wanted = known.committed[first:]
            if log[first : len(known.committed)] == wanted:
                continue
            at = first + (_first_difference(wanted, log[first:]) or max(len(log) - first, 0))
            text = (
                f"broker {broker} is in the ISR of {known.partition} without the committed "
                f"message {known.committed[min(at, len(known.committed) - 1)][1]} at offset {at}"
            )
            node = self.nodes.get((known.cluster, broker), "")
            about = _about(known, node, offset=at)
            shape = "a member without a committed message"
            self.evidence.violate(IN_ISR, at_us, shape, text, about)

    def _became_leader(self, event: Event) -> None:
        known = self._of(event)
        if known is None:
            return
        log = known.logs.get(event.node, [])
        self._judge_kept(known, event.node, log, event.t_us)

    def _judge_kept(
        self,
        known: PartitionHistory,
        node: str,
        log: Sequence[Entry],
        at_us: int,
    ) -> None:
        if known.is_unclean or not known.confirmed:
            return
        self.evidence.exercise(KEPT)
        for offset, number in known.confirmed.items():
            if offset >= len(log) or log[offset][1] != number:
                there = "nothing" if offset >= len(log) else f"message {log[offset][1]}"
                text = (
                    f"{node} leads {known.partition} with {there} at offset {offset}, where "
                    f"message {number} was confirmed"
                )
                about = _about(known, node, offset=offset)
                self.evidence.violate(KEPT, at_us, "a confirmed message is lost", text, about)
                return

    # --- at the end --------------------------------------------------------------------

    def close(self, end_us: int) -> None:
        """The run is over: judge what has caught up."""
        if self.history.faults_in_force:
            return
        if set(self.nodes.values()) <= set(self.live):
            self._judge_requests(end_us)
        for known in self.partitions.values():
            self._judge_end(known, end_us)

    def _judge_requests(self, end_us: int) -> None:
        for path in self.requested:
            self.evidence.exercise(CARRIED_OUT)
            if path in self.left:
                text = f"{path} is still there, and every broker is alive"
                about = Subject(paths=(path,))
                self.evidence.violate(CARRIED_OUT, end_us, "a request that is left", text, about)

    def _judge_end(self, known: PartitionHistory, end_us: int) -> None:
        leader = self.nodes.get((known.cluster, known.leader), "")
        if leader not in self.live:
            return
        log = known.logs.get(leader, [])
        self._judge_kept(known, leader, log, end_us)
        for (name, broker), node in self.nodes.items():
            is_replica = name == known.cluster and broker in known.replicas
            if not is_replica or node == leader or node not in self.live:
                continue
            self.evidence.exercise(CAUGHT_UP)
            if broker not in known.isr:
                text = f"{node} is alive and not in the ISR of {known.partition}"
                self.evidence.violate(
                    CAUGHT_UP,
                    end_us,
                    "a live replica outside of the ISR",
                    text,
                    _about(known, node),
                )
            elif known.logs.get(node, []) != log:
                text = f"{node} does not have of {known.partition} what {leader} has"
                about = _about(known, node, leader)
                shape = "a live replica that is behind"
                self.evidence.violate(CAUGHT_UP, end_us, shape, text, about)

    def findings(self) -> Iterator[Finding]:
        """The finding on each property."""
        return self.evidence.findings()


def _about(known: PartitionHistory, *nodes: str, offset: int | None = None) -> Subject:
    """What a violation is about: brokers, the partition, and an offset in it."""
    where = known.partition
    state = paths.partition_state(where)
    return Subject(nodes, partitions=(where,), paths=(state,), offset=offset)


def _first_difference(expected: Sequence[Any], found: Sequence[Any]) -> int | None:
    """The first place at which two sequences differ, as far as both go."""
    pairs = enumerate(zip(expected, found, strict=False))
    return next((at for at, (one, other) in pairs if one != other), None)
