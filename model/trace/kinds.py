"""The kinds of trace events: their names and what each of them means."""

from __future__ import annotations

from enum import StrEnum


class EventKind(StrEnum):
    """The kind of an event that this project writes into a trace.

    A program of a user may emit kinds of its own: the column of a trace is a `str`.
    """

    # programs
    STARTED = "started"
    ENDED = "ended"
    ABANDONED = "session abandoned"
    REQUEST = "request"
    RESPONSE = "response"
    TURN_FAILED = "turn failed"
    NOTIFIED = "notified"
    WOKEN = "woken"
    WAITING = "waiting"
    SLEEPING = "sleeping"

    # what programs emit about themselves
    REBALANCE_STARTED = "rebalance started"
    ASSIGNED = "assigned"
    CLAIM_CONFLICT = "claim conflict"
    REBALANCE_COMPLETED = "rebalance completed"
    FREED_CLAIMS_ACQUIRED = "freed claims acquired"
    REBALANCE_FAILED = "rebalance failed"
    REBALANCE_ABANDONED = "rebalance abandoned"
    ID_IN_USE = "id in use"
    TOPIC_NOT_DELETED = "topic not deleted"
    COMMIT_REFUSED = "commit refused"
    OFFSET_COMMIT_SENT = "offset commit sent"
    OFFSET_COMMIT_ANSWERED = "offset commit answered"
    OFFSET_FETCH_SENT = "offset fetch sent"
    OFFSET_FETCH_ANSWERED = "offset fetch answered"
    CONTROLLER_ELECTED = "controller elected"
    FAILOVER_COMPLETED = "failover completed"
    CONTROLLER_RESIGNED = "controller resigned"
    TRANSITION_FAILED = "transition failed"
    UNCLEAN_ELECTION = "unclean election"
    CALLBACK_FAILED = "callback failed"
    CALLBACK_LATE = "callback late"
    CONTROLLER_BLOCKED = "controller blocked"
    CONTROL_SENT = "control request sent"
    CONTROL_TAKEN = "control request taken"
    CONTROL_REFUSED = "control request refused"
    REQUEST_UNREADABLE = "request unreadable"
    REASSIGNING = "reassigning"
    REASSIGNED = "reassigned"
    TOPIC_DELETED = "topic deleted"
    DELETIONS_ENDED = "deletions ended"
    DELETION_REFUSED = "deletion refused"
    SHUT_DOWN = "shut down"
    CLUSTER_ID = "cluster id"

    # replicas of partitions
    BECAME_LEADER = "became leader"
    BECAME_FOLLOWER = "became follower"
    LEADER_UNKNOWN = "leader unknown"
    REPLICA_OPENED = "replica opened"
    REPLICA_DELETED = "replica deleted"
    APPENDED = "appended"
    TRUNCATED = "truncated"
    FOLLOWER_HALTED = "follower halted"
    COMMITTED = "committed"
    ISR_CHANGED = "isr changed"
    ISR_REFUSED = "isr refused"
    METADATA_UPDATED = "metadata updated"
    SETTINGS_APPLIED = "settings applied"
    TOPIC_AUTO_CREATED = "topic auto-created"
    SETTINGS_REFUSED = "settings refused"
    OFFSETS_LOADED = "offsets loaded"
    OFFSETS_NOT_LOADED = "offsets not loaded"
    OFFSETS_SPREAD_DIFFERS = "offsets spread differs"
    OFFSETS_EXPIRED = "offsets expired"
    LOG_COPIED = "log copied"
    LOG_COMPACTED = "log compacted"
    ACKNOWLEDGED = "acknowledged"
    NOT_ACKNOWLEDGED = "not acknowledged"

    # tests in virtual time
    ENTERED = "entered"
    LEFT = "left"

    # connections and sessions
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    SESSION_OPENED = "session opened"
    SESSION_MOVED = "session moved"
    SESSION_EXPIRED = "session expired"
    SESSION_CLOSED = "session closed"

    # the service
    APPLIED = "applied"
    REFUSED = "refused"
    WATCH_FIRED = "watch fired"
    LEADER_ELECTED = "leader elected"
    LEADER_LOST = "leader lost"
    SERVER_STATE = "server state"

    # the data plane
    HOSTING = "hosting"
    TOPIC_LOAD = "topic load"
    FETCHING = "fetching"
    FETCHED = "fetched"
    FETCH_FAILED = "fetch failed"

    # messages, one by one: their producer and numbers, and the offsets at which they lie
    SENT = "sent"
    SEND_FAILED = "send failed"
    STORED = "stored"
    LOG_OPENED = "log opened"
    REQUEST_REFUSED = "request refused"
    SEGMENT_DELETED = "segment deleted"
    BROKER_FAILED = "broker failed"
    HOST_METRICS = "host metrics"
    HOST_LOSS_EMULATED = "host loss emulated"
    CONSUMED = "consumed"
    HANDLED = "handled"
    NOT_MIRRORED = "not mirrored"
    STREAM_FAILED = "stream failed"
    STREAM_TIMED_OUT = "stream timed out"
    OFFSET_RESET = "offset reset"

    # the timeline
    FAULT = "fault"
    FAULT_ENDED = "fault ended"
    CHANGE = "change"
    LOAD = "load"
    LOAD_ENDED = "load ended"
    RUN_ENDED = "run ended"


