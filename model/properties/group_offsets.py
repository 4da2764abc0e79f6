"""The judge of offsets that groups keep in Kafka, and of groups that move them.

A member says what it sends to the coordinator and what the coordinator answers. A commit takes
effect between the two; without an answer it may take effect at any time after it was sent, or
never. So a fetch may give the offset of a commit unless another one was sent after that commit
had been acknowledged, and was acknowledged itself before the fetch was sent.

A member that begins looks first: in Kafka, in ZooKeeper, or in both. What its group has
committed by then, wherever that was, is the least at which it may begin.

A commit to Kafka expires, as settings say. Once it is that old a coordinator need not find it.
Once a fetch was answered that there is no offset, none of those commits may come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.offset_manager.migration import NAMES, Store
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.evidence import Evidence
from watchkeeper.model.properties.history import Claim
from watchkeeper.model.properties.verdicts import Finding, Property, Subject
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

FOUND = Property(
    "commits are found",
    "always",
    "after a commit to Kafka is acknowledged, a fetch that the coordinator answers with an "
    "offset gives that commit or a later one",
    exercise="a fetch of an offset after an acknowledged commit",
    is_optional=True,
)
NOT_MISSING = Property(
    "no offset is missing",
    "always",
    "a coordinator answers that there is no offset only if it has acknowledged none, or if the "
    "last one is older than the retention of offsets",
    exercise="a fetch of an offset after an acknowledged commit",
    is_optional=True,
)
GOES_ON = Property(
    "goes on where it stopped",
    "always",
    "no member begins below the newest offset that its group had committed when the member "
    "looked, whether to ZooKeeper or to Kafka",
    exercise="a member that begins with a partition of which its group has committed an offset",
    is_optional=True,
)
STAYS_EXPIRED = Property(
    "expired offsets stay expired",
    "always",
    "after a fetch finds no offset, because the last commit is older than the retention, no "
    "fetch gives a commit from before",
    exercise="a fetch of an offset after one that found it expired",
    is_optional=True,
)
GROUP_OFFSETS: tuple[Property, ...] = (FOUND, NOT_MISSING, GOES_ON, STAYS_EXPIRED)

READS_OFFSETS = "read offsets"
"""The purpose of the requests with which a member looks in ZooKeeper."""
NO_OFFSET = -1
NEVER = 1 << 62


@dataclass(slots=True)
class Commit:
    """A commit of an offset to Kafka; the moments are numbers of events."""

    offset: int
    sent: int
    sent_us: int
    acknowledged: int = NEVER


@dataclass(slots=True)
class Newest:
    """The newest offset that a group has committed, and where."""

    offset: int
    store: Store
    sent_us: int
    """When its commit was sent; only one to Kafka expires."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a group had committed when a member looked."""

    newest: dict[Claim, Newest]


