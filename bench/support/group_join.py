"""Groups of real processes in which one more member joins: how long until all are at rest.

What a group is made of does not matter here: each member writes a diary, and a kind of
group says which rows of it mean that the member registers and that it is at rest, how many
requests it has sent, and what it says it holds. The moments are those that the members
have written down, by the machine's monotonic clock; whoever watches only looks whether the
diaries still grow, and reads them when they have not for a while.

A group is at rest when the last row of every member says so, and the registry agrees: each
partition is held by exactly one session, that of a member which is there; every member
holds its share and no more, a partition more or less than the others; and each holds as
many as it says.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec
from kazoo.client import KazooClient

LOOK_S = 0.05
"""How often the sizes of the diaries are looked at."""
STILL_LOOKS = 6
"""How many looks in a row must find that no diary has grown, before anything is read."""
PATIENCE_S = 60.0

Held = Mapping[str, int]
"""Partition -> the session that holds it."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a member's diary."""

    at_us: int
    kind: str
    session: int
    detail: Mapping[str, Any]


class Notes:
    """The diary of one member, read as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        """What has been read since `begin`."""
        self.last: Row | None = None
        self.owns = 0
        """What the member has last said that it holds."""
        self._at = 0

    @property
    def size(self) -> int:
        """How much there is."""
        return self.path.stat().st_size if self.path.exists() else 0

    def begin(self) -> None:
        """Forget what has been read."""
        self.rows = []

    def read(self) -> None:
        """Read what has come since."""
        if not self.path.exists():  # its process has not begun
            return
        with self.path.open("rb") as file:
            file.seek(self._at)
            said = file.read()
        whole = said[: said.rfind(b"\n") + 1]
        self._at += len(whole)
        for line in whole.splitlines():
            at_us, _, kind, session, _, _, _, _, detail = msgspec.json.decode(line)
            self.last = Row(at_us, kind, session, detail)
            self.rows.append(self.last)
            if "owns" in detail:
                self.owns = detail["owns"]
            if "holds" in detail:
                self.owns = len(detail["holds"])


class Process(Protocol):
    """The process of a member."""

    is_alive: bool

    def leave(self) -> None:
        """Ask it to leave its group and end."""

    def close(self) -> None:
        """Let nothing of it be left."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a group has done from the newcomer's registration until it was at rest."""

    operations: int
    """Requests of all members together, each of a batch as one, a multi as one."""
    trips: int
    """Round trips, one after the other, on the way to the moment of rest."""
    slept_s: float = 0.0
    """How long the members on that way have slept."""


@dataclass(frozen=True, slots=True)
class Change:
    """Who held what before a member joined, and after."""

    moved: int
    """Partitions that have another owner."""
    losers: int
    """Members that had to let go of one at least."""
    gainers: int
    """Members that were given one at least."""


@dataclass(frozen=True, slots=True)
class Join:
    """One member has joined."""

    seconds: float
    cost: Cost
    change: Change


class NotAtRest(Exception):
    """A group did not come to rest, and why."""


