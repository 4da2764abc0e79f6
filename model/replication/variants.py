"""The versions of replication in a broker, as one table.

Kafka 0.8.2.2 as shipped, and `hardened`. The code reads single answers and never compares a
variant's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from watchkeeper.model.replication.truncation import HIGH_WATERMARK, KIP_320, TruncationRule


class RefusedIsr(StrEnum):
    """What a leader does when its write of the ISR is refused."""

    KEEPS_VERSION = "keeps the version that it remembers, and is refused again"
    READS_AGAIN = "reads the state again, and leads on only if the state says so"


class FirstRequest(StrEnum):
    """What a process makes of the first request to lead or to follow."""

    TAKEN = "it takes it, though it may be an old one"
    CHECKED = "it reads the state, and takes the request if the epoch is the one there"


class UnknownLeader(StrEnum):
    """What a replica does when it has to follow a broker whose address it is not given."""

    KEEPS_OLD = "goes on as before"
    FOLLOWS_NOTHING = "neither leads nor follows"


class WaitingProducers(StrEnum):
    """What becomes of producers that wait for replicas when their leader is deposed."""

    WAIT = "wait on"
    ANSWERED = "are answered that it does not lead"


class SteadyLeader(StrEnum):
    """What a leader knows of its followers after a request to lead on."""

    FORGETS = "nothing until they fetch again"
    REMEMBERS = "what it knew"


class StaleMetadata(StrEnum):
    """What a broker forgets of the leaders that it knows.

    It may have missed that a topic was deleted, while it had no session or a controller ended.
    """

    KEPT = "nothing"
    FORGOTTEN = "everything, at its registration and with the first word of a new reign"


class SlowFollower(StrEnum):
    """Which follower that still fetches leaves the ISR."""

    MANY_MESSAGES = "one that lacks more than `replica.lag.max.messages` messages"
    LONG_BEHIND = "one that was at the end of the log too long ago"


class Awaited(StrEnum):
    """Which followers need to have a message before a leader commits it."""

    IN_SYNC = "those in the ISR"
    CAUGHT_UP = "those in the ISR, and those that were at the end of the log lately (KAFKA-4485)"


@dataclass(frozen=True, slots=True)
class ReplicationVariant:
    """One version of replication."""

    name: str
    truncation: TruncationRule
    refused_isr: RefusedIsr
    first_request: FirstRequest
    unknown_leader: UnknownLeader
    waiting_producers: WaitingProducers
    steady_leader: SteadyLeader
    slow_follower: SlowFollower
    awaited: Awaited
    stale_metadata: StaleMetadata


KAFKA_08 = ReplicationVariant(
    name="kafka_08",
    truncation=HIGH_WATERMARK,
    refused_isr=RefusedIsr.KEEPS_VERSION,
    first_request=FirstRequest.TAKEN,
    unknown_leader=UnknownLeader.KEEPS_OLD,
    waiting_producers=WaitingProducers.WAIT,
    steady_leader=SteadyLeader.FORGETS,
    slow_follower=SlowFollower.MANY_MESSAGES,
    awaited=Awaited.IN_SYNC,
    stale_metadata=StaleMetadata.KEPT,
)

HARDENED = ReplicationVariant(
    name="hardened",
    truncation=KIP_320,
    refused_isr=RefusedIsr.READS_AGAIN,
    first_request=FirstRequest.CHECKED,
    unknown_leader=UnknownLeader.FOLLOWS_NOTHING,
    waiting_producers=WaitingProducers.ANSWERED,
    steady_leader=SteadyLeader.REMEMBERS,
    slow_follower=SlowFollower.LONG_BEHIND,
    awaited=Awaited.CAUGHT_UP,
    stale_metadata=StaleMetadata.FORGOTTEN,
)

REPLICATIONS = {row.name: row for row in (KAFKA_08, HARDENED)}
"""The versions by the name of the brokers' variant."""