class GroupOffsetsJudge:
    """Judges the offsets of the groups of a run of which a member keeps them in Kafka."""

    def __init__(self, retentions_us: Mapping[str, int]) -> None:
        """`retentions_us` says after how long the commits of a group expire."""
        self.evidence = Evidence(GROUP_OFFSETS)
        self.retentions_us = retentions_us
        self.expired: dict[Claim, int] = {}
        """Partition of a group -> when the last fetch was sent that found its commit expired."""
        self.commits: dict[Claim, list[Commit]] = {}
        self.newest: dict[Claim, Newest] = {}
        self.committing: dict[str, dict[Claim, Commit]] = {}
        """Member -> its commit without an answer."""
        self.fetching: dict[str, int] = {}
        """Member -> the event with which it sent its fetch without an answer."""
        self.looks: dict[str, Look] = {}
        self.handlers: dict[str, Callable[[Event], None]] = {
            EventKind.STARTED: self._started,
            EventKind.OFFSET_COMMIT_SENT: self._commit_sent,
            EventKind.OFFSET_COMMIT_ANSWERED: self._commit_answered,
            EventKind.OFFSET_FETCH_SENT: self._fetch_sent,
            EventKind.OFFSET_FETCH_ANSWERED: self._fetch_answered,
            EventKind.REQUEST: self._requested,
            EventKind.APPLIED: self._applied,
            EventKind.FETCHING: self._begins,
        }

    # --- commits -----------------------------------------------------------------------

    def _started(self, event: Event) -> None:
        self.committing.pop(event.node, None)
        self.fetching.pop(event.node, None)
        self.looks.pop(event.node, None)

    def _commit_sent(self, event: Event) -> None:
        sent = {}
        for topic, partition, offset in event.detail["offsets"]:
            commit = Commit(offset, event.seq, event.t_us)
            claim = event.group, Partition(topic, partition)
            self.commits.setdefault(claim, []).append(commit)
            sent[claim] = commit
        self.committing[event.node] = sent

    def _commit_answered(self, event: Event) -> None:
        sent = self.committing.pop(event.node, {})
        for topic, partition, offset in event.detail["accepted"]:
            claim = event.group, Partition(topic, partition)
            if claim in sent:
                sent[claim].acknowledged = event.seq
                self.newest[claim] = Newest(offset, Store.KAFKA, sent[claim].sent_us)

    def _applied(self, event: Event) -> None:
        for change in event.detail["did"]:
            claim = paths.parse_offset(change[1])
            if claim is None or change[0] == "deleted" or change[3] is None:
                continue
            offset = paths.offset_in(change[3])
            if offset is not None:
                self.newest[claim] = Newest(offset, Store.ZOOKEEPER, event.t_us)

    # --- fetches from the coordinator --------------------------------------------------

    def _fetch_sent(self, event: Event) -> None:
        self.fetching[event.node] = event.seq
        self._look(event)

    def _fetch_answered(self, event: Event) -> None:
        sent = self.fetching.pop(event.node, None)
        for topic, partition, offset in event.detail["offsets"] if sent is not None else ():
            assert sent is not None, "the loop is empty otherwise"
            self._judge_answer(event, Partition(topic, partition), offset, sent)

    def _judge_answer(self, event: Event, partition: Partition, offset: int, sent: int) -> None:
        commits = self.commits.get((event.group, partition), [])
        before = [commit for commit in commits if commit.acknowledged < sent]
        if not before:
            return
        self._judge_expired(event, partition, offset, sent, commits)
        last = max(before, key=lambda commit: commit.sent)
        if offset == NO_OFFSET and self._is_old(event.group, last.sent_us, event.t_us):
            self.expired[event.group, partition] = sent
            return
        claim = NOT_MISSING if offset == NO_OFFSET else FOUND
        for possible in {NOT_MISSING.name: NOT_MISSING, claim.name: claim}.values():
            self.evidence.exercise(possible)
        if any(
            commit.offset == offset and commit.acknowledged >= last.sent for commit in commits
        ):
            return
        given = "no offset" if offset == NO_OFFSET else f"offset {offset}"
        shape = "an offset is missing" if offset == NO_OFFSET else "an older commit"
        text = (
            f"{event.node} gets {given} for {partition} from the coordinator of {event.group}, "
            f"after {last.offset} was acknowledged"
        )
        about = _about(event, partition, last.offset)
        self.evidence.violate(claim, event.t_us, shape, text, about)

    def _judge_expired(
        self, event: Event, partition: Partition, offset: int, sent: int, commits: list[Commit]
    ) -> None:
        """Judge an answer after one that there was no offset any more."""
        expired = self.expired.get((event.group, partition), NEVER)
        if expired >= sent:
            return
        self.evidence.exercise(STAYS_EXPIRED)
        if offset == NO_OFFSET or any(
            commit.offset == offset and commit.acknowledged > expired for commit in commits
        ):
            return
        text = (
            f"{event.node} gets offset {offset} for {partition} from the coordinator of "
            f"{event.group}, after that had expired"
        )
        about = _about(event, partition, offset)
        self.evidence.violate(STAYS_EXPIRED, event.t_us, "an offset comes back", text, about)

    def _is_old(self, group: str, sent_us: int, now_us: int) -> bool:
        """Whether a commit may have expired by now."""
        retention_us = self.retentions_us.get(group)
        return retention_us is not None and now_us - sent_us >= retention_us

    # --- where members begin -----------------------------------------------------------

    def _requested(self, event: Event) -> None:
        if event.group and event.detail["purpose"] == READS_OFFSETS:
            self._look(event)

    def _look(self, event: Event) -> None:
        self.looks[event.node] = Look(
            {
                claim: newest
                for claim, newest in self.newest.items()
                if claim[0] == event.group and not self._has_expired(claim, newest, event.t_us)
            }
        )

    def _has_expired(self, claim: Claim, newest: Newest, now_us: int) -> bool:
        in_kafka = newest.store is Store.KAFKA
        return in_kafka and self._is_old(claim[0], newest.sent_us, now_us)

    def _begins(self, event: Event) -> None:
        look = self.looks.get(event.node)
        if event.detail["does"] != "begins" or look is None:
            return
        partition, at = Partition(event.topic, event.partition), event.detail["at"]
        newest = look.newest.get((event.group, partition))
        if newest is None:
            return
        self.evidence.exercise(GOES_ON)
        if at >= newest.offset:
            return
        begins = f"begins at {at}" if at >= 0 else "finds no offset"
        text = (
            f"{event.node} {begins} in {partition}, of which {event.group} had committed "
            f"{newest.offset} to {NAMES[newest.store]}"
        )
        shape = "below a commit" if at >= 0 else "without an offset"
        about = _about(event, partition, newest.offset)
        self.evidence.violate(GOES_ON, event.t_us, f"a member begins {shape}", text, about)

    # --- the end -----------------------------------------------------------------------

    def close(self, end_us: int) -> None:
        """The run is over; there is nothing to add."""

    def findings(self) -> Iterator[Finding]:
        """The finding on each property."""
        return self.evidence.findings()


def _about(event: Event, partition: Partition, offset: int) -> Subject:
    """What a violation is about: a member, a partition, and the offset that was committed."""
    return Subject((event.node,), group=event.group, partitions=(partition,), offset=offset)


def offset_judges(plan: Plan) -> tuple[GroupOffsetsJudge, ...]:
    """The judge of offsets in Kafka; none where no member keeps them there."""
    return (GroupOffsetsJudge(retentions_us(plan)),) if plan.keeps_offsets_in_kafka else ()


def retentions_us(plan: Plan) -> dict[str, int]:
    """Return after how long the commits of each group to Kafka expire."""
    by_cluster = {
        cluster.name: cluster.replication.offsets.retention_ms * 1000
        for cluster in plan.clusters
        if cluster.replication is not None
    }
    return {
        group.name: by_cluster[group.cluster]
        for group in plan.groups
        if group.cluster in by_cluster
    }
