"""The verbs of a timeline: faults, changes and load, one alphabet for all worlds.

`VERBS` is the table. A scenario's timeline is a list of *actions*; each has a verb, a target,
and either a time (`at`) or a *trigger* (`on`), which is a step of a member: the moment before
it sends a request, or the moment after the response arrived.

Every action counts its effects. A run in which a fault had no effect shows nothing about that
fault; such a run is *unknown*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from watchkeeper.model.actor.operations import Purpose
from watchkeeper.model.trace.kinds import EventKind

Kind = Literal["fault", "change", "load"]
Target = Literal[
    "consumer",
    "broker",
    "producer",
    "administrator",
    "process",
    "server",
    "ensemble",
    "topic",
    "partition",
    "request",
    "znode",
]
Option = Literal[
    "for",
    "as",
    "unknown",
    "lands_after",
    "from",
    "direction",
    "by",
    "each",
    "to",
    "partitions",
    "partitions_per_broker",
    "rate",
    "size",
    "acks",
    "times",
    "data",
]


@dataclass(frozen=True, slots=True)
class Verb:
    """One row of the alphabet."""

    name: str
    kind: Kind
    targets: tuple[Target, ...]
    about: str
    options: tuple[Option, ...] = ()
    required: tuple[Option, ...] = ()
    worlds: tuple[str, ...] = ("sim", "live")
    """Where it can be done."""
    lacking: str = ""
    """Why it cannot be done where it cannot."""


SIM_ALONE = ("sim",)

MEMBERS: tuple[Target, ...] = ("consumer", "broker", "producer", "administrator")
"""The programs with a session of their own."""
PROCESSES: tuple[Target, ...] = (*MEMBERS, "process")
"""What a verb of a whole process names: a member that runs alone, or a process of several."""
_CONNECTED: tuple[Target, ...] = (*MEMBERS, "server")
_WITH_CLOCK: tuple[Target, ...] = ("consumer", "broker", "producer", "process")
"""The administrator reads no clock."""

VERBS = {
    verb.name: verb
    for verb in (
        # members come and go
        Verb("start", "change", PROCESSES, "a process starts", ("as",)),
        Verb("leave", "change", MEMBERS, "a member leaves in good order"),
        Verb(
            "crash",
            "fault",
            (*PROCESSES, "server"),
            "a process is killed; its kernel closes its connections",
        ),
        Verb(
            "crash_host",
            "fault",
            PROCESSES,
            "a machine is lost; its connections end without a close",
        ),
        Verb(
            "restart",
            "change",
            (*PROCESSES, "server"),
            "a process that was killed starts again, under the same id or a new one",
            ("as",),
        ),
        Verb(
            "pause",
            "fault",
            (*PROCESSES, "server"),
            "a process is paused (GC, SIGSTOP)",
            ("for",),
            ("for",),
        ),
        Verb(
            "abandon",
            "fault",
            ("consumer",),
            "a program ends without closing its session, and its process keeps the session "
            "alive; with `for`, the process ends so much later",
            ("for",),
        ),
        # sessions and connections
        Verb(
            "expire",
            "fault",
            MEMBERS,
            "the ensemble ends a session; with `unknown`, the client learns of it so much later",
            ("unknown",),
        ),
        Verb(
            "disconnect",
            "fault",
            MEMBERS,
            "a connection breaks; the client reconnects to the same session",
            ("for",),
        ),
        Verb(
            "lose",
            "fault",
            ("request",),
            "a request is lost with its connection, or only its reply; a lost request may "
            "still take effect later",
            ("lands_after",),
        ),
        Verb(
            "partition",
            "fault",
            _CONNECTED,
            "no message passes between two sides, in both directions or in one",
            ("for", "from", "direction"),
            ("for",),
        ),
        Verb("delay", "fault", MEMBERS, "messages take longer", ("by", "for"), ("by", "for")),
        Verb("skew", "fault", _WITH_CLOCK, "a clock is wrong", ("by",), ("by",)),
        # the ensemble
        Verb(
            "lag",
            "fault",
            ("server",),
            "a follower falls behind",
            ("by", "for"),
            ("by", "for"),
        ),
        Verb(
            "rolling_restart",
            "fault",
            ("ensemble",),
            "every server is restarted, one after the other",
            ("each",),
            ("each",),
        ),
        Verb(
            "quorum_loss",
            "fault",
            ("ensemble",),
            "a majority of the servers is down",
            ("for",),
            ("for",),
        ),
        # brokers and topics
        Verb(
            "move",
            "change",
            ("broker",),
            "a broker moves to another machine and keeps its id",
            ("to",),
            ("to",),
        ),
        Verb(
            "create_topic",
            "change",
            ("topic",),
            "a topic is created",
            ("partitions", "partitions_per_broker"),
        ),
        Verb(
            "add_partitions",
            "change",
            ("topic",),
            "a topic gets more partitions",
            ("partitions", "partitions_per_broker"),
        ),
        Verb("delete_topic", "change", ("topic",), "a topic is deleted"),
        Verb(
            "move_leader",
            "change",
            ("partition",),
            "another broker leads a partition",
            ("to",),
            ("to",),
        ),
        # znodes, by the hand of an operator
        Verb(
            "unregister",
            "fault",
            ("consumer", "broker"),
            "an operator deletes the registration of a member whose session is alive",
        ),
        Verb("delete_znode", "fault", ("znode",), "an operator deletes a znode"),
        Verb(
            "write_znode",
            "fault",
            ("znode",),
            "an operator writes a znode, and creates it where there is none; with `for`, the "
            "former state is written back so much later",
            ("data", "for"),
            ("data",),
        ),
        # load
        Verb(
            "produce",
            "load",
            ("topic",),
            "messages are written, at a rate",
            ("rate", "size", "acks", "for", "from"),
            ("rate",),
        ),
        # storage
        Verb(
            "disk_slow",
            "fault",
            ("broker",),
            "a disk is slower by a factor",
            ("times", "for"),
            ("times", "for"),
            worlds=SIM_ALONE,
        ),
        Verb(
            "disk_full",
            "fault",
            ("broker",),
            "a disk is full",
            ("for",),
            ("for",),
            worlds=SIM_ALONE,
        ),
        Verb(
            "torn_write",
            "fault",
            ("broker",),
            "a write reaches the disk in part",
            worlds=(),
            lacking="crash_host already tears the current write of a disk",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Trigger:
    """A step of a member: its nth request with this purpose."""

    node: str
    purpose: Purpose
    nth: int = 1
    when: Literal["before", "after_reply"] = "after_reply"


STEPS_OF_TASKS: dict[str, tuple[str, Purpose]] = {
    EventKind.LOG_COPIED: ("before", "compact"),
    EventKind.LOG_COMPACTED: ("after_reply", "compact"),
}
"""What a task of a broker writes into the trace -> the moment and the purpose of its step."""


@dataclass(frozen=True, slots=True)
class Action:
    """One entry of a timeline."""

    number: int
    """Its place in the timeline, from 0."""
    verb: Verb
    target: str
    at_us: int | None = None
    trigger: Trigger | None = None
    options: tuple[tuple[Option, Any], ...] = ()

    def option(self, name: Option, default: Any = None) -> Any:
        """The value of an option."""
        return dict(self.options).get(name, default)

    @property
    def for_us(self) -> int:
        """How long it lasts; 0 for an action of one moment."""
        for name in ("for", "unknown"):
            lasts: int | None = dict(self.options).get(name)
            if lasts is not None:
                return lasts
        return 0

    @property
    def lasts(self) -> bool:
        """Whether it lasts for a while and is then undone."""
        return self.for_us > 0 or self.verb.name == "rolling_restart"

    @property
    def is_fault(self) -> bool:
        """Whether it is a fault, as opposed to an ordinary change."""
        return self.verb.kind == "fault"

    @property
    def label(self) -> str:
        """The action in two words."""
        return f"{self.verb.name} {self.target}"


@dataclass(slots=True)
class FaultEffect:
    """The effect of an action in a run."""

    action: Action
    at_us: int | None = None
    """When it took place; None if it never did."""
    until_us: int | None = None
    target: str = ""
    """The process that its role meant; empty for an action that names no role."""
    missed: str = ""
    """Why it did nothing: it found no target, or no connection; empty otherwise."""
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, what: str, number: int = 1) -> None:
        """Count something that it did."""
        self.counts[what] = self.counts.get(what, 0) + number

    @property
    def label(self) -> str:
        """The action, with the process that its role meant."""
        return f"{self.action.label} ({self.target})" if self.target else self.action.label

    @property
    def is_real(self) -> bool:
        """Whether it had any effect."""
        return any(self.counts.values())
