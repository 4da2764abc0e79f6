"""Walks back from a violation to what led there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from watchkeeper.model.properties.verdicts import Subject, seconds
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event
from watchkeeper.reports.facts.names import listed
from watchkeeper.reports.why import wording
from watchkeeper.reports.why.fault_words import WORDS
from watchkeeper.reports.why.lookup import Lookup, Write

LATE_US = 400_000
"""A write that takes effect so long after its request was kept back on the way."""
NUMBERS = re.compile(r"\b\d+\b")
REPAIRS = frozenset({"restart", "start"})
"""Changes that end what an earlier fault did."""


class Weight(IntEnum):
    """How much a link explains; where there are many links, those with less are left out."""

    ACT = 0
    """What is wrong: what a process did, or had lost."""
    FAULT = 1
    """What struck it."""
    CAUSE = 2
    """What it did not know."""
    BASIS = 3
    """What it had done and read before."""
    AROUND = 4
    """What others did meanwhile."""


class Link(NamedTuple):
    """One event of a chain."""

    event: Event
    text: str
    weight: Weight


class Walk:
    """The links that were found so far, and the way back from an event of each kind."""

    def __init__(self, found: Lookup, about: Subject, until: int) -> None:
        """`until` is the number of the first event that comes too late to be a cause."""
        self.found = found
        self.about = about
        self.until = until
        self.links: dict[int, Link] = {}

    def add(self, event: Event, text: str, weight: Weight) -> None:
        """Add a link; of two on one event, the one that explains more stays."""
        before = self.links.get(event.seq)
        if before is None or weight < before.weight:
            self.links[event.seq] = Link(event, text, weight)

    def say(self, event: Event | None, weight: Weight) -> None:
        """Add an event in the words of its kind, if there is one."""
        if event is not None:
            self.add(event, wording.sentence(event), weight)

    def say_different(self, events: Iterable[Event], weight: Weight, most: int = 3) -> None:
        """Add the last events that do not say the same, but for their numbers."""
        different: dict[str, list[Event]] = {}
        for event in sorted(events):
            different.setdefault(NUMBERS.sub("", wording.sentence(event)), []).append(event)
        latest = sorted(different.values(), key=lambda alike: alike[-1])
        for *before, event in latest[-most:]:
            times = f", {len(before) + 1:,} times in all" if before else ""
            self.add(event, wording.sentence(event) + times, weight)

    def write(self, write: Write, weight: Weight, more: str = "") -> None:
        """Add a write, and what kept its request back."""
        text = wording.write_text(write, self.found.holders)
        if paths.parse_state(write.path) is not None:
            text += wording.outside_text(
                self.found.writes_between(write.path, -1, write.event.seq + 1)
            )
        self.add(write.event, text + more, weight)
        self.kept_back(write)

    def kept_back(self, write: Write) -> None:
        """Add the fault by which a request arrived long after it was sent."""
        asked = self.found.request_of.get(write.event.seq)
        if asked is None or write.event.t_us - asked.ask.t_us < LATE_US:
            return
        lost = [event for event in self.found.lost if event.t_us == asked.ask.t_us]
        if lost:
            what = f"{asked.word} {wording.named(write.path)}"
            text = f"the request of {write.by} to {what} got lost on its way, and came later"
            self.add(lost[0], text, Weight.FAULT)

    # --- sessions and faults -----------------------------------------------------------

    def struck(self, node: str, before: int, after: int = -1) -> Event | None:
        """The last fault or change that struck a process between two events."""
        for event in self.found.faults.get(node, [])[::-1]:
            verb = event.detail.get("verb")
            is_it = verb not in REPAIRS and "missed" not in event.detail
            if is_it and after < event.seq < before:
                return event
        return None

    def behind(self, node: str, before: int, after: int = -1) -> None:
        """Add the fault that is behind what a process suffered."""
        fault = self.struck(node, before, after) or self._of_servers(before, after)
        if fault is not None:
            name = node if fault in self.found.faults.get(node, ()) else fault.node
            self.add(fault, wording.fault_text(fault, name), Weight.FAULT)

    def _of_servers(self, before: int, after: int) -> Event | None:
        """The last fault of a ZooKeeper server, or of all of them."""
        found = [
            event
            for node, events in self.found.faults.items()
            for event in events
            if "zookeeper" in node and event.detail["verb"] in WORDS
            if after < event.seq < before
        ]
        return max(found, key=lambda event: event.seq, default=None)

    def lost_session(self, node: str, ended: Event, then: str = "") -> None:
        """Add why a session ended, when its process learned of it, and what it did then."""
        self.behind(node, ended.seq)
        pause = self.struck(node, ended.seq)
        resumed = None
        if pause is not None and pause.detail["verb"] == "pause":
            resumed = self.found.faults_ended.get(pause.detail["number"])
        if resumed is not None and ended.seq < resumed.seq < self.until:
            self.add(resumed, f"{node} went on{then}", Weight.CAUSE)
        again = self.found.last_of(node, self.until, EventKind.CONNECTED, after=ended.seq)
        if again is not None and again.detail.get("new"):
            self.add(again, f"{node} had a new session{then}", Weight.CAUSE)
            return
        self.say(self.found.first(node, ended.seq, EventKind.EXPIRED, self.until), Weight.BASIS)

    # --- what a process did not know ---------------------------------------------------

    def unaware(self, nodes: Sequence[str], write: Write) -> str:
        """Why processes did not act on a write, as the end of a sentence about it."""
        said: dict[str, list[str]] = {}
        for node in nodes:
            what = self._unaware(node, write)
            if what:
                said.setdefault(what, []).append(node)
        return "".join(f"; {what.format(listed(names))}" for what, names in said.items())

    def _unaware(self, node: str, write: Write) -> str:
        if not _is_watched(write.path) or not self._has_session(node, write.event):
            return ""
        where = (write.path, paths.parent_of(write.path))
        fired = next(
            (
                event
                for event in self.found.of_node.get(node, ())
                if event.kind == EventKind.WATCH_FIRED
                and event.zxid == write.event.zxid
                and event.detail.get("path") in where
            ),
            None,
        )
        if fired is None:
            return "no watch of {} fired"
        path = fired.detail["path"]
        for event in self.found.of_node[node]:
            is_it = event.kind == EventKind.NOTIFIED and event.detail.get("path") == path
            if is_it and event.seq > fired.seq:
                if event.seq < self.until:
                    return f"{{}} heard of it at {seconds(event.t_us)}"
                break
        return "the notification had not reached {}"

    def _has_session(self, node: str, at: Event) -> bool:
        """Whether the session of a process was alive when something was written."""
        ended = self.found.last(
            node,
            at.seq,
            lambda event: event.kind in (EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED),
        )
        since = -1 if ended is None else ended.seq
        return ended is None or self._has_connected(node, since, at.seq)

    def _has_connected(self, node: str, after: int, before: int) -> bool:
        return self.found.last_of(node, before, EventKind.CONNECTED, after) is not None

    def rebalance(self, node: str, before: int) -> None:
        """Add the last rebalance of a member, and what it heard that led to it."""
        begun = self.found.last_of(node, before, EventKind.REBALANCE_STARTED)
        if begun is None:
            return
        heard = self.found.last_of(node, begun.seq, EventKind.NOTIFIED)
        write = None if heard is None else self._that_fired(node, heard)
        if write is None:
            self.say(begun, Weight.AROUND)
            return
        self.write(write, Weight.AROUND)
        if write.is_end_of_session:
            self.behind(write.by, write.event.seq)
        self.add(begun, f"{node} heard of that and began a rebalance", Weight.BASIS)

    def _that_fired(self, node: str, heard: Event) -> Write | None:
        path = heard.detail.get("path")
        fired = self.found.last(
            node,
            heard.seq,
            lambda event: (
                event.kind == EventKind.WATCH_FIRED and event.detail.get("path") == path
            ),
        )
        writes = () if fired is None else self.found.writes.get(str(path), ())
        return next(
            (one for one in writes if fired is not None and one.event.zxid == fired.zxid), None
        )

    # --- the chain ---------------------------------------------------------------------

    def chosen(self, most: int) -> list[Link]:
        """The links that explain most, in the order of events."""
        ranked = sorted(self.links.values(), key=lambda link: (link.weight, -link.event.seq))
        return sorted(ranked[:most], key=lambda link: link.event.seq)


def _is_watched(path: str) -> bool:
    """Whether programs watch a znode of this kind: offsets and states are only read."""
    return paths.parse_offset(path) is None and paths.parse_state(path) is None
