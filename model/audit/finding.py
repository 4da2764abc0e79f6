"""The findings of an audit: their kinds, and what each kind means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class FindingKind(StrEnum):
    """The kind of a finding, in the words of the report and of its JSON."""

    NO_OWNER = "no owner"
    DEAD_CLAIM = "dead claim"
    DOUBLE_CLAIM = "double claim"
    STRAY_CLAIM = "stray claim"
    IDLE_MEMBER = "idle member"
    IMBALANCE = "imbalance"
    UNSETTLED = "unsettled"
    NO_PLAN = "no plan"
    NO_BROKER = "no broker"
    BAD_PAYLOAD = "bad payload"
    PERMANENT = "permanent registration"
    SHORT_PATIENCE = "short patience"
    NO_CONTROLLER = "no controller"
    CONTROLLER_EPOCH = "controller epoch"
    NO_LEADER = "no leader"
    DEAD_LEADER = "dead leader"
    ISR = "isr"
    UNDER_REPLICATED = "under-replicated"
    NO_STATE = "no state"
    ORPHAN = "orphan"
    REASSIGNMENT = "reassignment"
    ELECTION = "election"
    STUCK_DELETION = "stuck deletion"
    LEADER_IMBALANCE = "leader imbalance"
    STOPPED = "stopped"
    STALLED = "stalled"
    FALLING_BEHIND = "falling behind"
    SET_BACK = "set back"


KINDS = {
    FindingKind.NO_OWNER: "a partition that a member wants has no claim",
    FindingKind.DEAD_CLAIM: (
        "a claim whose session is not that of the member it names, or names no member"
    ),
    FindingKind.DOUBLE_CLAIM: "one partition is claimed under several names",
    FindingKind.STRAY_CLAIM: (
        "a claim on what is not there, or by a member that does not want it"
    ),
    FindingKind.IDLE_MEMBER: (
        "a member owns nothing, though a rebalance would give it something"
    ),
    FindingKind.IMBALANCE: ("the partitions of a topic are all owned, but shared out unevenly"),
    FindingKind.UNSETTLED: "owners are not those that a rebalance would make",
    FindingKind.NO_PLAN: "the assignor refuses the subscriptions as they are",
    FindingKind.NO_BROKER: "the broker of a partition is not registered",
    FindingKind.BAD_PAYLOAD: (
        "a znode holds what its place does not ask for, or fields that contradict its version"
    ),
    FindingKind.PERMANENT: "a registration that does not go with its session",
    FindingKind.SHORT_PATIENCE: "the attempts of a rebalance are over before a session ends",
    FindingKind.NO_CONTROLLER: "no broker is the controller, or one that is not registered",
    FindingKind.CONTROLLER_EPOCH: (
        "a state has a later controller epoch than /controller_epoch, or there is none"
    ),
    FindingKind.NO_LEADER: "a partition has no leader",
    FindingKind.DEAD_LEADER: "the leader of a partition is not registered",
    FindingKind.ISR: (
        "an ISR is empty, lacks the leader, or has a broker that does not replicate the partition"
    ),
    FindingKind.UNDER_REPLICATED: "replicas of a partition are not in its ISR",
    FindingKind.NO_STATE: "a partition is assigned, and has no state",
    FindingKind.ORPHAN: "a state without an assignment, or settings without a topic",
    FindingKind.REASSIGNMENT: "partitions are being moved, or the request cannot be carried out",
    FindingKind.ELECTION: "an election of preferred replicas is not carried out yet",
    FindingKind.STUCK_DELETION: "the deletion of a topic was requested and makes no progress",
    FindingKind.LEADER_IMBALANCE: (
        "a broker does not lead more than 10 % of the partitions that it should lead"
    ),
    FindingKind.STOPPED: "messages wait, and no offset of the partition is written any more",
    FindingKind.STALLED: "messages wait, and the same offset of the partition is written again",
    FindingKind.FALLING_BEHIND: "a group commits, and more messages wait at each audit",
    FindingKind.SET_BACK: "a committed offset has become lower",
}
"""Kind of finding -> its meaning."""


class Severity(IntEnum):
    """How much a kind of finding matters, the least first."""

    NOTICE = 1
    """Work that is under way, or that could be shared out better."""
    WARNING = 2
    """Nothing is lost now; another failure, or time, may change that."""
    CRITICAL = 3
    """Messages are not read, not taken, or read twice, or no process can change that."""

    @property
    def word(self) -> str:
        """The severity on a command line, in JSON and in metrics."""
        return self.name.lower()


SEVERITIES = {
    FindingKind.NO_OWNER: Severity.CRITICAL,
    FindingKind.DEAD_CLAIM: Severity.CRITICAL,
    FindingKind.DOUBLE_CLAIM: Severity.CRITICAL,
    FindingKind.STRAY_CLAIM: Severity.WARNING,
    FindingKind.IDLE_MEMBER: Severity.NOTICE,
    FindingKind.IMBALANCE: Severity.NOTICE,
    FindingKind.UNSETTLED: Severity.NOTICE,
    FindingKind.NO_PLAN: Severity.CRITICAL,
    FindingKind.NO_BROKER: Severity.CRITICAL,
    FindingKind.BAD_PAYLOAD: Severity.WARNING,
    FindingKind.PERMANENT: Severity.WARNING,
    FindingKind.SHORT_PATIENCE: Severity.WARNING,
    FindingKind.NO_CONTROLLER: Severity.CRITICAL,
    FindingKind.CONTROLLER_EPOCH: Severity.WARNING,
    FindingKind.NO_LEADER: Severity.CRITICAL,
    FindingKind.DEAD_LEADER: Severity.CRITICAL,
    FindingKind.ISR: Severity.CRITICAL,
    FindingKind.UNDER_REPLICATED: Severity.WARNING,
    FindingKind.NO_STATE: Severity.WARNING,
    FindingKind.ORPHAN: Severity.WARNING,
    FindingKind.REASSIGNMENT: Severity.NOTICE,
    FindingKind.ELECTION: Severity.NOTICE,
    FindingKind.STUCK_DELETION: Severity.WARNING,
    FindingKind.LEADER_IMBALANCE: Severity.NOTICE,
    FindingKind.STOPPED: Severity.CRITICAL,
    FindingKind.STALLED: Severity.CRITICAL,
    FindingKind.FALLING_BEHIND: Severity.WARNING,
    FindingKind.SET_BACK: Severity.WARNING,
}
"""Kind of finding -> how much it matters."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is amiss."""

    kind: FindingKind
    message: str
    path: str = ""
    partition: str = ""
    member: str = ""
    is_sure: bool = False
    """Whether it holds whatever else could not be read."""
