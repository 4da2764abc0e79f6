"""One partition with its replicas: a value, and every step that can come next.

The state is that of a well-known specification of Kafka's replication (J. Gustafson, 2018):
the log, high watermark, epoch, leader and ISR of each replica; what ZooKeeper holds of the
partition, as one cell that is written atomically; and every LeaderAndIsr request that was ever
sent, as a set. A replica may take any request of the set whose epoch is greater than its own.
So requests are lost, late, repeated and out of order, without a step for each. Replicas never
crash: one that stands still and one that is dead differ in nothing that others can see.

A leader appends as long as it believes that it leads. It is ZooKeeper that stops a deposed one:
only the leader in ZooKeeper's cell, in its epoch, may change the ISR there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import NO_EPOCH, Record, ReplicaLog
from watchkeeper.model.replication.truncation import Agreement, TruncationRule


class LeaderAndIsr(NamedTuple):
    """What ZooKeeper holds of a partition, and what a LeaderAndIsr request carries."""

    epoch: int
    leader: int
    isr: frozenset[int]


class Replica(NamedTuple):
    """What a broker holds of a partition."""

    log: ReplicaLog
    high_watermark: int
    believes: LeaderAndIsr

    def cut(self, at: int) -> Replica:
        """Return the replica without its records from an offset on."""
        return self._replace(log=self.log[:at], high_watermark=min(at, self.high_watermark))


class Partition(NamedTuple):
    """The state of a partition: its replicas, ZooKeeper's cell, and the requests sent."""

    replicas: tuple[Replica, ...]
    cell: LeaderAndIsr
    sent: frozenset[LeaderAndIsr]
    written: int
    """The number of records that leaders have appended."""

    def with_replica(self, number: int, replica: Replica) -> Partition:
        """Return the state with another value of one replica."""
        replicas = (*self.replicas[:number], replica, *self.replicas[number + 1 :])
        return self._replace(replicas=replicas)


class Bounds(NamedTuple):
    """The size of a search."""

    replicas: int
    log: int
    """The largest number of records in a log."""
    records: int
    """The number of records that producers send."""
    epochs: int
    """The number of changes of leader or ISR by the controller."""

    def __str__(self) -> str:
        records = "record" if self.records == 1 else "records"
        return (
            f"{self.replicas} replicas, {self.records} {records}, logs of {self.log}, "
            f"{self.epochs} epochs"
        )


class Step(NamedTuple):
    """A step: its sentence, and the state after it."""

    text: str
    after: Partition


def initial(replicas: int) -> Partition:
    """Return a partition that is all in sync, and has had no leader."""
    cell = LeaderAndIsr(NO_EPOCH, NO_LEADER, frozenset(range(replicas)))
    unaware = LeaderAndIsr(NO_EPOCH, NO_LEADER, frozenset())
    return Partition((Replica((), 0, unaware),) * replicas, cell, frozenset(), 0)


def believes_to_lead(state: Partition, number: int) -> bool:
    """Whether a replica takes itself for the leader, rightly or not."""
    return state.replicas[number].believes.leader == number


