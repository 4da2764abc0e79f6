"""Judges of what must hold always: who fetches, whose claims stand, who deletes what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from model import registry
from model.asks import Partition
from model.history import Claim, History
from model.trace import Event
from model.verdicts import Finding, Property, Verdict, duration, seconds

SINGLE = Property(
    "single ownership",
    "always",
    "no two members whose sessions are alive fetch one partition at once",
)
STRICT = Property(
    "strict single ownership",
    "always",
    "nor does a member whose session is dead and which does not know it",
)
TRUTHFUL = Property(
    "truthful registry",
    "always",
    "whoever fetches a partition has its own session on the owner znode, or its session is dead",
)
OWN_NODES = Property(
    "own nodes only", "always", "nobody deletes a znode of another session that is alive"
)
MONOTONE = Property("monotone offsets", "always", "a committed offset never goes back")


@dataclass(slots=True)
class First:
    """The first violation of something, and how many there were.

    One that is seen later may have come earlier: a wait is known to be too long when it ends.
    """

    evidence: str = ""
    at_us: int = 0
    number: int = 0

    def note(self, at_us: int, evidence: str) -> None:
        """There is one more."""
        if not self.number or at_us < self.at_us:
            self.at_us = at_us
            self.evidence = evidence
        self.number += 1

    def finding(
        self, claim: Property, held: str, *, counts: bool = True, unseen: str = ""
    ) -> Finding:
        """The finding: what was seen first, or the words for all being well.

        `unseen` says why there was nothing to see; then nothing is known.
        """
        if not self.number and unseen:
            return Finding(claim, Verdict.UNKNOWN, unseen, counts=counts)
        if not self.number:
            return Finding(claim, Verdict.HOLDS, held, counts=counts)
        more = f" ({self.number} times in all)" if self.number > 1 else ""
        return Finding(
            claim, Verdict.VIOLATED, f"{self.evidence}{more}", self.at_us, counts=counts
        )


@dataclass(slots=True)
class OwnershipJudge:
    """Watches every change of who fetches, who claims and whose session is alive."""

    BEFORE: ClassVar = frozenset({"applied"})
    """The kinds of event it looks at before they count."""
    AFTER: ClassVar = frozenset(
        {
            "applied",
            "fetching",
            "connected",
            "session expired",
            "session closed",
            "fault",
            "fault ends",
            "ends",
        }
    )
    """The kinds it looks at when they do."""

    single: First = field(default_factory=First)
    strict: First = field(default_factory=First)
    truthful: First = field(default_factory=First)
    own_nodes: First = field(default_factory=First)
    monotone: First = field(default_factory=First)
    zombies: dict[str, int] = field(default_factory=dict)
    """Node -> since when it has been fetching with a dead session, while it runs."""
    longest_zombie_us: int = 0
    zombie_total_us: int = 0
    _wrong: dict[tuple[str, Claim], None] = field(default_factory=dict)
    commits: int = 0
    begun: int = 0

    # --- before an event ---------------------------------------------------------------

    def before(self, event: Event, history: History) -> None:
        """Look at a deletion, or a commit, while what it replaces is still known."""
        for change in event.detail["did"]:
            if change[0] == "deleted":
                self._look_at_deletion(event, history, change[1], change[2])
            else:
                self._look_at_offset(event, history, change[1], change[3])

    def _look_at_deletion(self, event: Event, history: History, path: str, owner: int) -> None:
        if owner and owner != event.session and owner in history.alive:
            self.own_nodes.note(
                event.t_us,
                f"at {seconds(event.t_us)} {event.detail['by']} deleted {path}, an ephemeral of "
                f"{history.holders.get(owner, 'another')}, whose session was alive",
            )

    def _look_at_offset(
        self, event: Event, history: History, path: str, data: str | None
    ) -> None:
        place = registry.parse_offset(path)
        if place is None or data is None:
            return
        self.commits += 1
        before, offset = history.offsets.get(place), registry.offset_in(data)
        if before is not None and offset is not None and offset < before:
            self.monotone.note(
                event.t_us,
                f"at {seconds(event.t_us)} {event.detail['by']} committed {data} for {place[1]}, "
                f"where {before} had been committed",
            )

    # --- after an event ----------------------------------------------------------------

    def after(self, event: Event, history: History) -> None:
        """Look at what an event has changed."""
        if event.kind == "fetching":
            claim = (event.group, Partition(event.topic, event.partition))
            self.begun += event.detail["does"] == "begins"
            self._look_at(event.t_us, history, [claim])
            self._note_zombie(event.t_us, history, event.node)
        elif event.kind == "applied":
            self._look_at(event.t_us, history, _claims_in(event))
        elif event.kind.startswith("session"):
            name = history.holders[event.session]
            self._look_at_node(event.t_us, history, name)
        elif event.node in history.nodes:
            self._look_at_node(event.t_us, history, event.node)

    def _look_at_node(self, now_us: int, history: History, name: str) -> None:
        state = history.node(name)
        self._look_at(now_us, history, [(state.group, one) for one in state.fetching])
        self._note_zombie(now_us, history, name)

    def _look_at(self, now_us: int, history: History, claims: list[Claim]) -> None:
        for claim in claims:
            fetchers = history.fetchers.get(claim)
            if fetchers is not None:
                self._judge(now_us, history, claim, list(fetchers))

    def _judge(self, now_us: int, history: History, claim: Claim, fetchers: list[str]) -> None:
        alive = [name for name in fetchers if history.has_live_session(name)]
        if len(fetchers) > 1 or self._wrong:
            self._judge_together(now_us, history, claim, fetchers, alive)
        for name in alive:
            is_false = history.claims.get(claim) != history.node(name).session
            if self._is_new(name, claim, is_false):
                self.truthful.note(now_us, _untruthful(now_us, history, claim, name))

    def _judge_together(
        self, now_us: int, history: History, claim: Claim, fetchers: list[str], alive: list[str]
    ) -> None:
        """Whether those who fetch one partition may do so beside one another."""
        running = [name for name in fetchers if not history.node(name).is_paused]
        if self._is_new("single", claim, len(alive) > 1):
            self.single.note(now_us, _together(now_us, claim[1], alive, "sessions are alive"))
        if self._is_new("strict", claim, len(running) > 1):
            self.strict.note(now_us, _together(now_us, claim[1], running, "processes run"))

    def _is_new(self, what: str, claim: Claim, is_wrong: bool) -> bool:
        """Whether something is wrong here that was not wrong a moment ago."""
        if not is_wrong and not self._wrong:
            return False
        was_wrong = (what, claim) in self._wrong
        if is_wrong:
            self._wrong[what, claim] = None
        elif was_wrong:
            del self._wrong[what, claim]
        return is_wrong and not was_wrong

    def _note_zombie(self, now_us: int, history: History, name: str) -> None:
        state = history.node(name)
        is_zombie = (
            state.is_alive
            and not state.is_paused
            and bool(state.fetching)
            and state.session not in history.alive
        )
        if is_zombie:
            self.zombies.setdefault(name, now_us)
        elif name in self.zombies:
            self._end_zombie(now_us, name)

    def _end_zombie(self, now_us: int, name: str) -> None:
        lasted = now_us - self.zombies.pop(name)
        self.longest_zombie_us = max(self.longest_zombie_us, lasted)
        self.zombie_total_us += lasted

    # --- the end -----------------------------------------------------------------------

    def findings(self, end_us: int, *, strict_counts: bool) -> list[Finding]:
        """What was found."""
        for name in list(self.zombies):
            self._end_zombie(end_us, name)
        strict = min(
            (one for one in (self.strict, self.single) if one.number),
            key=lambda one: one.at_us,
            default=self.strict,
        )
        unseen = "" if self.begun else "no member ever fetched anything"
        window = (
            f"the longest zombie window was {duration(self.longest_zombie_us)}"
            if self.longest_zombie_us
            else "no member fetched after its session had ended"
        )
        return [
            self.single.finding(
                SINGLE,
                f"{_times(self.begun)} a member began to fetch a partition, always alone",
                unseen=unseen,
            ),
            strict.finding(
                STRICT,
                f"{window}, and never beside another owner" if self.longest_zombie_us else window,
                counts=strict_counts,
                unseen=unseen,
            ),
            self.truthful.finding(
                TRUTHFUL,
                "every fetch by a live session stood under that session's own claim",
                unseen=unseen,
            ),
            self.own_nodes.finding(OWN_NODES, "every deletion was of the deleter's own znodes"),
            self.monotone.finding(
                MONOTONE,
                f"{_times(self.commits)} an offset was committed, never a lower one",
                counts=bool(self.commits),
                unseen="" if self.commits else "no offset was committed",
            ),
        ]


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _together(now_us: int, partition: Partition, names: list[str], how: str) -> str:
    both = " and ".join(sorted(names))
    return f"at {seconds(now_us)} {both} fetch {partition} at once; their {how}"


def _untruthful(now_us: int, history: History, claim: Claim, name: str) -> str:
    owner = history.claims.get(claim)
    whose = "nobody" if owner is None else history.holders.get(owner, "an unknown session")
    if whose == name:
        whose = f"an earlier session of {name}"
    return f"at {seconds(now_us)} {name} fetches {claim[1]}, whose claim belongs to {whose}"


def _claims_in(event: Event) -> list[Claim]:
    claims: list[Claim] = []
    for change in event.detail["did"]:
        claim = registry.parse_owner(change[1])
        if claim is not None:
            claims.append(claim)
    return claims