QUIET_KINDS = frozenset(
    {
        EventKind.OFFSET_COMMIT_SENT,
        EventKind.OFFSET_COMMIT_ANSWERED,
        EventKind.COMMIT_REFUSED,
    }
)
"""What a program emits about commits, which disturb no rest."""

MEANINGS: dict[EventKind, str] = {
    EventKind.STARTED: (
        "a process starts, or a member in the process that it shares, which `process` names"
    ),
    EventKind.ENDED: "a program is over: it left, it failed, or its process was killed",
    EventKind.ABANDONED: (
        "a program is over, and its process keeps its session alive: no program acts on its "
        "registration and its claims"
    ),
    EventKind.REQUEST: "a program sends an operation to ZooKeeper",
    EventKind.RESPONSE: "the result of an operation arrives, or the error in its place",
    EventKind.TURN_FAILED: "an error ended a turn; the program's state is what it was before",
    EventKind.NOTIFIED: "a notification has reached the inbox",
    EventKind.WOKEN: "a program that was waiting takes a notification",
    EventKind.WAITING: "a program has nothing in its inbox and nothing to do",
    EventKind.SLEEPING: "a program pauses, as it decided itself",
    EventKind.REBALANCE_STARTED: "an attempt at a rebalance starts",
    EventKind.ASSIGNED: (
        "a member has computed its share: its partitions by topic, and hashes of what it saw"
    ),
    EventKind.CLAIM_CONFLICT: "another member owns a partition that this member claims",
    EventKind.REBALANCE_COMPLETED: "an attempt has succeeded",
    EventKind.FREED_CLAIMS_ACQUIRED: (
        "a member has claimed partitions that others released after its rebalance"
    ),
    EventKind.REBALANCE_FAILED: "an attempt has failed",
    EventKind.REBALANCE_ABANDONED: (
        "no attempt is left; the member waits for the next notification"
    ),
    EventKind.ID_IN_USE: "a registration with this id exists already",
    EventKind.TOPIC_NOT_DELETED: "a topic could not be deleted from the registry",
    EventKind.COMMIT_REFUSED: "an offset commit failed",
    EventKind.OFFSET_COMMIT_SENT: "a member sends offsets to the coordinator of its group",
    EventKind.OFFSET_COMMIT_ANSWERED: (
        "the coordinator has answered the commit of a member: `accepted` are the offsets that it "
        "has committed, `errors` the names of its errors for others"
    ),
    EventKind.OFFSET_FETCH_SENT: "a member wants the offsets of partitions from the coordinator",
    EventKind.OFFSET_FETCH_ANSWERED: (
        "the coordinator has answered the fetch of a member: `offsets` are those that it has, -1 "
        "for none, `errors` the names of its errors for others"
    ),
    EventKind.CONTROLLER_ELECTED: (
        "a broker has become the controller; `raised` says whether it raised the epoch"
    ),
    EventKind.FAILOVER_COMPLETED: "a new controller has read the cluster and repaired it",
    EventKind.CONTROLLER_RESIGNED: "a broker ceases to be the controller",
    EventKind.TRANSITION_FAILED: (
        "a controller could not bring a partition or a replica into a state"
    ),
    EventKind.UNCLEAN_ELECTION: "a controller has elected a leader that is not in the ISR",
    EventKind.CALLBACK_FAILED: (
        "an error has ended what a controller of 0.8.2.2 does about a change, or a part of it"
    ),
    EventKind.CALLBACK_LATE: (
        "a broker of 0.8.2.2 handles a change as the controller, though its reign is over"
    ),
    EventKind.CONTROLLER_BLOCKED: (
        "a broker of 0.8.2.2 waits for its own thread that lets preferred replicas lead, and "
        "holds the lock that the thread waits for"
    ),
    EventKind.CONTROL_SENT: "a controller hands a request to the channel of a broker",
    EventKind.CONTROL_TAKEN: (
        "a broker begins to carry out a request of a controller, of an epoch that is not too old"
    ),
    EventKind.CONTROL_REFUSED: (
        "a broker has answered a controller's request with an error; `partitions` are those "
        "that it does not accept, with the code"
    ),
    EventKind.REQUEST_UNREADABLE: (
        "a controller cannot read what an administrator has requested: 0.8.2.2 leaves it, "
        "`hardened` deletes it"
    ),
    EventKind.REASSIGNING: "a partition begins to move to other brokers",
    EventKind.REASSIGNED: "a partition has moved: its replicas are the ones that were requested",
    EventKind.TOPIC_DELETED: "a controller has deleted a topic, its replicas and its znodes",
    EventKind.DELETIONS_ENDED: (
        "a controller of 0.8.2.2 has met a deletion that it cannot complete; it deletes no topic "
        "in this reign"
    ),
    EventKind.DELETION_REFUSED: (
        "a controller has removed the request to delete a topic, since deletion is switched off"
    ),
    EventKind.SHUT_DOWN: (
        "a broker that leaves has handed over what it led, or has given up; `led` is what was "
        "left"
    ),
    EventKind.CLUSTER_ID: "a broker that starts knows the id of its cluster",
    EventKind.BECAME_LEADER: (
        "a broker leads a partition from now on, as a controller says; `min_in_sync` is the "
        "broker's `min.insync.replicas` where it is greater than 1"
    ),
    EventKind.BECAME_FOLLOWER: (
        "a broker follows the leader of a partition from now on; -1: there is none"
    ),
    EventKind.LEADER_UNKNOWN: (
        "a broker has to follow a leader that is dead, or whose address it is not given"
    ),
    EventKind.REPLICA_OPENED: "a broker that starts has found the log of a replica on its disk",
    EventKind.REPLICA_DELETED: "a broker has deleted a replica with its log",
    EventKind.APPENDED: (
        "a broker has appended records to a replica, from offset `start` on; each is the epoch "
        "of the leader that took it, and its number"
    ),
    EventKind.TRUNCATED: "a follower has cut its log, which ends at `end` now",
    EventKind.FOLLOWER_HALTED: (
        "a broker of 0.8.2.2 ends its process: the log of a replica is longer than its leader's, "
        "and unclean elections are forbidden"
    ),
    EventKind.COMMITTED: "the high watermark of a leader has risen",
    EventKind.ISR_CHANGED: "a leader has written another ISR",
    EventKind.ISR_REFUSED: "a leader could not write an ISR: the state has another version",
    EventKind.METADATA_UPDATED: (
        "a broker has learned who leads partitions, or their ISRs; each is a topic, a partition, "
        "and the leader or the ISR; a leader of -2 if the topic is being deleted"
    ),
    EventKind.TOPIC_AUTO_CREATED: (
        "a broker created a topic that a client wants, or could not, with the reason"
    ),
    EventKind.SETTINGS_APPLIED: "a broker has read the settings of a topic, and follows them",
    EventKind.SETTINGS_REFUSED: (
        "a broker cannot read the settings of a topic, or the notification that they have changed"
    ),
    EventKind.OFFSETS_LOADED: "a coordinator has read the offsets of groups from a partition "
    "of their topic",
    EventKind.OFFSETS_NOT_LOADED: "a coordinator cannot read the offsets of groups: the "
    "partition is damaged, and its groups wait",
    EventKind.OFFSETS_SPREAD_DIFFERS: "the topic of offsets has another number of partitions "
    "than a coordinator is configured with",
    EventKind.OFFSETS_EXPIRED: "a coordinator has appended the tombstones of commits of groups "
    "that are too old",
    EventKind.LOG_COPIED: "a cleaner has copied what it keeps of some segments of a log, and is "
    "about to replace them",
    EventKind.LOG_COMPACTED: "a cleaner has replaced segments of a log: so many messages "
    "and bytes are gone",
    EventKind.ACKNOWLEDGED: (
        "a leader has confirmed messages to a producer, from offset `start` on; `acks` -1: every "
        "member of the ISR has them"
    ),
    EventKind.NOT_ACKNOWLEDGED: "a producer gave up messages; they may be stored or not",
    EventKind.ENTERED: "a thread enters a section of a test in virtual time",
    EventKind.LEFT: "a thread leaves a section of a test in virtual time",
    EventKind.CONNECTED: "a client has a connection",
    EventKind.SUSPENDED: "a client has lost its connection",
    EventKind.EXPIRED: "a client has learned that its session is dead",
    EventKind.SESSION_OPENED: "the ensemble opened a session",
    EventKind.SESSION_MOVED: "a session continues over another connection",
    EventKind.SESSION_EXPIRED: "the ensemble ended a session because its client was silent",
    EventKind.SESSION_CLOSED: "the ensemble ended a session because its client closed it",
    EventKind.APPLIED: "a write took effect",
    EventKind.REFUSED: "a write took a zxid and failed",
    EventKind.WATCH_FIRED: "a watch of this node fired",
    EventKind.LEADER_ELECTED: "a server was elected leader",
    EventKind.LEADER_LOST: "the ensemble has no leader",
    EventKind.SERVER_STATE: "the process of a ZooKeeper server changed its state",
    EventKind.HOSTING: "a broker begins or ceases to serve a partition",
    EventKind.TOPIC_LOAD: "messages are written to a topic from now on, at a rate",
    EventKind.FETCHING: "a member begins or ceases to fetch a partition",
    EventKind.FETCHED: "messages were delivered to a member",
    EventKind.FETCH_FAILED: "a broker could not be reached",
    EventKind.SENT: "a producer reported to its application what became of messages",
    EventKind.SEND_FAILED: "a producer gave up messages that it had accepted",
    EventKind.STORED: "a broker appended messages to a log",
    EventKind.LOG_OPENED: (
        "a broker that starts has opened a log, or has deleted one with its topic; the row has "
        "the offset of its end"
    ),
    EventKind.REQUEST_REFUSED: (
        "a broker closed a connection because of a request that it cannot serve"
    ),
    EventKind.SEGMENT_DELETED: "a broker deleted the oldest segment of a log",
    EventKind.BROKER_FAILED: "a broker ends because of its disk, or of what is on it",
    EventKind.HOST_METRICS: (
        "bytes on a broker's host: not flushed now, at most since the last time, not written, "
        "in the pagecache, found there by reads so far, not found; live: of the broker's "
        "files, and where the kernel does not say what is in memory, read so far and no more"
    ),
    EventKind.HOST_LOSS_EMULATED: (
        "live: a broker's files were cut back to their last fsync and dropped from the "
        "pagecache, which stands for the loss of its host; no host was lost"
    ),
    EventKind.CONSUMED: "messages were handed to the application of a member",
    EventKind.HANDLED: "an application is done with messages that were handed to it",
    EventKind.NOT_MIRRORED: (
        "a mirror could not send a message that was handed to it, and tries again"
    ),
    EventKind.STREAM_FAILED: "the next message could not be handed to an application",
    EventKind.STREAM_TIMED_OUT: (
        "no message was handed to an application within consumer.timeout.ms; it reads on"
    ),
    EventKind.OFFSET_RESET: "a member continues at the start or the end of a log",
    EventKind.FAULT: (
        "a fault of the timeline takes place; `role` is the role by which it names its target, "
        "`members` are those of the process that it strikes, `missed` the reason why it found "
        "no target and did nothing"
    ),
    EventKind.FAULT_ENDED: "the effect of a fault is undone",
    EventKind.CHANGE: "an ordinary change of the timeline takes place",
    EventKind.LOAD: "the timeline starts to write messages",
    EventKind.LOAD_ENDED: "the timeline stops writing messages",
    EventKind.RUN_ENDED: "the run is over",
}
"""What each kind of event means, in a sentence for the reference of the trace."""
