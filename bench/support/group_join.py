"""Groups of real processes in which one more member joins, and the time until all are at rest.

Each member writes a trace. A subclass of `Group` defines which rows mean that the member
registers and that it is at rest, how many requests it has sent, and what it holds. Moments are
those in the traces, by the machine's monotonic clock; this process only checks whether the
traces still grow, and reads them when they have not grown for a while.

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
"""The time between two looks at the sizes of the traces."""
STILL_LOOKS = 6
"""The number of consecutive looks without growth before the traces are read."""
PATIENCE_S = 60.0

Held = Mapping[str, int]
"""Partition -> the session that holds it."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a member's trace."""

    at_us: int
    kind: str
    session: int
    detail: Mapping[str, Any]


class MemberTrace:
    """The trace of one member, read as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        """The rows read since `begin`."""
        self.last: Row | None = None
        self.owns = 0
        """The number of partitions that the member holds by its last row with one."""
        self._at = 0

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.path.stat().st_size if self.path.exists() else 0

    def begin(self) -> None:
        """Forget the rows read so far."""
        self.rows = []

    def read(self) -> None:
        """Read the rows written since the last read."""
        if not self.path.exists():  # its process has not begun
            return
        with self.path.open("rb") as file:
            file.seek(self._at)
            added = file.read()
        lines = added[: added.rfind(b"\n") + 1]  # the last line may not be complete yet
        self._at += len(lines)
        for line in lines.splitlines():
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
        """Make it leave its group and end."""

    def close(self) -> None:
        """Kill it if it still runs, and release its resources."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The requests of a group from the newcomer's registration until it was at rest."""

    operations: int
    """Requests of all members together, each of a batch as one, a multi as one."""
    trips: int
    """Consecutive round trips on the critical path to rest."""
    slept_s: float = 0.0
    """The time that members on that path slept."""


@dataclass(frozen=True, slots=True)
class Change:
    """The partitions that changed owners when a member joined."""

    moved: int
    """Partitions that have another owner."""
    losers: int
    """Members that lost at least one partition."""
    gainers: int
    """Members that gained at least one partition."""


@dataclass(frozen=True, slots=True)
class Join:
    """The measurements of one join."""

    seconds: float
    cost: Cost
    change: Change


class NotAtRest(Exception):
    """A group did not come to rest in time; the message says why."""


class Group(ABC):
    """A group of processes."""

    rests: frozenset[str]
    """The kinds of rows after which a member has nothing to do."""

    def __init__(self, name: str, operator: KazooClient, partitions: int) -> None:
        self.name = name
        self.operator = operator
        self.partitions = partitions
        self.members: dict[str, Process] = {}
        self.traces: dict[str, MemberTrace] = {}
        self.held: Held = {}
        """The claims when the group was last at rest."""

    # --- defined by each kind of group --------------------------------------------------

    @abstractmethod
    def prepare(self) -> Any:
        """Start a process that a member can be made of; it is ready and does nothing yet."""

    @abstractmethod
    def start(self, node: str, prepared: Any) -> Path:
        """Make the process this member; return the path of its trace."""

    @abstractmethod
    def read_registry(self) -> Held:
        """Return the owners; a partition with no owner, or with two, is left out."""

    @abstractmethod
    def registers(self, row: Row) -> bool:
        """Whether this row is the request that registers a member."""

    @abstractmethod
    def cost(self, newcomer: str) -> Cost:
        """Return the cost of a join by the rows of all members."""

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
        self.traces[node] = MemberTrace(self.start(node, prepared))

    def join(self, node: str) -> Join:
        """Let one more member join, and clock it."""
        prepared = self.prepare()
        before = self.held
        for trace in self.traces.values():
            trace.begin()
        time.sleep(STILL_LOOKS * LOOK_S)
        self._begin(node, prepared)
        self.wait_for_rest()
        rows = self.traces[node].rows
        began_us = next(row.at_us for row in rows if self.registers(row))
        rested_us = max(trace.last.at_us for trace in self.traces.values() if trace.last)
        change = change_of(before, self.held)
        return Join((rested_us - began_us) / 1e6, self.cost(node), change)

    def leave(self, node: str) -> None:
        """Let a member leave, and wait until the others are at rest."""
        member = self.members.pop(node)
        del self.traces[node]
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
        for trace in self.traces.values():
            trace.read()
        busy = [
            f"{node}: {trace.last.kind if trace.last else 'nothing'}"
            for node, trace in self.traces.items()
            if trace.last is None or trace.last.kind not in self.rests
        ]
        if busy:
            return f"{len(busy)} members are at work ({busy[0]})"
        held = self.read_registry()
        why = self._why_not_settled(held)
        if not why:
            self.held = held
        return why

    def _until_still(self, ends: float) -> None:
        """Wait until no trace has grown for a while.

        Looks are counted, not seconds: on a loaded machine this process may not run for long.
        """
        before: list[int] = []
        looks = 0
        while looks < STILL_LOOKS and time.monotonic() < ends:
            time.sleep(LOOK_S)
            sizes = [trace.size for trace in self.traces.values()]
            looks = looks + 1 if sizes == before and 0 not in sizes else 0
            before = sizes

    def _why_not_settled(self, held: Held) -> str:
        """Return why these claims are not those of a group at rest; empty if they are."""
        if len(held) != self.partitions:
            return f"{self.partitions - len(held)} partitions are not held by exactly one"
        counts = Counter(held.values())
        known = {trace.last.session for trace in self.traces.values() if trace.last}
        if strangers := counts.keys() - known:
            return f"session 0x{min(strangers):x} holds some, and is no member's"
        for node, trace in self.traces.items():
            session = trace.last.session if trace.last else 0
            if counts[session] != trace.owns:
                return f"{node} reports that it holds {trace.owns}, and holds {counts[session]}"
            if counts[session] - self.partitions // len(self.traces) not in (0, 1):
                return f"{node} holds {counts[session]}, which is not its share"
        return ""


def change_of(before: Held, after: Held) -> Change:
    """Return which partitions changed owners."""
    moved = [name for name, session in after.items() if before.get(name) != session]
    losers = {before[name] for name in moved if name in before}
    return Change(len(moved), len(losers), len({after[name] for name in moved}))
