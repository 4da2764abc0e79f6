"""One state for each class of states with the same future: a search that sees fewer.

Three kinds of states are merged. None of them tells apart what `Steps` reads or what a property
judges, so each step of a state has its like in the representative, and leads to the same class:

- **Replicas are interchangeable.** At first they differ in nothing but their numbers, and no
  step asks for a number but to name a leader or a member of the ISR. States that differ by a
  permutation of the replicas are merged.
- **Records are interchangeable.** Logs are compared record by record, never by number, and the
  next number is always a new one.
- **Dead values.** Nothing reads the ISR of a replica that does not lead, nor a request that no
  replica can take any more.

A path through representatives is no run: the replicas change their numbers on it. `run_along`
returns the run that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise, permutations, product
from operator import itemgetter

from watchkeeper.checker.replication.partition import (
    Fault,
    LeaderAndIsr,
    Partition,
    Replica,
    Step,
    Steps,
)
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.truncation import Agreement
from watchkeeper.model.replication.variants import FirstRequest

Order = tuple[int, ...]
"""New number -> old number of a replica."""
RESTARTS = frozenset({Fault.CRASH, Fault.OLD_CHECKPOINT, Fault.POWER})
"""The faults after which a process has forgotten which requests it has taken."""
NO_MEMBERS: frozenset[int] = frozenset()
Traits = tuple[int, ...]


class Representatives:
    """The representative of each state of a partition.

    Parts of states are looked up in tables. That is quicker than making them, and equal parts
    become one object, which saves most of the memory of a search.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.checks_first = steps.variant.first_request is FirstRequest.CHECKED
        self.follows_in_epoch = (
            steps.rule.agreement is Agreement.EPOCH and not steps.rule.cuts_before_fetch
        )
        self._cells: dict[tuple[LeaderAndIsr, Order], LeaderAndIsr] = {}
        self._sent: dict[tuple[frozenset[LeaderAndIsr], Order], frozenset[LeaderAndIsr]] = {}
        self._replicas: dict[tuple[Replica, int, Order], Replica] = {}
        self._traits: dict[tuple[Replica, int], Traits] = {}
        self._numbered: dict[tuple[Replica, tuple[int, ...]], Replica] = {}
        self._left: dict[frozenset[Fault], frozenset[Fault]] = {}

    def of(self, state: Partition) -> Partition:
        """Return the representative of a state."""
        state = self._without_dead_requests(state)
        orders = self._orders(state)
        if len(orders) == 1:
            return self._permuted(state, orders[0])
        return min((self._permuted(state, order) for order in orders), key=_comparable)

    # --- dead requests -----------------------------------------------------------------

    def _without_dead_requests(self, state: Partition) -> Partition:
        sent = frozenset(request for request in state.sent if self._may_be_taken(state, request))
        return Partition(state.replicas, state.cell, sent, state.written, state.left)

    def _may_be_taken(self, state: Partition, request: LeaderAndIsr) -> bool:
        """Whether a replica can take a request now or later."""
        if self.checks_first and request.epoch == state.cell.epoch:
            return True  # a process that restarts may take it
        if not self.checks_first and state.left & RESTARTS:
            return True
        return any(
            self._may_reach(replica, request.epoch)
            and self._may_have_leader(state, number, request)
            for number, replica in enumerate(state.replicas)
        )

    def _may_reach(self, replica: Replica, epoch: int) -> bool:
        """Whether a replica can take requests of an epoch that is not the one in ZooKeeper."""
        return replica.believes.epoch < epoch and (replica.has_looked or not self.checks_first)

    def _may_have_leader(self, state: Partition, number: int, request: LeaderAndIsr) -> bool:
        """Whether the leader of a request is in its epoch, or may come to it; see `_follow`."""
        if request.leader in (number, NO_LEADER) or not self.follows_in_epoch:
            return True
        leader = state.replicas[request.leader]
        return leader.believes[:2] == request[:2] or self._may_reach(leader, request.epoch)

    # --- permutations ------------------------------------------------------------------

    def _orders(self, state: Partition) -> list[Order]:
        """Return the orders of the replicas by their traits: several where some have the same."""
        _, leader, isr = state.cell
        traits = sorted(
            ((number == leader, number in isr, *self._traits_of(replica, number)), number)
            for number, replica in enumerate(state.replicas)
        )
        if all(one[0] != other[0] for one, other in pairwise(traits)):
            return [tuple(number for _, number in traits)]
        groups = [tuple(group) for _, group in groupby(traits, key=itemgetter(0))]
        return [
            tuple(number for group in chosen for _, number in group)
            for chosen in product(*map(permutations, groups))
        ]

    def _traits_of(self, replica: Replica, number: int) -> Traits:
        """What a replica is, without the numbers of replicas and records."""
        key = (replica, number)
        found = self._traits.get(key)
        if found is None:
            found = self._traits[key] = _traits(_without_dead_isr(replica, number), number)
        return found

    def _permuted(self, state: Partition, order: Order) -> Partition:
        replicas = tuple(self._replica(state.replicas[number], number, order) for number in order)
        if state.written > 1:
            replicas = self._with_new_numbers(replicas)
        cell, requests = self._cell(state.cell, order), self._requests(state.sent, order)
        left = self._left.setdefault(state.left, state.left)
        return Partition(replicas, cell, requests, state.written, left)

    def _replica(self, replica: Replica, number: int, order: Order) -> Replica:
        key = (replica, number, order)
        found = self._replicas.get(key)
        if found is None:
            live = _without_dead_isr(replica, number)
            believes = self._cell(live.believes, order)
            found = self._replicas[key] = live._replace(believes=believes)
        return found

    def _cell(self, cell: LeaderAndIsr, order: Order) -> LeaderAndIsr:
        key = (cell, order)
        found = self._cells.get(key)
        if found is None:
            leader = NO_LEADER if cell.leader == NO_LEADER else order.index(cell.leader)
            isr = frozenset(order.index(number) for number in cell.isr)
            found = self._cells[key] = LeaderAndIsr(cell.epoch, leader, isr)
        return found

    def _requests(self, sent: frozenset[LeaderAndIsr], order: Order) -> frozenset[LeaderAndIsr]:
        key = (sent, order)
        found = self._sent.get(key)
        if found is None:
            permuted = frozenset(self._cell(request, order) for request in sent)
            found = self._sent[key] = permuted
        return found

    def _with_new_numbers(self, replicas: tuple[Replica, ...]) -> tuple[Replica, ...]:
        """Return the replicas with records that are numbered as they come, log by log."""
        found = tuple(
            dict.fromkeys(record.number for replica in replicas for record in replica.log)
        )
        if found == tuple(range(len(found))):
            return replicas
        return tuple(self._with_numbers(replica, found) for replica in replicas)

    def _with_numbers(self, replica: Replica, old: tuple[int, ...]) -> Replica:
        key = (replica, old)
        found = self._numbered.get(key)
        if found is None:
            log = (Record(record.epoch, old.index(record.number)) for record in replica.log)
            found = self._numbered[key] = replica._replace(log=tuple(log))
        return found

    # --- paths -------------------------------------------------------------------------

    def run_along(self, path: Iterable[Partition]) -> Iterator[Step]:
        """Yield the steps of a run whose states have the representatives of a path.

        Raises ValueError where no step leads on.
        """
        states = iter(path)
        state = next(states)
        for wanted in states:
            step = next(
                (one for one in self.steps.of(state) if self.of(one.after) == wanted), None
            )
            if step is None:
                raise ValueError(f"no step leads from {state} to the class of {wanted}")
            yield step
            state = step.after


def _without_dead_isr(replica: Replica, number: int) -> Replica:
    """Return the replica without what only a leader reads, where it does not lead."""
    if replica.believes.leader == number:
        return replica
    return replica._replace(believes=replica.believes._replace(isr=NO_MEMBERS), begun=0)


def _traits(replica: Replica, number: int) -> Traits:
    believes = replica.believes
    return (
        *(believes.epoch, believes.leader == number, believes.leader == NO_LEADER),
        *(len(believes.isr), replica.high_watermark, replica.is_changing, replica.has_looked),
        *(replica.begun, *(record.epoch for record in replica.log)),
    )


def _comparable(state: Partition) -> tuple[object, ...]:
    """The state as a value that has an order, which sets have not."""
    return (
        *((replica.log, _flat(replica.believes), *replica[3:]) for replica in state.replicas),
        *(_flat(state.cell), sorted(map(_flat, state.sent))),
    )


def _flat(cell: LeaderAndIsr) -> tuple[object, ...]:
    return (cell.epoch, cell.leader, sorted(cell.isr))
