"""One partition with its replicas: a value, and every step that can come next.

The state is that of a well-known specification of Kafka's replication (J. Gustafson, 2018):
the log, high watermark, epoch, leader and ISR of each replica; what ZooKeeper holds of the
partition, as one cell that is written atomically; and every LeaderAndIsr request that was ever
sent, as a set. A replica may take any request of the set whose epoch is greater than its own.
So requests are lost, late, repeated and out of order, without a step for each. A replica that
stands still and one that is dead differ in nothing that others can see.

Faults are steps too, each kind once. A process that crashes has forgotten which requests it has
taken, and takes any of them again, also an old one; its log stays, and its high watermark is the
one in its checkpoint, which may be old. A host that is lost has lost any number of records too.

A leader appends as long as it believes that it leads. It is ZooKeeper that stops a deposed one:
only the leader in ZooKeeper's cell, in its epoch, may change the ISR there.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import NO_EPOCH, Record, ReplicaLog
from watchkeeper.model.replication.truncation import Agreement
from watchkeeper.model.replication.variants import FirstRequest, RefusedIsr, ReplicationVariant


class Fault(Enum):
    """A fault that a search may let strike once."""

    CRASH = "a process crashes and restarts"
    OLD_CHECKPOINT = "a process restarts with an old checkpoint"
    POWER = "a host loses its last records"
    REPLY = "the reply to a write of the ISR is lost"
    DEPOSED = "a deposed controller writes the state"
    UNCLEAN = "a replica outside of the ISR is elected"


WITHSTOOD = frozenset({Fault.CRASH, Fault.OLD_CHECKPOINT, Fault.REPLY, Fault.DEPOSED})
"""The faults that `hardened` has to withstand; the others lose what was written."""


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
    is_changing: bool = False
    """Whether it waits for the reply to a write of the ISR: nothing else may change then."""
    has_looked: bool = True
    """Whether no old request can reach this process: it is the first one of its broker, or has
    taken a request after a look at ZooKeeper.
    """
    begun: int = 0
    """The end of the log when a process without memory began to lead, else 0."""

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
    left: frozenset[Fault] = frozenset()
    """The faults that may still strike."""

    def with_replica(self, number: int, replica: Replica) -> Partition:
        """Return the state with another value of one replica."""
        replicas = (*self.replicas[:number], replica, *self.replicas[number + 1 :])
        return Partition(replicas, self.cell, self.sent, self.written, self.left)


class Bounds(NamedTuple):
    """The size of a search."""

    replicas: int
    log: int
    """The largest number of records in a log."""
    records: int
    """The number of records that producers send."""
    epochs: int
    """The number of changes of leader or ISR by the controller."""
    faults: frozenset[Fault] = frozenset()
    """The faults that may strike, once each."""

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


UNAWARE = LeaderAndIsr(NO_EPOCH, NO_LEADER, frozenset())
"""What a process knows that has taken no request."""


def initial(replicas: int, faults: frozenset[Fault] = frozenset()) -> Partition:
    """Return a partition that is all in sync, and has had no leader."""
    cell = LeaderAndIsr(NO_EPOCH, NO_LEADER, frozenset(range(replicas)))
    return Partition((Replica((), 0, UNAWARE),) * replicas, cell, frozenset(), 0, faults)


def believes_to_lead(state: Partition, number: int) -> bool:
    """Whether a replica takes itself for the leader, rightly or not."""
    return state.replicas[number].believes.leader == number


class Steps:
    """Every step of a partition in a version of Kafka, within bounds."""

    def __init__(self, variant: ReplicationVariant, bounds: Bounds) -> None:
        self.variant = variant
        self.rule = variant.truncation
        self.bounds = bounds

    def of(self, state: Partition) -> Iterator[Step]:
        """Yield every step that is possible in a state."""
        if state.cell.epoch + 1 < self.bounds.epochs:
            yield from self._controller(state)
        yield from self._faults(state)
        for number in range(self.bounds.replicas):
            yield from self._requests_taken(state, number)
            if believes_to_lead(state, number):
                yield from self._leader(state, number)

    def takers(self, state: Partition, request: LeaderAndIsr) -> tuple[int, ...]:
        """Return the replicas that may take a request that was sent."""
        return tuple(
            number
            for number, replica in enumerate(state.replicas)
            if request.epoch > replica.believes.epoch
            and self._checked(state, replica, request) is not None
        )

    # --- the controller ----------------------------------------------------------------

    def _controller(self, state: Partition) -> Iterator[Step]:
        """Take a replica for dead, or elect a member of the ISR: both raise the epoch."""
        _, leader, isr = state.cell
        for number in sorted(isr):
            rest = self._without(isr, number, leader)
            if number == leader:
                yield self._sent(state, NO_LEADER, rest, f"takes leader {number} for dead")
            elif rest != isr:
                yield self._sent(state, leader, rest, f"takes {number} for dead")
            if number != leader:
                yield self._sent(state, number, isr, f"elects {number}")

    def _without(self, isr: frozenset[int], number: int, leader: int) -> frozenset[int]:
        """Return the ISR without a member; the last one stays, so that it can lead again."""
        return isr - {number} or isr

    def _sent(self, state: Partition, leader: int, isr: frozenset[int], text: str) -> Step:
        cell = LeaderAndIsr(state.cell.epoch + 1, leader, isr)
        after = state._replace(cell=cell, sent=state.sent | {cell})
        return Step(f"the controller {text} (epoch {cell.epoch}, ISR {_names(isr)})", after)

    # --- faults ------------------------------------------------------------------------

    def _faults(self, state: Partition) -> Iterator[Step]:
        """Let a fault strike that is left; it is not left afterwards."""
        for fault in sorted(state.left, key=lambda fault: fault.value):
            for text, after in _STRIKES[fault](self, state):
                yield Step(text, after._replace(left=state.left - {fault}))

    def _crash(self, state: Partition) -> Iterator[tuple[str, Partition]]:
        for number, replica in enumerate(state.replicas):
            if replica.believes != UNAWARE:
                after = state.with_replica(number, _restarted(replica))
                yield f"replica {number} crashes and restarts", after

    def _old_checkpoint(self, state: Partition) -> Iterator[tuple[str, Partition]]:
        for number, replica in enumerate(state.replicas):
            for mark in range(replica.high_watermark):
                after = _restarted(replica._replace(high_watermark=mark))
                text = f"replica {number} restarts with the high watermark {mark}"
                yield text, state.with_replica(number, after)

    def _power(self, state: Partition) -> Iterator[tuple[str, Partition]]:
        for number, replica in enumerate(state.replicas):
            for end in range(len(replica.log)):
                after = _restarted(replica.cut(end))
                text = f"the host of replica {number} loses all behind offset {end}, and restarts"
                yield text, state.with_replica(number, after)

    def _reply(self, state: Partition) -> Iterator[tuple[str, Partition]]:
        """The write takes effect, and the leader waits until it has read that."""
        for number, leader in enumerate(state.replicas):
            if (state.cell.leader, state.cell.epoch) != (number, leader.believes.epoch):
                continue
            for changed in self._isr_changes(state, number):
                waiting = state.with_replica(number, leader._replace(is_changing=True))
                after = waiting._replace(cell=changed.after.cell)
                yield f"{changed.text}, and does not learn that it is written", after

    def _deposed(self, state: Partition) -> Iterator[tuple[str, Partition]]:
        """Brokers refuse its request: they know of its successor."""
        for step in self._controller(state):
            yield f"deposed, {step.text}", state._replace(cell=step.after.cell)

    def _unclean(self, state: Partition) -> Iterator[tuple[str, Partition]]:
        for number in sorted(set(range(self.bounds.replicas)) - state.cell.isr):
            step = self._sent(state, number, frozenset({number}), f"elects {number} uncleanly")
            yield step.text, step.after

    # --- a replica ---------------------------------------------------------------------

    def _requests_taken(self, state: Partition, number: int) -> Iterator[Step]:
        """Take a request of a greater epoch: lead, follow, or wait for a leader."""
        replica = state.replicas[number]
        for request in state.sent:
            if request.epoch <= replica.believes.epoch:
                continue
            said = self._checked(state, replica, request)
            if said is None:
                continue
            if said.leader == number:
                begun = 0 if replica.has_looked else len(replica.log)
                after = _taking(replica, said)._replace(begun=begun)
                yield _step(state, number, after, _leads(said, request))
            elif said.leader == NO_LEADER:
                yield from self._learns_of_no_leader(state, number, said)
            else:
                yield from self._follow(state, number, said)

    def _checked(
        self, state: Partition, replica: Replica, request: LeaderAndIsr
    ) -> LeaderAndIsr | None:
        """Return what a process takes of a request; None for one that is old.

        A process without memory may look first what ZooKeeper has.
        """
        if self.variant.first_request is FirstRequest.TAKEN or replica.has_looked:
            return request
        return state.cell if state.cell[:2] == request[:2] else None

    def _learns_of_no_leader(
        self, state: Partition, number: int, request: LeaderAndIsr
    ) -> Iterator[Step]:
        after = _taking(state.replicas[number], request)
        yield _step(state, number, after, f"learns of no leader in {request.epoch}")

    def _follow(self, state: Partition, number: int, request: LeaderAndIsr) -> Iterator[Step]:
        replica, leader = state.replicas[number], state.replicas[request.leader]
        text = f"follows {request.leader} in epoch {request.epoch}"
        if self.rule.cuts_before_fetch:
            yield _step(state, number, _taking(replica, request), text)
            return
        if self.rule.agreement is Agreement.EPOCH and leader.believes[:2] != request[:2]:
            return  # a leader in another epoch refuses to say where its epochs end
        cut = self.rule.cut_at(replica.log, leader.log, replica.high_watermark)
        after = _taking(replica.cut(cut), request)
        yield _step(state, number, after, f"{text}, and {_cut(replica.log, cut)}")

    # --- a leader ----------------------------------------------------------------------

    def _leader(self, state: Partition, number: int) -> Iterator[Step]:
        leader = state.replicas[number]
        if leader.is_changing:
            yield self._isr_read(state, number)
            return
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

    def _isr_read(self, state: Partition, number: int) -> Step:
        """Read the state: it has what was to be written, or another epoch or leader."""
        leader = state.replicas[number]
        believes, text = leader.believes, "is refused, and goes on"
        if state.cell[:2] == believes[:2]:
            believes = state.cell
            text = f"reads the ISR {_names(believes.isr)}"
        elif self.variant.refused_isr is RefusedIsr.READS_AGAIN:
            believes = believes._replace(leader=NO_LEADER)
            text = "reads that it does not lead any more"
        return _step(state, number, leader._replace(believes=believes, is_changing=False), text)

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
        if not self.rule.admits_after_own_epoch:
            return True
        if not self._is_caught_up(state, number, member, leader.begun):
            return False  # what it has found in its log may be committed
        if mark == len(leader.log):
            return True
        return leader.log[mark].epoch == leader.believes.epoch


_STRIKES = {
    Fault.CRASH: Steps._crash,
    Fault.OLD_CHECKPOINT: Steps._old_checkpoint,
    Fault.POWER: Steps._power,
    Fault.REPLY: Steps._reply,
    Fault.DEPOSED: Steps._deposed,
    Fault.UNCLEAN: Steps._unclean,
}
"""Fault -> the ways in which it can strike."""


def _taking(replica: Replica, said: LeaderAndIsr) -> Replica:
    """Return a replica that has taken a request."""
    return replica._replace(believes=said, is_changing=False, has_looked=True, begun=0)


def _restarted(replica: Replica) -> Replica:
    """Return a replica whose process has forgotten every request."""
    return Replica(replica.log, replica.high_watermark, UNAWARE, has_looked=False)


def _leads(said: LeaderAndIsr, request: LeaderAndIsr) -> str:
    newer = "" if said == request else f", with the ISR {_names(said.isr)} in ZooKeeper"
    return f"leads in epoch {said.epoch}{newer}"


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
