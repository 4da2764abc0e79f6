"""The versions of the controller, as one table.

The design pages name the znodes of the control plane and do not describe its program. So
`documented` has the znodes as the pages have them, and the program of 0.8.2.2; `kafka_08` is
0.8.2.2 as shipped, with the faults that it has. The code reads single answers and never compares
a variant's name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from watchkeeper.model.group.variants import Reads, RequestPolicy


class StartOrder(StrEnum):
    """What a broker does first in a new session."""

    ELECT_THEN_REGISTER = "elects the controller, then registers its id"
    REGISTER_THEN_ELECT = "registers its id, then elects the controller"


class EpochRaised(StrEnum):
    """How a new controller raises `/controller_epoch`."""

    AFTER_ELECTION = "by a request of its own; if it fails, with the old epoch"
    WITH_ELECTION = "in one multi with the election"


class StateZnode(StrEnum):
    """How long the znode of a partition's state lives."""

    EPHEMERAL = "ephemeral: as long as the session of the controller that created it"
    PERSISTENT = "persistent"


class StateBefore(StrEnum):
    """Where a controller takes the state from that it replaces."""

    READ = "is read"
    KNOWN = "is the known one, and is read if the write is refused"


class LiveBrokers(StrEnum):
    """Which brokers count as alive after a change."""

    READ_AGAIN = "those of which the registration can be read after the list"
    LISTED = "those in the list"


class AssignmentWatch(StrEnum):
    """When a new controller sets the watch on a topic's assignment."""

    AFTER_FAILOVER = "after the failover"
    WITH_READ = "with the read"


class DeadAtFailover(StrEnum):
    """What becomes of replicas that are dead when a controller takes over."""

    STAY_IN_ISR = "stay in the ISR"
    LEAVE_ISR = "leave the ISR"


class LastInSync(StrEnum):
    """What becomes of the last replica in the ISR when it dies."""

    KEPT_IF_CLEAN = "stays, unless unclean elections are allowed"
    KEPT = "stays"


class ExistingState(StrEnum):
    """What a controller does if a new partition has a state already."""

    FAILS = "fails, and the partition stays new"
    ADOPTED = "adopts it"


class VanishedTopics(StrEnum):
    """What a controller forgets of a topic whose znode was deleted."""

    ASSIGNMENT = "its assignment"
    ALL = "everything"


class Writes(StrEnum):
    """How the states of many partitions are written."""

    ONE_BY_ONE = "one by one"
    TOGETHER = "all in one batch, and what is refused one by one"


class FirstRequest(StrEnum):
    """What a new controller sends to brokers first."""

    LEADERS = "who leads"
    METADATA = "which brokers are alive"


class RestartedBroker(StrEnum):
    """What a controller makes of a broker that is registered by another process than before."""

    NOT_SEEN = "nothing, if the list of ids is the same"
    DIED_AND_STARTED = "it died and started"


class PreferredWithoutState(StrEnum):
    """What a controller does if a preferred election names a partition without a state."""

    FAILS = "fails, and the request stays: it ends each later reign at its failover"
    SKIPPED = "goes on with the others"


class DeadTargets(StrEnum):
    """What becomes of a reassignment whose target broker is dead when a controller takes over."""

    DROPPED = "it is dropped, however far it was"
    KEPT = "it waits for the broker"


class UnknownDeletion(StrEnum):
    """What a new controller does if a topic is to be deleted that has no assignment any more."""

    ENDS_DELETIONS = "fails, and deletes nothing in its reign"
    COMPLETED = "deletes what is left of it"


class StrayReplicas(StrEnum):
    """What becomes of a replica that moved away while its broker was down."""

    KEPT = "it stays on the disk"
    DELETED = "it is deleted when the broker is back"


class ReplicaWithoutState(StrEnum):
    """What becomes of a replica that has to stop if its partition has no state.

    KAFKA-2937: the state of a topic that goes was deleted first. KAFKA-6650: it never had one.
    """

    FAILS = "it cannot stop, and its topic is never deleted"
    STOPS = "it stops"


class SettingsChanges(StrEnum):
    """Which notifications of changed settings a broker takes, in which order."""

    AS_LISTED = (
        "as ZooKeeper lists them; not those below the last one, none behind one that cannot be "
        "read, and none that was purged first"
    )
    EVERY_NEW = (
        "every one that it has not taken, in the order of their numbers; where one was purged "
        "first, it reads all settings"
    )


class ClusterIdentity(StrEnum):
    """Whether a cluster has an id (KIP-78)."""

    NONE = "it has none"
    CREATED_ONCE = "the first broker creates it, every broker reads it"


class IsrsOfLeaders(StrEnum):
    """What becomes of an ISR that its leader has changed (KAFKA-1367)."""

    UNSEEN = "the controller does not look, and other brokers do not learn of it"
    TOLD = "the controller sees the leader's notification, and tells every broker"


class QueuedCallbacks(StrEnum):
    """What becomes of changes that are still to be handled when a reign ends."""

    RUN = "they are handled after it, with what the controller remembers (KAFKA-4447)"
    DROPPED = "they are dropped"


class BatchAfterError(StrEnum):
    """What becomes of requests that are collected when an error ends what a controller does."""

    KEPT = "they stay, and everything that is to be sent after them fails (KAFKA-2300)"
    DROPPED = "they are dropped"


class AddedPartitions(StrEnum):
    """Where a tool places the partitions that it adds to a topic (KAFKA-2146)."""

    BY_ID = "it takes the id of a broker for its place among the brokers"
    IN_TURN = "where the earlier ones end"


