"""The versions of replication in a broker, as one table.

Kafka 0.8.2.2 as shipped, and `hardened`. The design pages describe no program: `documented` has
the first. The code reads single answers and never compares a variant's name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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


class LongerLog(StrEnum):
    """What a follower does whose log is longer than its leader's (KAFKA-3924)."""

    HALTS = "cuts it where unclean elections are allowed, else ends its process"
    CUT = "cuts it"


class ChangedIsr(StrEnum):
    """Whom a leader lets know that it has changed an ISR (KAFKA-1367)."""

    WRITTEN = "no process; it is in the state"
    ANNOUNCED = "the controller, by a notification"


class SettingsOfNewTopic(StrEnum):
    """What a broker does with settings of a topic that it creates for a client (KAFKA-7082)."""

    WRITTEN = "writes none over whatever is there, and then creates the topic"
    LEFT = "leaves them as they are"


class OffsetsCache(StrEnum):
    """What a coordinator answers from: what it knows of the offsets of groups."""

    LOADED = (
        "what it read when it began to lead, if the high watermark was above the beginning, and "
        "each commit that it has acknowledged since"
    )
    FOLLOWS_LOG = (
        "the log below the high watermark, which has to reach first what was there when it began "
        "to lead"
    )


class OffsetFetches(StrEnum):
    """When a coordinator answers a fetch of offsets."""

    AT_ONCE = "at once, though another broker may lead"
    CONFIRMED = "once each member of the ISR has fetched again, so that it is still the leader"


class OffsetsTopic(StrEnum):
    """With how many replicas a broker creates the topic of offsets (KAFKA-3959)."""

    AS_MANY_AS_LIVE = "with no more than there are live brokers"
    AS_CONFIGURED = "with as many as configured, once there are so many live brokers"


class Compacts(StrEnum):
    """What a cleaner compacts."""

    BEFORE_ACTIVE = "every segment but the active one, with what may be cut again"
    COMMITTED = "segments below the high watermark"


class Expiry(StrEnum):
    """Which commits a coordinator lets expire, and how it answers of them."""

    CACHED = (
        "those that are old in its cache, also while it loads; until their tombstones are "
        "appended it answers with them"
    )
    LATEST = (
        "those that no later commit in the log replaces; it answers with none that is old, "
        "whatever the log has"
    )


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
    longer_log: LongerLog
    changed_isr: ChangedIsr
    settings_of_new_topic: SettingsOfNewTopic
    offsets_cache: OffsetsCache
    offset_fetches: OffsetFetches
    offsets_topic: OffsetsTopic
    compacts: Compacts
    expiry: Expiry


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
    longer_log=LongerLog.HALTS,
    changed_isr=ChangedIsr.WRITTEN,
    settings_of_new_topic=SettingsOfNewTopic.WRITTEN,
    offsets_cache=OffsetsCache.LOADED,
    offset_fetches=OffsetFetches.AT_ONCE,
    offsets_topic=OffsetsTopic.AS_MANY_AS_LIVE,
    compacts=Compacts.BEFORE_ACTIVE,
    expiry=Expiry.CACHED,
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
    longer_log=LongerLog.CUT,
    changed_isr=ChangedIsr.ANNOUNCED,
    settings_of_new_topic=SettingsOfNewTopic.LEFT,
    offsets_cache=OffsetsCache.FOLLOWS_LOG,
    offset_fetches=OffsetFetches.CONFIRMED,
    offsets_topic=OffsetsTopic.AS_CONFIGURED,
    compacts=Compacts.COMMITTED,
    expiry=Expiry.LATEST,
)

DOCUMENTED = replace(KAFKA_08, name="documented")

REPLICATIONS = {row.name: row for row in (DOCUMENTED, KAFKA_08, HARDENED)}
"""The versions by the name of the brokers' variant."""
