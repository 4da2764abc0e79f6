"""The partition as published TLA+ models have it, where their text differs from Kafka.

The models are J. Gustafson's, `github.com/hachikuji/kafka-specification` (2018 to 2020): a module
for each truncation rule. In three places their text takes steps otherwise than `partition`:

- the controller takes the last member out of an ISR without a leader; Kafka does not since 0.8.0;
- no replica takes a request without a leader: the action draws the leader from `Replicas`, and
  `None` is no member of it, so the branch for `None` is never enabled;
- `TruncateTo` is enabled only within the follower's log. In `Kip101` a follower whose last epoch
  goes on in the leader's log can therefore not follow at all; Kafka keeps its log.

With these three the states are the same, one for one: `replicaLog` and `replicaState` are
`replicas`, `quorumState` is `cell`, `leaderAndIsrRequests` is `sent`, `nextRecordId` is
`written`, and `nextLeaderEpoch` follows from the epoch of the cell. What `partition` adds for
faults (`is_changing`, `has_looked`, `begun`, `left`) has one value without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from watchkeeper.checker.replication.partition import LeaderAndIsr, Partition, Step, Steps
from watchkeeper.checker.replication.search import PROPERTIES, Holds
from watchkeeper.model.replication.replica_log import end_of_epoch, last_epoch
from watchkeeper.model.replication.truncation import (
    FETCH_EPOCHS,
    HIGH_WATERMARK,
    KIP_101,
    KIP_279,
    KIP_320,
    TruncationRule,
)


class PublishedModel(NamedTuple):
    """A module of the specification, and the rule that it is about."""

    module: str
    rule: TruncationRule


MODELS = (
    PublishedModel("KafkaTruncateToHighWatermark", HIGH_WATERMARK),
    PublishedModel("Kip101", KIP_101),
    PublishedModel("Kip279", KIP_279),
    PublishedModel("Kip320FirstTry", FETCH_EPOCHS),
    PublishedModel("Kip320", KIP_320),
)
"""The modules with a rule of their own, in the order of the rules."""


def _leader_in_isr(state: Partition) -> bool:
    """As it is written, it fails wherever there is no leader, and so in the first state."""
    return state.cell.leader in state.cell.isr


INVARIANTS: dict[str, Holds] = {
    "WeakIsr": PROPERTIES["weak ISR"],
    "StrongIsr": PROPERTIES["strong ISR"],
    "LeaderInIsr": _leader_in_isr,
}
"""The invariants of the specification but `TypeOk`, which is about the types of TLA+ values."""


class PublishedSteps(Steps):
    """Every step of a partition by the text of the models."""

    def _without(self, isr: frozenset[int], number: int, leader: int) -> frozenset[int]:
        return isr - {number} if number != leader else super()._without(isr, number, leader)

    def _learns_of_no_leader(
        self, state: Partition, number: int, request: LeaderAndIsr
    ) -> Iterator[Step]:
        yield from ()

    def _follow(self, state: Partition, number: int, request: LeaderAndIsr) -> Iterator[Step]:
        if not self._cuts_past_the_end(state, number, request):
            yield from super()._follow(state, number, request)

    def _cuts_past_the_end(self, state: Partition, number: int, request: LeaderAndIsr) -> bool:
        if self.rule != KIP_101:
            return False  # the other rules name an offset within the follower's log
        log, leader = state.replicas[number].log, state.replicas[request.leader].log
        end = end_of_epoch(leader, last_epoch(log)) if log else None
        return end is not None and end > len(log)