class DisabledDeletion(StrEnum):
    """What becomes of a request to delete a topic where deletion is switched off (KAFKA-3175)."""

    HIDES = "it stays, and a new controller tells brokers that the topic is deleted"
    REFUSED = "it is removed"


class LeaderBalance(StrEnum):
    """How preferred replicas come to lead again, when it is time to look."""

    BY_A_THREAD = (
        "one after the other, by a thread: a resignation in between waits for it, with the lock "
        "that it needs (KAFKA-4360)"
    )
    AT_ONCE = "all at once"


@dataclass(frozen=True, slots=True)
class ControllerVariant:
    """One version of the controller."""

    name: str
    start_order: StartOrder
    requests: RequestPolicy
    reads: Reads
    epoch_raised: EpochRaised
    fenced: bool
    """Whether every write of a state is a multi with a check of `/controller_epoch`'s version."""
    state_znode: StateZnode
    state_before: StateBefore
    live_brokers: LiveBrokers
    assignment_watch: AssignmentWatch
    dead_at_failover: DeadAtFailover
    last_in_sync: LastInSync
    existing_state: ExistingState
    vanished_topics: VanishedTopics
    writes: Writes
    first_request: FirstRequest
    restarted_broker: RestartedBroker
    preferred_without_state: PreferredWithoutState
    dead_targets: DeadTargets
    unknown_deletion: UnknownDeletion
    stray_replicas: StrayReplicas
    replica_without_state: ReplicaWithoutState
    settings_changes: SettingsChanges
    cluster_identity: ClusterIdentity
    isrs_of_leaders: IsrsOfLeaders
    queued_callbacks: QueuedCallbacks
    batch_after_error: BatchAfterError
    leader_balance: LeaderBalance
    disabled_deletion: DisabledDeletion
    added_partitions: AddedPartitions


KAFKA_08 = ControllerVariant(
    name="kafka_08",
    start_order=StartOrder.ELECT_THEN_REGISTER,
    requests=RequestPolicy.RETRY_UNTIL_CONNECTED,
    reads=Reads.ONE_BY_ONE,
    epoch_raised=EpochRaised.AFTER_ELECTION,
    fenced=False,
    state_znode=StateZnode.PERSISTENT,
    state_before=StateBefore.READ,
    live_brokers=LiveBrokers.READ_AGAIN,
    assignment_watch=AssignmentWatch.AFTER_FAILOVER,
    dead_at_failover=DeadAtFailover.STAY_IN_ISR,
    last_in_sync=LastInSync.KEPT_IF_CLEAN,
    existing_state=ExistingState.FAILS,
    vanished_topics=VanishedTopics.ASSIGNMENT,
    writes=Writes.ONE_BY_ONE,
    first_request=FirstRequest.LEADERS,
    restarted_broker=RestartedBroker.NOT_SEEN,
    preferred_without_state=PreferredWithoutState.FAILS,
    dead_targets=DeadTargets.DROPPED,
    unknown_deletion=UnknownDeletion.ENDS_DELETIONS,
    stray_replicas=StrayReplicas.KEPT,
    replica_without_state=ReplicaWithoutState.FAILS,
    settings_changes=SettingsChanges.AS_LISTED,
    cluster_identity=ClusterIdentity.NONE,
    isrs_of_leaders=IsrsOfLeaders.UNSEEN,
    queued_callbacks=QueuedCallbacks.RUN,
    batch_after_error=BatchAfterError.KEPT,
    leader_balance=LeaderBalance.BY_A_THREAD,
    disabled_deletion=DisabledDeletion.HIDES,
    added_partitions=AddedPartitions.BY_ID,
)

HARDENED = ControllerVariant(
    name="hardened",
    start_order=StartOrder.REGISTER_THEN_ELECT,
    requests=RequestPolicy.FAIL,
    reads=Reads.PIPELINED,
    epoch_raised=EpochRaised.WITH_ELECTION,
    fenced=True,
    state_znode=StateZnode.PERSISTENT,
    state_before=StateBefore.KNOWN,
    live_brokers=LiveBrokers.LISTED,
    assignment_watch=AssignmentWatch.WITH_READ,
    dead_at_failover=DeadAtFailover.LEAVE_ISR,
    last_in_sync=LastInSync.KEPT,
    existing_state=ExistingState.ADOPTED,
    vanished_topics=VanishedTopics.ALL,
    writes=Writes.TOGETHER,
    first_request=FirstRequest.METADATA,
    restarted_broker=RestartedBroker.DIED_AND_STARTED,
    preferred_without_state=PreferredWithoutState.SKIPPED,
    dead_targets=DeadTargets.KEPT,
    unknown_deletion=UnknownDeletion.COMPLETED,
    stray_replicas=StrayReplicas.DELETED,
    replica_without_state=ReplicaWithoutState.STOPS,
    settings_changes=SettingsChanges.EVERY_NEW,
    cluster_identity=ClusterIdentity.CREATED_ONCE,
    isrs_of_leaders=IsrsOfLeaders.TOLD,
    queued_callbacks=QueuedCallbacks.DROPPED,
    batch_after_error=BatchAfterError.DROPPED,
    leader_balance=LeaderBalance.AT_ONCE,
    disabled_deletion=DisabledDeletion.REFUSED,
    added_partitions=AddedPartitions.IN_TURN,
)

DOCUMENTED = replace(KAFKA_08, name="documented", state_znode=StateZnode.EPHEMERAL)

CONTROLLERS = {row.name: row for row in (DOCUMENTED, KAFKA_08, HARDENED)}
"""The versions by the name of the brokers' variant."""