class Steps:
    """Every step of a partition under a rule, within bounds."""

    def __init__(self, rule: TruncationRule, bounds: Bounds) -> None:
        self.rule = rule
        self.bounds = bounds

    def of(self, state: Partition) -> Iterator[Step]:
        """Yield every step that is possible in a state."""
        if state.cell.epoch + 1 < self.bounds.epochs:
            yield from self._controller(state)
        for number in range(self.bounds.replicas):
            yield from self._requests_taken(state, number)
            if believes_to_lead(state, number):
                yield from self._leader(state, number)

    # --- the controller ----------------------------------------------------------------

    def _controller(self, state: Partition) -> Iterator[Step]:
        """Take a replica for dead, or elect a member of the ISR: both raise the epoch."""
        _, leader, isr = state.cell
        for number in sorted(isr):
            rest = isr - {number} or isr  # the last member stays, so that it can lead again
            if number == leader:
                yield self._sent(state, NO_LEADER, rest, f"takes leader {number} for dead")
            elif rest != isr:
                yield self._sent(state, leader, rest, f"takes {number} for dead")
            if number != leader:
                yield self._sent(state, number, isr, f"elects {number}")

    def _sent(self, state: Partition, leader: int, isr: frozenset[int], text: str) -> Step:
        cell = LeaderAndIsr(state.cell.epoch + 1, leader, isr)
        after = state._replace(cell=cell, sent=state.sent | {cell})
        return Step(f"the controller {text} (epoch {cell.epoch}, ISR {_names(isr)})", after)

    # --- a replica ---------------------------------------------------------------------

    def _requests_taken(self, state: Partition, number: int) -> Iterator[Step]:
        """Take a request of a greater epoch: lead, follow, or wait for a leader."""
        replica = state.replicas[number]
        for request in state.sent:
            if request.epoch <= replica.believes.epoch:
                continue
            if request.leader == number:
                after = replica._replace(believes=request)
                yield _step(state, number, after, f"leads in epoch {request.epoch}")
            elif request.leader == NO_LEADER:
                after = replica._replace(believes=request)
                yield _step(state, number, after, f"learns of no leader in {request.epoch}")
            else:
                yield from self._follow(state, number, request)

    def _follow(self, state: Partition, number: int, request: LeaderAndIsr) -> Iterator[Step]:
        replica, leader = state.replicas[number], state.replicas[request.leader]
        text = f"follows {request.leader} in epoch {request.epoch}"
        if self.rule.cuts_before_fetch:
            yield _step(state, number, replica._replace(believes=request), text)
            return
        if self.rule.agreement is Agreement.EPOCH and leader.believes[:2] != request[:2]:
            return  # a leader in another epoch refuses to say where its epochs end
        cut = self.rule.cut_at(replica.log, leader.log, replica.high_watermark)
        after = replica.cut(cut)._replace(believes=request)
        yield _step(state, number, after, f"{text}, and {_cut(replica.log, cut)}")

    # --- a leader ----------------------------------------------------------------------

    def _leader(self, state: Partition, number: int) -> Iterator[Step]:
        leader = state.replicas[number]
        if state.written < self.bounds.records and len(leader.log) < self.bounds.log:
            record = Record(leader.believes.epoch, state.written)
            after = leader._replace(log=(*leader.log, record))
            appended = _step(state, number, after, f"appends record {record.number}")
            yield appended._replace(after=appended.after._replace(written=state.written + 1))
        if self._is_replicated(state, number):
            after = leader._replace(high_watermark=leader.high_watermark + 1)
            yield _step(state, number, after, f"commits offset {leader.high_watermark}")
        for follower in range(self.bounds.replicas):
            if follower != number and state.replicas[follower].believes.leader == number:
                yield from self._fetches(state, number, follower)
        if state.cell.leader == number and state.cell.epoch == leader.believes.epoch:
            yield from self._isr_changes(state, number)

    def _is_replicated(self, state: Partition, number: int) -> bool:
        """Whether every member of the leader's ISR has the record at its high watermark."""
        leader = state.replicas[number]
        end = leader.high_watermark + 1
        return len(leader.log) >= end and all(
            member == number or self._is_caught_up(state, number, member, end)
            for member in leader.believes.isr
        )

    def _agrees(self, state: Partition, number: int, member: int, end: int) -> bool:
        """Whether the records that a follower has below an offset count as the leader's."""
        leader, follower = state.replicas[number], state.replicas[member]
        if follower.believes.leader != number:
            return False
        if self.rule.agreement is Agreement.EPOCH:
            return follower.believes.epoch == leader.believes.epoch
        if self.rule.agreement is Agreement.LAST_RECORD and end:
            return _epoch_at(follower.log, end) == _epoch_at(leader.log, end)
        return True

    def _fetches(self, state: Partition, number: int, member: int) -> Iterator[Step]:
        leader, follower = state.replicas[number], state.replicas[member]
        end = len(follower.log)
        if self.rule.cuts_before_fetch and _differs(follower.log, leader.log):
            cut = self.rule.cut_at(follower.log, leader.log, follower.high_watermark)
            text = f"finds that its log differs from {number}'s, and {_cut(follower.log, cut)}"
            yield _step(state, member, follower.cut(cut), text)
        if end < len(leader.log) and self._agrees(state, number, member, end):
            log = (*follower.log, leader.log[end])
            mark = min(leader.high_watermark, len(log))
            after = follower._replace(log=log, high_watermark=mark)
            yield _step(state, member, after, f"fetches offset {end} from {number}")

    def _isr_changes(self, state: Partition, number: int) -> Iterator[Step]:
        """Shrink or grow the ISR in ZooKeeper, and take it over."""
        leader = state.replicas[number]
        isr, end = leader.believes.isr, len(leader.log)
        for member in range(self.bounds.replicas):
            if member == number:
                continue
            if member in isr and not self._is_caught_up(state, number, member, end):
                yield _with_isr(state, number, isr - {member}, f"drops {member}")
            elif member not in isr and self._may_join(state, number, member):
                yield _with_isr(state, number, isr | {member}, f"admits {member}")

    def _is_caught_up(self, state: Partition, number: int, member: int, end: int) -> bool:
        """Whether a leader believes that a follower has all its records below an offset."""
        return len(state.replicas[member].log) >= end and self._agrees(state, number, member, end)

    def _may_join(self, state: Partition, number: int, member: int) -> bool:
        leader = state.replicas[number]
        mark = leader.high_watermark
        if not self._is_caught_up(state, number, member, mark):
            return False
        if not self.rule.admits_after_own_epoch or mark == len(leader.log):
            return True
        return leader.log[mark].epoch == leader.believes.epoch


def _epoch_at(log: ReplicaLog, end: int) -> int:
    """The epoch of the record before an offset; NO_EPOCH where the log is shorter."""
    return log[end - 1].epoch if len(log) >= end else NO_EPOCH


def _differs(follower: ReplicaLog, leader: ReplicaLog) -> bool:
    """Whether a fetch at the end of the follower's log shows that it has to be cut."""
    end = len(follower)
    return end > len(leader) or (end > 0 and leader[end - 1].epoch != follower[-1].epoch)


def _with_isr(state: Partition, number: int, isr: frozenset[int], text: str) -> Step:
    leader = state.replicas[number]
    after = leader._replace(believes=leader.believes._replace(isr=isr))
    done = _step(state, number, after, f"{text}: ISR {_names(isr)}")
    return done._replace(after=done.after._replace(cell=state.cell._replace(isr=isr)))


def _step(state: Partition, number: int, replica: Replica, text: str) -> Step:
    return Step(f"replica {number} {text}", state.with_replica(number, replica))


def _cut(log: ReplicaLog, at: int) -> str:
    return f"cuts {len(log) - at} of {len(log)} records"


def _names(isr: frozenset[int]) -> str:
    return "{" + ", ".join(map(str, sorted(isr))) + "}"