class Group(ABC):
    """A group of processes."""

    rests: frozenset[str]
    """The kinds of rows after which a member has nothing to do."""

    def __init__(self, name: str, operator: KazooClient, partitions: int) -> None:
        self.name = name
        self.operator = operator
        self.partitions = partitions
        self.members: dict[str, Process] = {}
        self.notes: dict[str, Notes] = {}
        self.held: Held = {}
        """Who holds what, since the group was last at rest."""

    # --- what a kind of group says ------------------------------------------------------

    @abstractmethod
    def prepare(self) -> Any:
        """Start a process that a member can be made of; it is ready and does nothing yet."""

    @abstractmethod
    def start(self, node: str, prepared: Any) -> Path:
        """Let it be this member; where its diary is."""

    @abstractmethod
    def read_registry(self) -> Held:
        """Who holds what now; a partition that is held twice, or by nobody, is left out."""

    @abstractmethod
    def registers(self, row: Row) -> bool:
        """Whether this row says that a member asks to be registered."""

    @abstractmethod
    def cost(self, newcomer: str) -> Cost:
        """What the rows of a join say that it has cost."""

    def close(self) -> None:
        """End every process."""
        for member in self.members.values():
            member.close()

    # --- coming and going ----------------------------------------------------------------

    def form(self, nodes: list[str]) -> None:
        """Start these members, and wait until the group is at rest."""
        for node, prepared in [(node, self.prepare()) for node in nodes]:
            self._begin(node, prepared)
        self.wait_for_rest()

    def _begin(self, node: str, prepared: Any) -> None:
        self.members[node] = prepared
        self.notes[node] = Notes(self.start(node, prepared))

    def join(self, node: str) -> Join:
        """Let one more member join, and clock it."""
        prepared = self.prepare()
        before = self.held
        for notes in self.notes.values():
            notes.begin()
        time.sleep(STILL_LOOKS * LOOK_S)
        self._begin(node, prepared)
        self.wait_for_rest()
        rows = self.notes[node].rows
        began_us = next(row.at_us for row in rows if self.registers(row))
        rested_us = max(notes.last.at_us for notes in self.notes.values() if notes.last)
        change = change_of(before, self.held)
        return Join((rested_us - began_us) / 1e6, self.cost(node), change)

    def leave(self, node: str) -> None:
        """Let a member leave, and wait until the others are at rest."""
        member = self.members.pop(node)
        del self.notes[node]
        member.leave()
        ends = time.monotonic() + PATIENCE_S
        while member.is_alive and time.monotonic() < ends:
            time.sleep(LOOK_S)
        member.close()
        self.wait_for_rest()

    # --- rest ------------------------------------------------------------------------------

    def wait_for_rest(self) -> None:
        """Wait until every member and the registry say that the group is at rest."""
        ends = time.monotonic() + PATIENCE_S
        while (why := self._why_not_at_rest(ends)) != "":
            if time.monotonic() > ends:
                raise NotAtRest(f"{self.name} was not at rest within {PATIENCE_S:g} s: {why}")

    def _why_not_at_rest(self, ends: float) -> str:
        self._until_still(ends)
        for notes in self.notes.values():
            notes.read()
        busy = [
            f"{node}: {notes.last.kind if notes.last else 'nothing'}"
            for node, notes in self.notes.items()
            if notes.last is None or notes.last.kind not in self.rests
        ]
        if busy:
            return f"{len(busy)} members are at work ({busy[0]})"
        held = self.read_registry()
        why = self._what_is_wrong(held)
        if not why:
            self.held = held
        return why

    def _until_still(self, ends: float) -> None:
        """Wait until no diary has grown for a while.

        Looks are counted, not seconds: a machine at work may not let us look for long.
        """
        before: list[int] = []
        looks = 0
        while looks < STILL_LOOKS and time.monotonic() < ends:
            time.sleep(LOOK_S)
            sizes = [notes.size for notes in self.notes.values()]
            looks = looks + 1 if sizes == before and 0 not in sizes else 0
            before = sizes

    def _what_is_wrong(self, held: Held) -> str:
        """Why these claims are not those of a group at rest; empty if they are."""
        if len(held) != self.partitions:
            return f"{self.partitions - len(held)} partitions are not held by exactly one"
        counts = Counter(held.values())
        known = {notes.last.session for notes in self.notes.values() if notes.last}
        if strangers := counts.keys() - known:
            return f"session 0x{min(strangers):x} holds some, and is no member's"
        for node, notes in self.notes.items():
            session = notes.last.session if notes.last else 0
            if counts[session] != notes.owns:
                return f"{node} says that it holds {notes.owns}, and holds {counts[session]}"
            if counts[session] - self.partitions // len(self.notes) not in (0, 1):
                return f"{node} holds {counts[session]}, which is not its share"
        return ""


def change_of(before: Held, after: Held) -> Change:
    """What has changed hands."""
    moved = [one for one, session in after.items() if before.get(one) != session]
    losers = {before[one] for one in moved if one in before}
    return Change(len(moved), len(losers), len({after[one] for one in moved}))
