"""What can be made to happen in a run: one alphabet for all worlds.

`VERBS` is the table of it. A scenario's timeline is a list of *actions*; each has a verb,
a target, and either a time (`at`) or a *trigger* (`on`), which is a step of a member: the
moment before it asks for something, or the moment after the answer has come.

Every action counts what it did. A fault that did nothing is worse than none, since the
run then seems to show what it never tried; such a run is *unknown*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from model.operations import Purpose

Kind = Literal["fault", "change", "load"]
Target = Literal[
    "consumer", "broker", "producer", "server", "ensemble", "topic", "partition", "request"
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
    "times",
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

MEMBERS: tuple[Target, ...] = ("consumer", "broker", "producer")
_PROCESS: tuple[Target, ...] = ("consumer", "broker", "producer", "server")

VERBS = {
    verb.name: verb
    for verb in (
        # members come and go
        Verb("start", "change", MEMBERS, "a process starts", ("as",)),
        Verb("leave", "change", MEMBERS, "a member leaves in good order"),
        Verb("crash", "fault", _PROCESS, "a process is killed; its kernel closes what it held"),
        Verb(
            "crash_host",
            "fault",
            MEMBERS,
            "a machine is lost; nobody is told that its connections are gone",
        ),
        Verb(
            "restart",
            "change",
            _PROCESS,
            "a process that was killed starts again, under the same id or a new one",
            ("as",),
        ),
        Verb(
            "pause", "fault", _PROCESS, "a process stands still (GC, SIGSTOP)", ("for",), ("for",)
        ),
        # sessions and connections
        Verb(
            "expire",
            "fault",
            MEMBERS,
            "the ensemble ends a session; with `unknown`, the client is not told for so long",
            ("unknown",),
        ),
        Verb(
            "disconnect",
            "fault",
            MEMBERS,
            "a connection breaks; the client comes back to the same session",
            ("for",),
        ),
        Verb(
            "lose",
            "fault",
            ("request",),
            "a request is lost with its connection, or only its reply; a lost request may "
            "still land later",
            ("lands_after",),
        ),
        Verb(
            "partition",
            "fault",
            _PROCESS,
            "nothing passes between two sides, or in one direction only",
            ("for", "from", "direction"),
            ("for",),
        ),
        Verb("delay", "fault", MEMBERS, "everything takes longer", ("by", "for"), ("by", "for")),
        Verb("skew", "fault", MEMBERS, "a clock is wrong", ("by",), ("by",)),
        # the ensemble
        Verb(
            "lag",
            "fault",
            ("server",),
            "a follower falls behind",
            ("by", "for"),
            ("by", "for"),
            worlds=SIM_ALONE,
        ),
        Verb(
            "rolling_restart",
            "fault",
            ("ensemble",),
            "every server is restarted, one after the other",
            ("each",),
            ("each",),
        ),
        Verb("quorum_loss", "fault", ("ensemble",), "most servers are down", ("for",), ("for",)),
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
            "a topic comes into being",
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
        # load
        Verb(
            "produce",
            "load",
            ("topic",),
            "messages are written, at a rate",
            ("rate", "size", "for", "from"),
            ("rate",),
        ),
        # storage
        Verb(
            "disk_slow",
            "fault",
            ("broker",),
            "a disk takes so many times as long",
            ("times", "for"),
            ("times", "for"),
            worlds=SIM_ALONE,
        ),
        Verb(
            "disk_full",
            "fault",
            ("broker",),
            "a disk has no room left",
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
            lacking="crash_host tears by itself what a disk is writing",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Trigger:
    """A step of a member: the nth time that it asks for something of this purpose."""

    node: str
    asks: Purpose
    nth: int = 1
    when: Literal["before", "after_reply"] = "after_reply"


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
        """What is given for an option."""
        return dict(self.options).get(name, default)

    @property
    def for_us(self) -> int:
        """How long it lasts; 0 for what is done in a moment."""
        for name in ("for", "unknown"):
            lasts: int | None = dict(self.options).get(name)
            if lasts is not None:
                return lasts
        return 0

    @property
    def lasts(self) -> bool:
        """Whether it goes on for a while and is then undone."""
        return self.for_us > 0 or self.verb.name == "rolling_restart"

    @property
    def is_fault(self) -> bool:
        """Whether it is something that goes wrong, as against an ordinary change."""
        return self.verb.kind == "fault"

    @property
    def label(self) -> str:
        """What it is in two words."""
        return f"{self.verb.name} {self.target}"


@dataclass(slots=True)
class Effect:
    """What an action did in a run."""

    action: Action
    at_us: int | None = None
    """When it took place; None if it never did."""
    until_us: int | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, what: str, number: int = 1) -> None:
        """Count something that it did."""
        self.counts[what] = self.counts.get(what, 0) + number

    @property
    def is_real(self) -> bool:
        """Whether it did anything."""
        return any(self.counts.values())
