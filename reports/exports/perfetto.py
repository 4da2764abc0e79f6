"""A trace as JSON of Chrome's trace events, which Perfetto and `chrome://tracing` open.

How it is laid out
  Each process and each server of the run is a process of the viewer, with a thread for its
  requests, one for its rebalances, one for its states and one for everything else; the partitions
  are one more process, with a thread for each. Spans that overlap on one thread would not nest,
  so a thread has as many tracks as spans overlap at most. An arrow leads from a request to its
  effect and on to its answer, and from a watch that fires to the process that it reaches. The
  timeline's entries are instants of the whole trace.

Source: "Trace Event Format", the document of the Catapult project. Times are microseconds there,
as they are here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.intervals import fetched, last_event
from watchkeeper.reports.spacetime.items import Item, items
from watchkeeper.reports.spacetime.swimlanes import Lane, lanes

Record = dict[str, Any]

PARTITIONS = "partitions"
THREADS = {
    "operation": "requests",
    "firing": "requests",
    "rebalance": "rebalances",
    "mark": "events",
}
"""Kind of item -> the name of its thread."""
STATES = "states"
SERVED = "served"
COLORS = {"ok": "good", "error": "terrible", "lost": "bad"}
"""Tone of an item -> a colour name of the format."""


def trace_events(trace: Trace) -> str:
    """The whole trace as one JSON object; the same trace gives the same text."""
    events = list(_Layout(trace).records())
    header = trace.header
    about = {"scenario": header.scenario, "variant": header.variant, "seed": header.seed}
    value = {"displayTimeUnit": "ms", "otherData": about, "traceEvents": events}
    return json.dumps(value, sort_keys=True, separators=(",", ":")) + "\n"


@dataclass(slots=True)
class _Tracks:
    """The tracks of one thread: each has spans that do not overlap."""

    ends_us: list[int] = field(default_factory=list)

    def place(self, start_us: int, end_us: int) -> int:
        """The first track that is free by then."""
        for at, busy_until_us in enumerate(self.ends_us):
            if busy_until_us <= start_us:
                self.ends_us[at] = end_us
                return at
        self.ends_us.append(end_us)
        return len(self.ends_us) - 1


class _Layout:
    """Gives processes, threads and arrows their numbers, in the order in which they are met."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        last = last_event(trace)
        self._end_us = last.t_us if last is not None else 0
        self._pids: dict[str, int] = {}
        self._tids: dict[tuple[int, str], int] = {}
        self._tracks: dict[tuple[int, str], _Tracks] = {}
        self._arrows = 0
        self._names: list[Record] = []

    def records(self) -> Iterator[Record]:
        """Every record, the names of processes and threads last."""
        for lane in lanes(self._trace):
            yield from self._lane(lane)
        for item in items(self._trace):
            yield from self._item(item)
        for place, spans in sorted(fetched(self._trace).items()):
            name = f"{place.topic}/{place.partition} of {place.group}"
            for span in spans:
                yield self._span(PARTITIONS, name, span.what, span.start_us, span.end_us, {})
        yield from self._names

    def _lane(self, lane: Lane) -> Iterator[Record]:
        self._pid(lane.name)
        for span in lane.states:
            yield self._span(lane.name, STATES, span.what, span.start_us, span.end_us, {})

    def _item(self, item: Item) -> Iterator[Record]:
        if item.kind == "across":
            yield self._instant(item, "g")
        elif item.end_us is None and item.kind in ("mark", "firing"):
            yield self._instant(item, "t")
        elif item.kind == "firing":
            yield from self._firing(item)
        else:
            yield from self._work(item)

    def _work(self, item: Item) -> Iterator[Record]:
        """A request or a rebalance, until the end of the trace if it has none."""
        end_us = self._end_us if item.end_us is None else item.end_us
        span = self._span(
            item.node, THREADS[item.kind], item.label, item.start_us, end_us, _arguments(item)
        )
        if item.tone in COLORS:
            span["cname"] = COLORS[item.tone]
        yield span
        if item.at_server_us is not None and item.server:
            served = self._span(
                item.server, SERVED, item.label, item.at_server_us, item.at_server_us, {}
            )
            yield served
            yield from self._arrow(span, item.start_us, served, item.at_server_us)

    def _firing(self, item: Item) -> Iterator[Record]:
        """A watch that fires at its server and reaches its process."""
        assert item.end_us is not None, "one that is not heard is an instant"
        server = item.server or item.node
        fired = self._span(server, SERVED, item.label, item.start_us, item.start_us, {})
        heard = self._span(
            item.node, THREADS["firing"], item.label, item.end_us, item.end_us, _arguments(item)
        )
        yield fired
        yield heard
        yield from self._arrow(fired, item.start_us, heard, item.end_us)

    def _arrow(
        self, origin: Record, begins_us: int, end: Record, ends_us: int
    ) -> Iterator[Record]:
        self._arrows += 1
        common = {"cat": "messages", "name": "message", "id": self._arrows}
        yield {**common, "ph": "s", "ts": begins_us, "pid": origin["pid"], "tid": origin["tid"]}
        yield {
            **common,
            "ph": "f",
            "bp": "e",
            "ts": ends_us,
            "pid": end["pid"],
            "tid": end["tid"],
        }

    def _instant(self, item: Item, scope: str) -> Record:
        pid = self._pid(item.node)
        return {
            "ph": "i",
            "s": scope,
            "name": item.label,
            "cat": item.category or "operations",
            "ts": item.start_us,
            "pid": pid,
            "tid": self._tid(pid, THREADS["mark"]),
            "args": _arguments(item),
        }

    def _span(
        self, process: str, thread: str, name: str, start_us: int, end_us: int, args: Record
    ) -> Record:
        pid = self._pid(process)
        track = self._tracks.setdefault((pid, thread), _Tracks()).place(start_us, end_us)
        tid = self._tid(pid, thread if not track else f"{thread} {track + 1}")
        return {
            "ph": "X",
            "name": name,
            "cat": thread,
            "ts": start_us,
            "dur": end_us - start_us,
            "pid": pid,
            "tid": tid,
            "args": args,
        }

    def _pid(self, process: str) -> int:
        if process not in self._pids:
            self._pids[process] = len(self._pids) + 1
            self._name(self._pids[process], 0, "process_name", process)
        return self._pids[process]

    def _tid(self, pid: int, thread: str) -> int:
        key = (pid, thread)
        if key not in self._tids:
            self._tids[key] = len(self._tids) + 1
            self._name(pid, self._tids[key], "thread_name", thread)
        return self._tids[key]

    def _name(self, pid: int, tid: int, what: str, name: str) -> None:
        self._names.append(
            {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": name}}
        )


def _arguments(item: Item) -> Record:
    """What the viewer shows of a selected item: the events that it is made of."""
    return {f"{event.seq} {event.kind}": _detail(event) for event in item.events}


def _detail(event: Event) -> Record:
    columns = {
        "session": event.session,
        "group": event.group,
        "topic": event.topic,
        "partition": event.partition,
        "zxid": event.zxid,
    }
    return {**{name: value for name, value in columns.items() if value}, **event.detail}
