"""The states of partitions and of replicas, as a controller keeps them in memory.

None of them is in the registry. Kafka 0.8.2.2: PartitionStateMachine, ReplicaStateMachine.
"""

from __future__ import annotations

from enum import StrEnum


class PartitionStatus(StrEnum):
    """The state of a partition."""

    NON_EXISTENT = "non-existent"
    NEW = "new"
    """It has replicas, and no leader was ever elected."""
    ONLINE = "online"
    """It has a leader."""
    OFFLINE = "offline"
    """Its leader is dead."""


class ReplicaStatus(StrEnum):
    """The state of a replica."""

    NON_EXISTENT = "non-existent"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"
    """Its broker is dead, and it was removed from the ISR."""
    DELETION_STARTED = "deletion started"
    """Its broker has a request to delete it."""
    DELETION_SUCCESSFUL = "deletion successful"
    """Its broker has deleted it."""
    DELETION_INELIGIBLE = "deletion ineligible"
    """Its broker was dead at the failover, or during the deletion: it cannot be deleted now."""
