"""Judges of what must hold always: who fetches, whose claims exist, who deletes what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.nemesis.world import OPERATOR
from watchkeeper.model.properties.history import Claim, History, partition_named
from watchkeeper.model.properties.verdicts import (
    NO_SUBJECT,
    Finding,
    Property,
    Subject,
    Verdict,
    duration,
    seconds,
    unexercised,
)
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, struck_by

SINGLE = Property(
    "single ownership",
    "always",
    "no two members whose sessions are alive fetch one partition at once",
    exercise="a member that fetches a partition",
)
STRICT = Property(
    "strict single ownership",
    "always",
    "no two members fetch one partition at once, whether their sessions are alive or not",
    exercise="a member that fetches a partition",
)
TRUTHFUL = Property(
    "truthful registry",
    "always",
    "the owner znode of a fetched partition belongs to the fetching session, or that one is dead",
    exercise="a member that fetches a partition",
)
OWN_NODES = Property(
    "own nodes only",
    "always",
    "no process deletes a znode of another live session",
    exercise="a request that deletes an ephemeral znode",
    is_optional=True,
)
MONOTONE = Property(
    "monotone offsets",
    "always",
    "a committed offset never decreases, except after a reset: its log had become shorter",
    exercise="a commit over an earlier offset",
    is_optional=True,
)
OUT_OF_RANGE = "out of range"
"""Why an offset is reset that its log does not have: the topic was deleted and created again."""


@dataclass(slots=True)
class First:
    """The first violation of a property, and the number of violations.

    A violation that is seen later may have started earlier: a wait is known to be too long only
    when it ends.
    """

    evidence: str = ""
    shape: str = ""
    at_us: int = 0
    number: int = 0
    about: Subject = NO_SUBJECT

    def note(self, at_us: int, shape: str, evidence: str, about: Subject = NO_SUBJECT) -> None:
        """Record a violation: its kind, what shows it, and what it is about."""
        if not self.number or at_us < self.at_us:
            self.at_us = at_us
            self.shape = shape
            self.evidence = evidence
            self.about = about
        self.number += 1

    def finding(
        self, claim: Property, held: str, exercised: int, *, counts: bool = True
    ) -> Finding:
        """The finding: the first violation, or `held`; unknown if `exercised` is 0."""
        if not self.number and not exercised:
            return unexercised(claim, counts=counts)
        if not self.number:
            return Finding(claim, Verdict.HOLDS, held, counts=counts, exercised=exercised)
        more = f" ({self.number} times in all)" if self.number > 1 else ""
        return Finding(
            claim,
            Verdict.VIOLATED,
            f"{self.evidence}{more}",
            self.at_us,
            counts,
            exercised,
            self.shape,
            about=self.about,
        )


@dataclass(slots=True)
class OwnershipJudge:
    """Judges every change of fetchers, claims and sessions, by the history that it follows.

    It looks at a write twice: before it counts (`before`), and, like the other kinds of event,
    when the history has it (`handlers`).
    """

    history: History
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
    deletions: int = 0
    """How often a request deleted an ephemeral znode."""
    _resets: dict[Claim, None] = field(default_factory=dict)
    """Where a member continues at an offset below the committed one, and has not committed a
    lower offset since. A commit that was under way at the reset is not the lower one."""
    commits: int = 0
    """How often an offset was committed over an earlier one."""
    begun: int = 0
    """How often a member began to fetch a partition."""

    # --- before an event ---------------------------------------------------------------

    def before(self, event: Event) -> None:
        """Judge a deletion or a commit while the value that it replaces is still known.

        What an operator writes is no fault of a process.
        """
        if event.detail.get("by") == OPERATOR:
            return
        for change in event.detail["did"]:
            if change[0] == "deleted":
                self._look_at_deletion(event, change[1], change[2])
            else:
                self._look_at_offset(event, change[1], change[3])

    def _look_at_deletion(self, event: Event, path: str, owner: int) -> None:
        if not owner:
            return
        self.deletions += 1
        history = self.history
        if owner != event.session and owner in history.alive:
            what = "a claim" if paths.parse_owner(path) else "a registration"
            self.own_nodes.note(
                event.t_us,
                f"a process deletes {what} of another live session",
                f"at {seconds(event.t_us)} {event.detail['by']} deleted {path}, an ephemeral of "
                f"{history.holders.get(owner, 'another')}, whose session was alive",
                Subject((event.detail["by"],), paths=(path,)),
            )

    def _look_at_offset(self, event: Event, path: str, data: str | None) -> None:
        place = paths.parse_offset(path)
        if place is None or data is None:
            return
        before, offset = self.history.offsets.get(place), paths.offset_in(data)
        if before is not None and offset is not None:
            self.commits += 1
            self._look_at_commit(event, path, place, before, offset)

    def _look_at_commit(
        self, event: Event, path: str, place: Claim, before: int, offset: int
    ) -> None:
        """Judge a commit over an earlier offset."""
        if offset >= before:
            return
        if place in self._resets:
            del self._resets[place]
        else:
            self.monotone.note(
                event.t_us,
                "a member commits a lower offset than the one before",
                f"at {seconds(event.t_us)} {event.detail['by']} committed {offset} for "
                f"{place[1]}, where {before} had been committed",
                Subject((event.detail["by"],), place[0], (place[1],), paths=(path,)),
            )

    # --- after an event ----------------------------------------------------------------

    @property
    def handlers(self) -> dict[str, Callable[[Event], None]]:
        """The kinds of event it looks at once they count, each with its method."""
        return {
            EventKind.FETCHING: self._after_fetching,
            EventKind.APPLIED: self._after_write,
            EventKind.OFFSET_RESET: self._after_reset,
            EventKind.SESSION_EXPIRED: self._after_session,
            EventKind.SESSION_CLOSED: self._after_session,
            EventKind.CONNECTED: self._after_change_of_nodes,
            EventKind.FAULT: self._after_change_of_nodes,
            EventKind.FAULT_ENDED: self._after_change_of_nodes,
            EventKind.ENDED: self._after_change_of_nodes,
        }

    def _after_fetching(self, event: Event) -> None:
        now_us, history = event.t_us, self.history
        self.begun += event.detail["does"] == "begins"
        self._judge(now_us, (event.group, partition_named(event.topic, event.partition)))
        if self.zombies or history.nodes[event.node].session not in history.alive:
            self._note_zombie(now_us, event.node)

    def _after_write(self, event: Event) -> None:
        for change in event.detail["did"]:
            claim = paths.parse_owner(change[1])
            if claim is not None:
                self._judge(event.t_us, claim)

    def _after_reset(self, event: Event) -> None:
        place = (event.group, Partition(event.topic, event.partition))
        is_back = event.detail["to"] < self.history.offsets.get(place, 0)
        if event.detail["why"] == OUT_OF_RANGE and is_back:
            self._resets[place] = None

    def _after_session(self, event: Event) -> None:
        self._look_at_node(event.t_us, self.history.holders[event.session])

    def _after_change_of_nodes(self, event: Event) -> None:
        nodes = self.history.nodes
        if event.node in nodes:
            self._look_at_node(event.t_us, event.node)
            return
        for name in struck_by(event):
            if name in nodes:
                self._look_at_node(event.t_us, name)

    def _look_at_node(self, now_us: int, name: str) -> None:
        state = self.history.node(name)
        for partition in list(state.fetching):
            self._judge(now_us, (state.group, partition))
        self._note_zombie(now_us, name)

    def _judge(self, now_us: int, claim: Claim) -> None:
        """Judge those that fetch a partition."""
        history = self.history
        fetchers = history.fetchers.get(claim)
        if fetchers is None or not (fetchers or self._wrong):
            return
        alive: dict[str, int] = {}
        for name in fetchers:
            session = history.nodes[name].session
            if session in history.alive:
                alive[name] = session
        if len(fetchers) > 1 or self._wrong:
            self._judge_together(now_us, claim, list(fetchers), list(alive))
        claimed_by = history.claims.get(claim)
        for name, session in alive.items():
            is_false = claimed_by != session
            if (is_false or self._wrong) and self._is_new(name, claim, is_false):
                whose = _whose(history, claim, name)
                self.truthful.note(
                    now_us,
                    f"a member fetches a partition whose claim belongs to {whose}",
                    _untruthful(now_us, history, claim, name),
                    Subject((name,), claim[0], (claim[1],)),
                )

    def _judge_together(
        self, now_us: int, claim: Claim, fetchers: list[str], alive: list[str]
    ) -> None:
        """Judge whether the fetchers of one partition may fetch it at the same time."""
        history = self.history
        running = [name for name in fetchers if not history.node(name).is_paused]
        if self._is_new("single", claim, len(alive) > 1):
            self.single.note(
                now_us,
                "several members with live sessions fetch one partition",
                _together(now_us, claim[1], alive, "sessions are alive"),
                Subject(tuple(alive), claim[0], (claim[1],)),
            )
        if self._is_new("strict", claim, len(running) > 1):
            self.strict.note(
                now_us,
                "several members whose processes run fetch one partition",
                _together(now_us, claim[1], running, "processes run"),
                Subject(tuple(running), claim[0], (claim[1],)),
            )

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

    def _note_zombie(self, now_us: int, name: str) -> None:
        state = self.history.node(name)
        if (
            state.session not in self.history.alive
            and state.is_alive
            and not state.is_paused
            and state.fetching
        ):
            self.zombies.setdefault(name, now_us)
        elif name in self.zombies:
            self._end_zombie(now_us, name)

    def _end_zombie(self, now_us: int, name: str) -> None:
        lasted = now_us - self.zombies.pop(name)
        self.longest_zombie_us = max(self.longest_zombie_us, lasted)
        self.zombie_total_us += lasted

    # --- the end -----------------------------------------------------------------------

    def findings(self, end_us: int, *, strict_counts: bool) -> list[Finding]:
        """The findings of all ownership properties."""
        for name in list(self.zombies):
            self._end_zombie(end_us, name)
        strict = min(
            (overlap for overlap in (self.strict, self.single) if overlap.number),
            key=lambda overlap: overlap.at_us,
            default=self.strict,
        )
        window = (
            f"the longest zombie window was {duration(self.longest_zombie_us)}"
            if self.longest_zombie_us
            else "no member fetched after its session had ended"
        )
        return [
            self.single.finding(
                SINGLE,
                f"{_times(self.begun)} a member began to fetch a partition, always alone",
                self.begun,
            ),
            strict.finding(
                STRICT,
                f"{window}, and never beside another owner" if self.longest_zombie_us else window,
                self.begun,
                counts=strict_counts,
            ),
            self.truthful.finding(
                TRUTHFUL,
                "every fetch by a live session stood under that session's own claim",
                self.begun,
            ),
            self.own_nodes.finding(
                OWN_NODES,
                f"{_times(self.deletions)} a request deleted an ephemeral znode, never another "
                "live session's",
                self.deletions,
            ),
            self.monotone.finding(
                MONOTONE,
                f"{_times(self.commits)} an offset was committed over an earlier one, never a "
                "lower one",
                self.commits,
            ),
        ]


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _together(now_us: int, partition: Partition, names: list[str], how: str) -> str:
    both = " and ".join(sorted(names))
    return f"at {seconds(now_us)} {both} fetch {partition} at once; their {how}"


def _whose(history: History, claim: Claim, name: str) -> str:
    """Which kind of process a claim belongs to, seen from the member that fetches."""
    owner = history.claims.get(claim)
    if owner is None:
        return "no member"
    if owner not in history.holders:
        return "an unknown session"
    if history.holders[owner] == name:
        return "an earlier session of that member"
    return "another member"


def _untruthful(now_us: int, history: History, claim: Claim, name: str) -> str:
    owner = history.claims.get(claim)
    whose = "no member" if owner is None else history.holders.get(owner, "an unknown session")
    if whose == name:
        whose = f"an earlier session of {name}"
    return f"at {seconds(now_us)} {name} fetches {claim[1]}, whose claim belongs to {whose}"
